"""A device key for a user who connected over SSH: its secret stays in the user's ssh-agent."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.identity.keys import DeviceKey


class ForwardedKey(DeviceKey, frozen=True):
    """A key whose secret is in the ssh-agent of a user who connected over SSH. `ask` is called with a message
    and returns its signature, or raises an error."""

    ask: Callable[[bytes], bytes]

    def sign(self, message: bytes) -> bytes:
        return self.ask(message)
