"""SQL statements on releases and their assets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.db.schema.account import account
from relay.db.schema.release import release, release_asset
from relay.db.schema.seal import seal
from relay.db.seal import held_by


@dataclass(slots=True, frozen=True)
class ReleaseRow:
    """A release without its assets."""

    id: str
    version: str
    seal_id: str
    notes: str
    created_at: int
    author_id: str
    author_handle: str | None
    author_kind: str


@dataclass(slots=True, frozen=True)
class AssetRow:
    release_id: str
    folded: str
    name: str
    digest: bytes
    size: int
    content_type: str
    created_at: int
    uploader_id: str
    uploader_handle: str | None
    uploader_kind: str


_PEOPLE = (account.c.id.label("account_id"), account.c.handle, account.c.kind)
_r, _a = release.c, release_asset.c
_OF_REPO = _r.repo_id == bindparam("of_repo")
_RELEASES = select(_r.id, _r.version, _r.seal_id, _r.notes, _r.created_at, *_PEOPLE).select_from(
    release.join(account, account.c.id == _r.author_id)
)
_ASSETS = select(
    _a.release_id, _a.folded, _a.name, _a.digest, _a.size, _a.content_type, _a.created_at, *_PEOPLE
).select_from(release_asset.join(account, account.c.id == _a.uploader_id))
_IDS: Any = bindparam("ids", expanding=True)
_OF_RELEASE = _a.release_id == bindparam("of_release")
_ONE_ASSET = and_(_OF_RELEASE, _a.folded == bindparam("folded"))

PAGE = Keyset(_RELEASES.where(_OF_REPO), "-id")
ONE = _RELEASES.where(_OF_REPO, _r.version == bindparam("version"))
COUNT = select(func.count()).select_from(release).where(_OF_REPO)
SEALED = select(seal.c.id).where(held_by(bindparam("of_repo")), seal.c.id == bindparam("seal_id"))
INSERT = insert(release)
EDIT = update(release).where(_r.id == bindparam("of_release")).values(notes=bindparam("new_notes"))
DELETE = delete(release).where(_r.id == bindparam("of_release"))

ASSETS_OF = _ASSETS.where(_a.release_id.in_(_IDS)).order_by(_a.release_id, _a.folded)
ASSET_PAGE = Keyset(_ASSETS.where(_OF_RELEASE), "folded")
ASSET = _ASSETS.where(_ONE_ASSET)
ASSET_COUNT = select(func.count()).select_from(release_asset).where(_OF_RELEASE)
ASSET_INSERT = insert(release_asset)
ASSET_DELETE = delete(release_asset).where(_ONE_ASSET)
ASSETS_DELETE = delete(release_asset).where(_OF_RELEASE)


def release_row(columns: Row) -> ReleaseRow:
    return ReleaseRow(*columns)


def asset_row(columns: Row) -> AssetRow:
    return AssetRow(*columns)
