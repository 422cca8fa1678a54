"""A device key whose secret is elsewhere: in the ssh-agent of a visitor."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.identity.keys import DeviceKey


class ForwardedKey(DeviceKey, frozen=True):
    """`ask` answers a message with a signature, or raises."""

    ask: Callable[[bytes], bytes]

    def sign(self, message: bytes) -> bytes:
        return self.ask(message)
