"""SQL statements with which the audit checks all stored data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, func, literal, or_, select

from relay.db.engine.database import Row
from relay.db.ref import COLUMNS as REF_COLUMNS
from relay.db.schema.account import device_key
from relay.db.schema.event import event
from relay.db.schema.live import lane_dir, lane_final
from relay.db.schema.ref import ref
from relay.db.schema.release import release, release_asset
from relay.db.schema.repo import lineage, repo, tree_key
from relay.db.schema.seal import repo_seal, seal, seal_parent
from relay.db.schema.storage import chunked_file, frame, lent_object, object_, pack, repo_object
from relay.db.seal import OWN_COLUMNS
from relay.db.storage.collect import OWNED_PARTLY


@dataclass(slots=True, frozen=True)
class FrameRow:
    """A frame of a pack. `raw_len`: its length once it is decompressed."""

    offset: int
    stored_len: int
    raw_len: int
    codec: int


@dataclass(slots=True, frozen=True)
class SignedSealRow:
    """A seal and the key that signed it."""

    id: str
    repo_id: str
    branch: str
    generation: int
    root: bytes
    payload: bytes
    signature: bytes
    account_id: str
    device_key_id: str
    message: str
    created_at: int
    public_key: bytes
    key_revoked_at: int | None


_IDS: Any = bindparam("ids", expanding=True)
_REPO: Any = bindparam("repo_id")
_BRANCH: Any = bindparam("branch_id")

# --- packs
PACKS = select(pack.c.id, pack.c.name, pack.c.size).order_by(pack.c.id)
FRAMES = (
    select(frame.c.offset, frame.c.stored_len, frame.c.raw_len, frame.c.codec)
    .where(frame.c.pack_id == bindparam("pack_id"))
    .order_by(frame.c.offset)
)
FRAME_OBJECTS = select(
    object_.c.frame_offset, object_.c.offset, object_.c.size, object_.c.digest, object_.c.directory
).where(
    object_.c.pack_id == bindparam("pack_id"),
    object_.c.frame_offset.in_(bindparam("frames", expanding=True)),
)

# --- seals
SEALS = (
    select(
        *OWN_COLUMNS,
        device_key.c.ed25519,
        device_key.c.revoked_at,
    )
    .select_from(seal.join(device_key, device_key.c.id == seal.c.device_key_id))
    .where(seal.c.id > bindparam("after"))
    .order_by(seal.c.id)
    .limit(bindparam("limit"))
)
PARENTS = (
    select(seal_parent.c.seal_id, seal_parent.c.parent_id)
    .where(seal_parent.c.seal_id.in_(_IDS))
    .order_by(seal_parent.c.seal_id, seal_parent.c.position)
)
LINEAGES = select(lineage.c.repo_id, lineage.c.of_id).where(lineage.c.repo_id.in_(_IDS))
GENERATIONS = select(seal.c.id, seal.c.generation).where(seal.c.id.in_(_IDS))
LOST_HEADS = (
    select(ref.c.repo_id, ref.c.type, ref.c.name, ref.c.head)
    .select_from(ref.outerjoin(seal, seal.c.id == ref.c.head))
    .where(ref.c.head.is_not(None), ref.c.deleted_at.is_(None), seal.c.id.is_(None))
)
_FIRST = and_(seal_parent.c.seal_id == seal.c.id, seal_parent.c.position == 0)
SHARED_PARENTS = (
    select(seal.c.repo_id, seal.c.branch, seal_parent.c.parent_id, func.count())
    .select_from(seal.join(seal_parent, _FIRST))
    .group_by(seal.c.repo_id, seal.c.branch, seal_parent.c.parent_id)
    .having(func.count() > 1)
)
SHARED_STARTS = (
    select(seal.c.repo_id, seal.c.branch, literal("").label("parent"), func.count())
    .select_from(seal.outerjoin(seal_parent, _FIRST))
    .where(seal_parent.c.seal_id.is_(None))
    .group_by(seal.c.repo_id, seal.c.branch)
    .having(func.count() > 1)
)
REF_EVENTS = select(event.c.data).where(event.c.repo_id == _REPO, event.c.kind == "ref")

# --- trees
TREE_KEYS = select(tree_key.c.repo_id, tree_key.c.key)
ROOTS = (
    select(seal.c.root, repo.c.id, repo.c.tree_key)
    .select_from(seal.join(repo, repo.c.id == seal.c.repo_id))
    .where(repo.c["class"] != "private_e2ee", ~OWNED_PARTLY)
    .distinct()
)
PARTIAL_ROOTS = (
    select(repo_seal.c.root, repo_seal.c.repo_id, seal.c.root)
    .select_from(repo_seal.join(seal, seal.c.id == repo_seal.c.seal_id))
    .where(repo_seal.c.root.is_not(None))
    .distinct()
)
HELD = select(object_.c.digest, object_.c.size).where(
    object_.c.digest.in_(bindparam("digests", expanding=True)),
    ~object_.c.directory,
    or_(
        *(
            select(scope.c.digest)
            .where(scope.c.repo_id == _REPO, scope.c.digest == object_.c.digest)
            .exists()
            for scope in (repo_object, lent_object)
        )
    ),
)

# --- live frontiers
BRANCHES = select(*REF_COLUMNS).where(ref.c.type == "branch", ref.c.deleted_at.is_(None))
SEQ = select(ref.c.seq).where(ref.c.id == _BRANCH)
DIRECTORIES = select(lane_dir.c.path, lane_dir.c.files).where(lane_dir.c.branch_id == _BRANCH)
FINALS = select(lane_final.c.gen, lane_final.c.epoch, lane_final.c.genesis, lane_final.c.state).where(
    lane_final.c.branch_id == _BRANCH
)

# --- releases: assets whose bytes their repository holds neither as an object nor as chunks
_HOLDS = and_(object_.c.digest == repo_object.c.digest, ~object_.c.directory)
LOST_ASSETS = (
    select(release.c.repo_id, release.c.version, release_asset.c.name, release_asset.c.digest)
    .select_from(release_asset.join(release, release.c.id == release_asset.c.release_id))
    .where(
        ~select(object_.c.digest)
        .select_from(object_.join(repo_object, _HOLDS))
        .where(
            repo_object.c.repo_id == release.c.repo_id,
            repo_object.c.digest == release_asset.c.digest,
            object_.c.size == release_asset.c.size,
        )
        .exists(),
        ~select(chunked_file.c.digest)
        .where(
            chunked_file.c.repo_id == release.c.repo_id,
            chunked_file.c.digest == release_asset.c.digest,
            chunked_file.c.size == release_asset.c.size,
        )
        .exists(),
    )
)


def to_frame(values: Row) -> FrameRow:
    return FrameRow(*values)


def to_seal(values: Row) -> SignedSealRow:
    return SignedSealRow(*values)
