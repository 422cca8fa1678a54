"""A device key whose secret is in the ssh-agent of a user who connected over SSH."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.identity.keys import DeviceKey


class ForwardedKey(DeviceKey, frozen=True):
    """The key. `ask`: returns the signature of a message, or raises."""

    ask: Callable[[bytes], bytes]

    def sign(self, message: bytes) -> bytes:
        return self.ask(message)
