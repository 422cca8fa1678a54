"""The secrets with which a client signs its requests."""

from __future__ import annotations

import msgspec

from localstore.core.identity.keys import DeviceKey


class Credential(msgspec.Struct, frozen=True):
    """A capability token (base64url), and the key that it is bound to, which signs the requests. `alone`: a
    device key of the account; it signs, without the token, requests that the token does not allow."""

    token: str
    key: DeviceKey
    alone: DeviceKey | None = None

    @property
    def authorization(self) -> str:
        return f"Bearer {self.token}"
