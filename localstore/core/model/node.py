"""What a relay says about itself."""

from __future__ import annotations

from typing import Literal

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.model.base import Model


class Health(Model, omit_defaults=True, frozen=True):
    """The health of a relay. `checks`: `ok` or `down` for each dependency; empty if the request only asked
    whether the process lives. `status`: degraded if the relay works, but refuses requests that need disk
    space."""

    status: Literal["ok", "degraded", "unavailable"]
    checks: dict[str, str] = msgspec.field(default_factory=dict)


class RelayVersion(Model, frozen=True):
    edition: str
    api_version: int
    source_url: str
    version: str
    commit: str
    built_at: str
    min_client: str


class E2ee(Model, frozen=True):
    status: Literal["disabled", "ready", "unavailable"]
    reason: str | None = None
    single_user: bool = False
    org: bool = False
    private: bool = False


class NodeInfo(Model, frozen=True):
    """A relay, as it describes itself. `identity`: its origin (public URL); `sign_in`: the ways to sign in
    that it offers."""

    name: str
    identity: str
    edition: str
    screening: Literal["screened", "unscreened"]
    source_url: str
    e2ee: E2ee
    sign_in: list[str]


class ClientConfig(Model, frozen=True):
    """Settings for clients of a relay. `git`: whether git can clone from it by https."""

    api_version: int
    flags: dict[str, bool | str]
    node: NodeInfo
    git: bool = False


HEALTH = Endpoint("GET", "/health", returns=Health)
READY = Endpoint("GET", "/ready", returns=Health)
READYZ = Endpoint("GET", "/readyz", returns=Health)
VERSION = Endpoint("GET", "/version", returns=RelayVersion)
CONFIG = Endpoint("GET", "/api/v1/client-config", returns=ClientConfig)
