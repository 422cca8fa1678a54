"""SQL statements of the collector. They find which objects are referred to, which are not, and how full packs
are."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, bindparam, delete, func, select, tuple_, update

from relay.db.schema.live import lane, lane_final
from relay.db.schema.ref import ref
from relay.db.schema.release import release_asset
from relay.db.schema.repo import repo
from relay.db.schema.seal import prepare, repo_seal, seal
from relay.db.schema.storage import frame, object_, pack, repo_object

# --- what is referred to. A repository has its rows until it is purged.

# Whoever has the whole tree of a seal is, or becomes, its repository; others name their partial trees.
OWNED_PARTLY = (
    select(repo_seal.c.seal_id)
    .where(
        repo_seal.c.repo_id == seal.c.repo_id,
        repo_seal.c.seal_id == seal.c.id,
        repo_seal.c.root.is_not(None),
    )
    .correlate(seal)
    .exists()
)
SEAL_ROOTS = (
    select(seal.c.root)
    .select_from(seal.join(repo, repo.c.id == seal.c.repo_id))
    .where(repo.c["class"] != "private_e2ee", ~OWNED_PARTLY)
    .distinct()
)
PARTIAL_ROOTS = select(repo_seal.c.root).where(repo_seal.c.root.is_not(None)).distinct()
# Of a live frontier: the files that are there. One that was deleted, or whose branch was, is named by seals
# or by nobody.
LANES = (
    select(lane.c.digest, lane.c.genesis)
    .select_from(lane.join(ref, ref.c.id == lane.c.branch_id))
    .where(lane.c.kind != "gone", ref.c.deleted_at.is_(None))
)
FINALS = (
    select(lane_final.c.genesis)
    .select_from(lane_final.join(ref, ref.c.id == lane_final.c.branch_id))
    .where(ref.c.deleted_at.is_(None))
    .distinct()
)
PREPARED = select(prepare.c.seals)
ASSETS = select(release_asset.c.digest).distinct()

# --- what nobody refers to

_OLD = object_.c.last_seen < bindparam("cutoff")
_DIGESTS: Any = bindparam("digests", expanding=True)

SCOPES = (
    select(repo_object.c.repo_id, repo_object.c.digest, object_.c.size)
    .select_from(repo_object.join(object_, object_.c.digest == repo_object.c.digest))
    .where(
        tuple_(repo_object.c.repo_id, repo_object.c.digest)
        > tuple_(bindparam("after_repo"), bindparam("after_digest")),
        _OLD,
    )
    .order_by(repo_object.c.repo_id, repo_object.c.digest)
    .limit(bindparam("limit"))
)
OBJECTS = (
    select(object_.c.digest, object_.c.size)
    .where(object_.c.digest > bindparam("after"), _OLD)
    .order_by(object_.c.digest)
    .limit(bindparam("limit"))
)
# What somebody is touching at this moment is passed over: it stays, and nobody waits for the collector in a
# circle.
_UNTOUCHED = (
    select(object_.c.digest).where(object_.c.digest.in_(_DIGESTS), _OLD).with_for_update(skip_locked=True)
)
DROP_SCOPES = (
    delete(repo_object)
    .where(repo_object.c.repo_id == bindparam("repo_id"), repo_object.c.digest.in_(_UNTOUCHED))
    .returning(repo_object.c.digest)
)
DROP_OBJECTS = delete(object_).where(object_.c.digest.in_(_UNTOUCHED))

# --- packs

_IN_FRAME = and_(object_.c.pack_id == frame.c.pack_id, object_.c.frame_offset == frame.c.offset)

PACKS = (
    select(pack.c.id, pack.c.name, pack.c.size)
    .where(pack.c.id > bindparam("after"))
    .order_by(pack.c.id)
    .limit(bindparam("limit"))
)
PACK_NAMES = select(pack.c.name).where(pack.c.name.in_(bindparam("names", expanding=True)))
DROP_FRAMES = delete(frame).where(
    frame.c.pack_id == bindparam("pack_id"), ~select(object_.c.digest).where(_IN_FRAME).exists()
)
DROP_PACK = delete(pack).where(
    pack.c.id == bindparam("pack_id"), ~select(frame.c.offset).where(frame.c.pack_id == pack.c.id).exists()
)
# The frames of a pack, each with the bytes of its objects that are left.
FRAMES = (
    select(frame.c.offset, frame.c.stored_len, frame.c.raw_len, frame.c.codec, func.sum(object_.c.size))
    .select_from(frame.join(object_, _IN_FRAME))
    .where(frame.c.pack_id == bindparam("pack_id"))
    .group_by(frame.c.offset, frame.c.stored_len, frame.c.raw_len, frame.c.codec)
    .order_by(frame.c.offset)
)
FRAME_OBJECTS = (
    select(object_.c.frame_offset, object_.c.offset, object_.c.size, object_.c.digest, object_.c.directory)
    .where(
        object_.c.pack_id == bindparam("pack_id"),
        object_.c.frame_offset.in_(bindparam("frames", expanding=True)),
    )
    .order_by(object_.c.frame_offset, object_.c.offset, object_.c.digest)
)
MOVE_OBJECT = (
    update(object_)
    .where(
        object_.c.digest == bindparam("one"),
        object_.c.pack_id == bindparam("old_pack"),
        object_.c.frame_offset == bindparam("old_frame"),
    )
    .values(
        pack_id=bindparam("new_pack"), frame_offset=bindparam("new_frame"), offset=bindparam("new_offset")
    )
)
