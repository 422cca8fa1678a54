"""SQL statements on packs, frames and objects. A row of `repo_object` gives a repository access to an
object."""

from __future__ import annotations

import msgspec
from sqlalchemy import and_, bindparam, case, delete, insert, or_, select, update

from relay.db.engine.database import Row
from relay.db.engine.upsert import InsertNew
from relay.db.schema.storage import frame, lent_object, object_, pack, repo_object


class Located(msgspec.Struct, frozen=True, gc=False):
    """Where an object is stored: its frame in a pack, and its place in the decompressed frame (`offset`,
    `size`). `stored_len` and `raw_len`: length of the frame as stored, and decompressed."""

    digest: bytes
    pack: str
    frame_offset: int
    stored_len: int
    raw_len: int
    codec: int
    offset: int
    size: int
    directory: bool

    @property
    def frame(self) -> tuple[str, int]:
        return self.pack, self.frame_offset


_COLUMNS = (
    object_.c.digest,
    pack.c.name,
    object_.c.frame_offset,
    frame.c.stored_len,
    frame.c.raw_len,
    frame.c.codec,
    object_.c.offset,
    object_.c.size,
    object_.c.directory,
)
_PLACED = object_.join(
    frame, and_(frame.c.pack_id == object_.c.pack_id, frame.c.offset == object_.c.frame_offset)
).join(pack, pack.c.id == object_.c.pack_id)
_ASKED = object_.c.digest.in_(bindparam("digests", expanding=True))
_IN_REPO = and_(
    repo_object.c.repo_id == bindparam("repo_id"),
    repo_object.c.digest.in_(bindparam("digests", expanding=True)),
)

PACK_INSERT = InsertNew(pack).values(
    {one: bindparam(one.name) for one in (pack.c.name, pack.c.size, pack.c.created_at)}
)
PACK_ID = select(pack.c.id).where(pack.c.name == bindparam("name"))
PACK_GROW = (
    update(pack)
    .where(pack.c.id == bindparam("pack_id"))
    .values(size=case((pack.c.size < bindparam("end"), bindparam("end")), else_=pack.c.size))
)
FRAME_INSERT = insert(frame)
OBJECT_INSERT = InsertNew(object_)
SCOPE_INSERT = InsertNew(repo_object)

KNOWN = select(object_.c.digest).where(_ASKED)
SEEN = select(object_.c.digest, object_.c.last_seen).where(_ASKED)
IN_REPO = select(repo_object.c.digest).where(_IN_REPO)
LOCATE = select(*_COLUMNS).select_from(_PLACED).where(_ASKED)
_HELD_HERE = (
    select(repo_object.c.digest)
    .where(repo_object.c.repo_id == bindparam("repo_id"), repo_object.c.digest == object_.c.digest)
    .exists()
)
_LENT_HERE = (
    select(lent_object.c.digest)
    .where(lent_object.c.repo_id == bindparam("repo_id"), lent_object.c.digest == object_.c.digest)
    .exists()
)
# What a repository reads: its own objects, and those that a proposal lends it.
LOCATE_IN_REPO = select(*_COLUMNS).select_from(_PLACED).where(_ASKED, or_(_HELD_HERE, _LENT_HERE))
LEND = InsertNew(lent_object)
LENT = select(lent_object.c.digest).where(
    lent_object.c.repo_id == bindparam("repo_id"),
    lent_object.c.digest.in_(bindparam("digests", expanding=True)),
)
ANY_LENT = select(lent_object.c.digest).where(lent_object.c.repo_id == bindparam("repo_id")).limit(1)
TAKE_OVER = delete(lent_object).where(
    lent_object.c.repo_id == bindparam("repo_id"),
    lent_object.c.digest.in_(bindparam("digests", expanding=True)),
)
# The rows are locked in one order, so that two transactions never wait for each other.
TOUCH = (
    update(object_)
    .where(
        object_.c.digest.in_(
            select(object_.c.digest)
            .where(_ASKED, object_.c.last_seen < bindparam("stale"))
            .order_by(object_.c.digest)
            .with_for_update(key_share=True)
        )
    )
    .values(last_seen=bindparam("now"))
)
# Files of a repository: its objects without its directories.
HELD = (
    select(object_.c.digest, object_.c.size, object_.c.last_seen)
    .select_from(object_.join(repo_object, repo_object.c.digest == object_.c.digest))
    .where(_IN_REPO, ~object_.c.directory)
)


def to_located(columns: Row) -> Located:
    return Located(*columns)
