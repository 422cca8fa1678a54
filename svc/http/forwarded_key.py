"""A device key whose secret is held by the ssh-agent of a user who connected over SSH."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.identity.keys import DeviceKey


class ForwardedKey(DeviceKey, frozen=True):
    """A key in a forwarded agent. `ask`: returns the signature of a message, or raises."""

    ask: Callable[[bytes], bytes]

    def sign(self, message: bytes) -> bytes:
        return self.ask(message)
