"""Releases: versions that name an exact seal, with notes and files to download (assets)."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from localstore.core import paths
from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Invalid, PathInvalid
from localstore.core.model.base import Actor, Count, Model, Page, PageQuery, Sent
from localstore.core.model.limits import ASSET_NAME_BYTES, ASSET_TYPE_CHARS, NOTES_BYTES, VERSION_CHARS


class ReleaseExists(Conflict):
    """The repository has a release of this version."""

    code = "release_exists"


class AssetExists(Conflict):
    """The release has an asset with this name, compared without case. `name`, `blake3` and `size` describe
    that asset."""

    code = "asset_exists"


BYTES = "application/octet-stream"
_WORD = r"[0-9A-Za-z!#$&^_.+-]{1,127}"
_MEDIA_TYPE = re.compile(rf'{_WORD}/{_WORD}(; ?{_WORD}=({_WORD}|"[0-9A-Za-z !#$&^_.+:/-]*"))*')
Version = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=VERSION_CHARS,
        pattern=r"^[0-9A-Za-z][0-9A-Za-z._+-]*(?!\n)$",
        description=f"1 to {VERSION_CHARS} letters, digits and . _ + -, beginning with a letter or digit, "
        "such as v1.0.0",
    ),
]
SealId = Annotated[
    str, msgspec.Meta(pattern=r"^[0-9a-f]{64}(?!\n)$", description="the 64 hex digits of a seal")
]
Notes = Annotated[str, msgspec.Meta(max_length=NOTES_BYTES)]


class Asset(Model, frozen=True):
    """A file of a release. `size`: bytes."""

    name: str
    size: Count
    blake3: str
    content_type: str
    uploaded_by: Actor
    created_at: str


class Publication(Model, frozen=True):
    """The signature of a release. `signed`: whether somebody with write access signed it with its present
    assets. `key_id`: the device key that signed. `public_key`, `signature`: base64url."""

    signed: bool = False
    key_id: str | None = None
    public_key: str | None = None
    signature: str | None = None
    signed_by: Actor | None = None
    signed_at: str | None = None


UNSIGNED = Publication()


class Release(Model, frozen=True):
    """A release of a seal. `notes`: the author's text. `assets`: sorted by name."""

    version: str
    seal_id: str
    notes: str
    author: Actor
    assets: list[Asset]
    created_at: str
    publication: Publication = UNSIGNED


class ReleaseCreate(Sent, frozen=True):
    """A new release. `seal_id`: a seal of this repository, by its full id."""

    version: Version
    seal_id: SealId
    notes: Notes = ""


class ReleaseEdit(Model, frozen=True, forbid_unknown_fields=True):
    """New notes of a release; version and seal cannot change."""

    notes: Notes


class AssetUpload(Model, frozen=True):
    """The query of an asset's upload. `name`: file name without a folder. `manifest`: the body is not the
    file itself, but the list of its chunks, because the file is large. The chunks were sent in packs before;
    after an interruption only missing chunks are sent. `replaces`: BLAKE3 of an existing asset of this name,
    which is replaced once the new one has arrived completely."""

    name: str
    manifest: bool = False
    replaces: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{64})?$")] = ""


def check_asset_name(name: str) -> str:
    """Check the name of an asset and return it. Raises Invalid unless every system can store a file with this
    name: a single segment without control characters, invisible characters, or characters that change the
    direction of text."""
    try:
        paths.check(name)
        fault = "it has a folder" if "/" in name else next(iter(paths.portability(name)), "")
    except PathInvalid as error:
        raise Invalid(error.detail.replace("path ", "the name ", 1), pointer="/name") from None
    if not fault and len(name.encode()) > ASSET_NAME_BYTES:
        fault = f"it is longer than {ASSET_NAME_BYTES} bytes"
    if not fault and (name != name.strip() or paths.terminal_safe(name) != name):
        fault = "it has a character that nobody sees"
    if fault:
        raise Invalid(
            f"the name '{paths.terminal_safe(name)[:200]}' of an asset is refused: {fault}", pointer="/name"
        )
    return name


def media_type(given: str | None) -> str:
    """The media type of an asset. `given`: the Content-Type of its upload; without it, the result is
    `application/octet-stream`. Raises Invalid if `given` is malformed."""
    if given is None:
        return BYTES
    if len(given) > ASSET_TYPE_CHARS or not _MEDIA_TYPE.fullmatch(given):
        raise Invalid("the Content-Type is not a media type, such as application/zip")
    return given


_ONE = f"{REPO}/releases/{{v}}"
_ASSET = f"{_ONE}/assets/{{name}}"
LIST = Endpoint("GET", f"{REPO}/releases", query=PageQuery, returns=Page[Release])
CREATE = Endpoint("POST", f"{REPO}/releases", body=ReleaseCreate, returns=Release, status=201)
GET = Endpoint("GET", _ONE, returns=Release)
EDIT = Endpoint("PATCH", _ONE, body=ReleaseEdit, returns=Release)
DELETE: Endpoint[None] = Endpoint("DELETE", _ONE, status=204)
ASSETS = Endpoint("GET", f"{_ONE}/assets", query=PageQuery, returns=Page[Asset])
# A repeat is refused with AssetExists, which says what is there: the client knows its own bytes again.
UPLOAD = Endpoint(
    "POST", f"{_ONE}/assets", query=AssetUpload, returns=Asset, status=201, repeatable=True, keyed=False
)
DOWNLOAD = Endpoint("GET", _ASSET, returns=bytes)
DELETE_ASSET: Endpoint[None] = Endpoint("DELETE", _ASSET, status=204)
