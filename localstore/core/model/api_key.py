"""API keys of an account. A program of the account asks the relay whether a key that it received is valid.
Each key has scopes and an expiry.

The relay itself accepts no API key instead of a session. A program calls `VALIDATE` to get the scopes of a
key."""

from __future__ import annotations

import datetime
from typing import Annotated

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Model, Page, PageQuery, Sent, visible
from localstore.core.model.limits import API_KEY_OVERLAP, LABEL_CHARS
from localstore.core.model.rights import Capability

PREFIX = "svck_"


class ApiKeyEnded(Conflict):
    """The API key is revoked or expired, which is final."""

    code = "api_key_ended"


Moment = Annotated[datetime.datetime, msgspec.Meta(tz=True)]
Scopes = Annotated[list[Capability], msgspec.Meta(min_length=1, max_length=4)]


class ApiKey(Model, frozen=True):
    """An API key. `prefix`: the beginning of its secret, by which its owner recognises the key."""

    id: str
    name: str
    prefix: str
    scopes: list[Capability]
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None


class ApiKeySecret(ApiKey, frozen=True):
    """An API key with its secret. Only the answer that creates or rotates the key contains the secret."""

    secret: str


class ApiKeyCreate(Sent, frozen=True):
    """A new API key. `scopes`: the uses for which programs should accept the key. `expires_at`: None for a
    key that never expires."""

    name: Annotated[str, visible(LABEL_CHARS)]
    scopes: Scopes = msgspec.field(default_factory=lambda: ["read"])
    expires_at: Moment | None = None


class ApiKeyRotate(Sent, frozen=True):
    """A request for a new secret of a key. `overlap_seconds`: how long the present secret stays valid beside
    the new one. Any older secret becomes invalid at once."""

    overlap_seconds: Annotated[int, msgspec.Meta(ge=0, le=API_KEY_OVERLAP)] = 0


class ApiKeyCheck(Sent, frozen=True):
    """A request to check an API key. `key`: its secret."""

    key: Annotated[str, msgspec.Meta(max_length=200)]


class ApiKeyVerdict(Model, frozen=True, omit_defaults=True):
    """Whether a checked secret is valid, and who owns it. If it is not valid, the answer has no other
    members. So it is the same for unknown, revoked and expired keys, and for keys of other accounts."""

    valid: bool
    key_id: str | None = None
    user_id: str | None = None
    scopes: list[Capability] | None = None
    expires_at: str | None = None


KEYS = "/api/v1/apikeys"
OF_USER = f"{KEYS}/{{user_id}}"
LIST = Endpoint("GET", OF_USER, query=PageQuery, returns=Page[ApiKey])
CREATE = Endpoint("POST", OF_USER, body=ApiKeyCreate, returns=ApiKeySecret, status=201)
GET = Endpoint("GET", f"{OF_USER}/{{key_id}}", returns=ApiKey)
REVOKE: Endpoint[None] = Endpoint("DELETE", f"{OF_USER}/{{key_id}}", status=204)
ROTATE = Endpoint("POST", f"{OF_USER}/{{key_id}}/rotate", body=ApiKeyRotate, returns=ApiKeySecret)
VALIDATE = Endpoint("POST", f"{KEYS}/validate", body=ApiKeyCheck, returns=ApiKeyVerdict)
