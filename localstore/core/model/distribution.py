"""Builds of the client that a relay offers for download."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.encoding import length_prefixed
from localstore.core.endpoint import Endpoint
from localstore.core.model.base import Model, visible
from localstore.core.model.limits import CLIENT_BUILD

_SIGNED_LABEL = b"svc-client-build-v1\0"
BUILD_NAME = r"^[0-9A-Za-z][0-9A-Za-z._+-]{0,99}(?!\n)$"
_Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}(?!\n)$")]


class Build(Model, frozen=True):
    """A build of `svc` for one kind of machine. `url`: where to download it, set by the relay. `signature`:
    Ed25519 signature of `signed_bytes` in base64url, made where the build was made; "" for an unsigned
    build."""

    name: Annotated[str, msgspec.Meta(pattern=BUILD_NAME)]
    os: Literal["linux", "macos", "windows"]
    arch: Literal["x86_64", "aarch64", "universal"]
    size: Annotated[int, msgspec.Meta(ge=1, le=CLIENT_BUILD)]
    sha256: _Sha256
    source_commit: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{7,64}(?!\n)$")]
    url: str = ""
    signature: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9_-]{86})?(?!\n)$")] = ""


class ClientRelease(Model, frozen=True):
    """A version of the client, with its builds."""

    version: Annotated[str, msgspec.Meta(pattern=r"^[0-9][0-9A-Za-z.+-]{0,49}(?!\n)$")]
    published_at: Annotated[str, visible(40)]
    artifacts: Annotated[list[Build], msgspec.Meta(max_length=100)]


def signed_bytes(version: str, build: Build) -> bytes:
    """The bytes that the signature of a build covers: the version of the client, the digest of the file, and
    the kind of machine."""
    fields = (version, build.name, build.os, build.arch, str(build.size), build.sha256, build.source_commit)
    return _SIGNED_LABEL + length_prefixed(*(field.encode() for field in fields))


RELEASE = Endpoint("GET", "/cli/release.json", returns=ClientRelease)
DOWNLOAD = Endpoint("GET", "/cli/download/{artifact}", returns=bytes)
