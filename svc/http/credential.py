"""The secrets with which a client signs its requests."""

from __future__ import annotations

import msgspec

from localstore.core.identity.keys import DeviceKey


class Credential(msgspec.Struct, frozen=True):
    """A capability token (base64url), and the key that it is bound to. The key signs the requests that are
    sent with the token. `alone` is a device key of the account, or None. It signs requests that the token
    does not allow; these are sent without the token."""

    token: str
    key: DeviceKey
    alone: DeviceKey | None = None

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"
