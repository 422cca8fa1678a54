"""API keys of an account: secrets that the account's programs check, each with scopes and an expiry.

A key is no credential of the relay: no route accepts it instead of a session. A program that receives a key
calls `VALIDATE` to get the key's scopes.
"""

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
    """An API key. `prefix`: the beginning of its secret, to tell keys apart."""

    id: str
    name: str
    prefix: str
    scopes: list[Capability]
    created_at: str
    last_used_at: str | None
    expires_at: str | None
    revoked_at: str | None


class ApiKeySecret(ApiKey, frozen=True):
    """A key with its secret, which no later answer repeats."""

    secret: str


class ApiKeyCreate(Sent, frozen=True):
    """A new API key. `scopes`: the uses for which programs should accept the key. `expires_at`: None for a
    key that never expires."""

    name: Annotated[str, visible(LABEL_CHARS)]
    scopes: Scopes = msgspec.field(default_factory=lambda: ["read"])
    expires_at: Moment | None = None


class ApiKeyRotate(Sent, frozen=True):
    """A request for a new secret. `overlap_seconds`: time for which the replaced secret stays valid beside
    the new one. A secret that was replaced earlier becomes invalid at once."""

    overlap_seconds: Annotated[int, msgspec.Meta(ge=0, le=API_KEY_OVERLAP)] = 0


class ApiKeyCheck(Sent, frozen=True):
    """The secret to check."""

    key: Annotated[str, msgspec.Meta(max_length=200)]


class ApiKeyVerdict(Model, frozen=True, omit_defaults=True):
    """The validity of a checked secret. Unknown, revoked and expired keys and those of other accounts have
    the same answer: only `valid` false."""

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
