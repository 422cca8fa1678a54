"""SQL statements on the live frontier: its rows, directories, operation logs and checkpoints."""

from __future__ import annotations

import msgspec
from sqlalchemy import BigInteger, and_, bindparam, cast, delete, func, insert, select, union, update

from relay.db.engine.database import Row
from relay.db.schema.account import account
from relay.db.schema.live import checkpoint, lane, lane_dir, lane_final, lane_log, replica
from relay.db.schema.ref import ref


class LaneRow(msgspec.Struct, frozen=True, gc=False):
    """One path of a branch's live frontier. `last_seq`: number of its last change, which `last_replica` made;
    `second_seq`: number of the last change by any other replica. `edited`: whether the lane's log of this
    epoch has operations."""

    path: str
    kind: str
    gen: int
    epoch: int
    ver: int
    digest: bytes
    size: int
    genesis: bytes
    edited: bool
    last_replica: int
    last_seq: int
    second_seq: int

    @property
    def living(self) -> bool:
        return self.kind != "gone"

    @property
    def stand(self) -> tuple[int, bytes]:
        """The version of the CRDT text (lane) in this row: (number of its last change, digest of the text). A
        cached lane with another version is out of date."""
        return self.ver, self.digest

    def other(self, by: int) -> int:
        """The number of the last change that any replica except `by` made."""
        return self.second_seq if self.last_replica == by else self.last_seq

    def with_change(self, by: int, seq: int) -> LaneRow:
        """The row after replica `by` changed the path by the update number `seq`."""
        return msgspec.structs.replace(
            self, ver=seq, last_replica=by, last_seq=seq, second_seq=self.other(by)
        )

    def edit(self, by: int, seq: int, digest: bytes, size: int) -> LaneRow:
        """The row after replica `by` edited the text by the update number `seq`. `digest` and `size`: those
        of the new text."""
        return LaneRow(
            self.path,
            self.kind,
            self.gen,
            self.epoch,
            seq,
            digest,
            size,
            self.genesis,
            True,
            by,
            seq,
            self.other(by),
        )


COLUMNS = (
    lane.c.path,
    lane.c.kind,
    lane.c.gen,
    lane.c.epoch,
    lane.c.ver,
    lane.c.digest,
    lane.c.size,
    lane.c.genesis,
    lane.c.edited,
    lane.c.last_replica,
    lane.c.last_seq,
    lane.c.second_seq,
)
_BRANCH = lane.c.branch_id == bindparam("branch_id")
_LIVING = lane.c.kind != "gone"
_UNSEALED = and_(_BRANCH, lane.c.ver > bindparam("since"))

BY_PATH = select(*COLUMNS).where(_BRANCH, lane.c.path.in_(bindparam("paths", expanding=True)))
ALL = select(*COLUMNS).where(_BRANCH)
SINCE = select(*COLUMNS).where(_UNSEALED)
EDITED = select(*COLUMNS).where(_BRANCH, lane.c.edited, lane.c.kind == "text", lane.c.ver <= bindparam("at"))
# What is, or was, below a directory.
BELOW = select(lane.c.path, lane.c.kind).where(
    _BRANCH, lane.c.path > bindparam("first"), lane.c.path < bindparam("last")
)
# Files and summed bytes of binaries: what the caps of a tree are about.
TOTALS = select(
    func.count(),
    cast(func.coalesce(func.sum(lane.c.size).filter(lane.c.kind != "text"), 0), BigInteger),
).where(_BRANCH, _LIVING)
INSERT = insert(lane)
UPDATE = (
    update(lane)
    .where(lane.c.branch_id == bindparam("at_branch"), lane.c.path == bindparam("at_path"))
    .values({column.name: bindparam(column.name) for column in COLUMNS if column.name != "path"})
)
# A sealed text as the genesis of a new epoch. Only these columns: the others have indexes to write.
NEXT_EPOCH = (
    update(lane)
    .where(lane.c.branch_id == bindparam("at_branch"), lane.c.path == bindparam("at_path"))
    .values(epoch=bindparam("epoch"), genesis=None, edited=False)
)

DIRECTORIES = select(lane_dir.c.path, lane_dir.c.files).where(
    lane_dir.c.branch_id == bindparam("branch_id"),
    lane_dir.c.path.in_(bindparam("paths", expanding=True)),
)
INSERT_DIRECTORY = insert(lane_dir)
COUNT_DIRECTORY = (
    update(lane_dir)
    .where(lane_dir.c.branch_id == bindparam("at_branch"), lane_dir.c.path == bindparam("at_path"))
    .values(files=bindparam("files"))
)

_OF_LANE = and_(lane_log.c.branch_id == bindparam("branch_id"), lane_log.c.gen == bindparam("gen"))
LOG = (
    select(lane_log.c.operation)
    .where(_OF_LANE, lane_log.c.epoch == bindparam("epoch"))
    .order_by(lane_log.c.seq, lane_log.c.part)
)
_NOW = lane.join(
    lane_log,
    and_(
        lane_log.c.branch_id == lane.c.branch_id,
        lane_log.c.gen == lane.c.gen,
        lane_log.c.epoch == lane.c.epoch,
    ),
)
_OF_PATHS = and_(_BRANCH, lane.c.path.in_(bindparam("paths", expanding=True)))
# Operations of the present epochs of many lanes, each lane's in order.
LOGS = (
    select(lane.c.gen, lane.c.epoch, lane_log.c.operation)
    .select_from(_NOW)
    .where(_OF_PATHS)
    .order_by(lane.c.path, lane_log.c.seq, lane_log.c.part)
)
# How many they are, and their bytes.
LOG_SIZES = (
    select(lane.c.path, func.count(), func.sum(func.length(lane_log.c.operation)))
    .select_from(_NOW)
    .where(_OF_PATHS)
    .group_by(lane.c.path)
)
APPEND = insert(lane_log)
DROP_LOG = delete(lane_log).where(_OF_LANE, lane_log.c.epoch == bindparam("epoch"))
DROP_LOGS = delete(lane_log).where(_OF_LANE, lane_log.c.epoch < bindparam("oldest"))
# Which of these numbers are of lanes that were edited.
EDITED_GENS = union(
    *(
        select(table.c.gen).where(
            table.c.branch_id == bindparam("branch_id"), table.c.gen.in_(bindparam("gens", expanding=True))
        )
        for table in (lane_log, lane_final)
    )
)

FINALS = (
    select(lane_final.c.epoch, lane_final.c.genesis, lane_final.c.state)
    .where(
        lane_final.c.branch_id == bindparam("branch_id"),
        lane_final.c.gen == bindparam("gen"),
        lane_final.c.epoch >= bindparam("epoch"),
    )
    .order_by(lane_final.c.epoch)
)
KEEP_FINAL = insert(lane_final)
DROP_FINALS = delete(lane_final).where(
    lane_final.c.branch_id == bindparam("branch_id"),
    lane_final.c.gen == bindparam("gen"),
    lane_final.c.epoch < bindparam("oldest"),
)

# Who changed what since the seal, but for one device: (path, handle).
_OTHERS = replica.c.device_key_id != bindparam("device_key_id")
LIVE_BY = union(
    select(lane.c.path, account.c.handle)
    .select_from(
        lane.join(replica, replica.c.id == lane.c.last_replica).join(
            account, account.c.id == replica.c.account_id
        )
    )
    .where(_UNSEALED, _OTHERS),
    select(lane.c.path, account.c.handle)
    .select_from(_NOW.join(account, account.c.id == lane_log.c.account_id))
    .where(
        _UNSEALED,
        lane_log.c.seq > bindparam("since"),
        lane_log.c.device_key_id != bindparam("device_key_id"),
    ),
)

# The counter of a branch; the update locks its row until the transaction ends.
LOCK = (
    update(ref)
    .where(ref.c.id == bindparam("ref_id"), ref.c.deleted_at.is_(None))
    .values(seq=ref.c.seq)
    .returning(ref.c.seq)
)
COUNT = (
    update(ref)
    .where(ref.c.id == bindparam("ref_id"))
    .values(seq=bindparam("to"), updated_at=bindparam("now"))
)
SEALED = update(ref).where(ref.c.id == bindparam("ref_id")).values(sealed_seq=bindparam("to"))

LAST_CHECKPOINT = (
    select(checkpoint.c.seq, checkpoint.c.turn_id)
    .where(checkpoint.c.branch_id == bindparam("branch_id"))
    .order_by(checkpoint.c.seq.desc(), checkpoint.c.created_at.desc())
    .limit(1)
)
DROP_CHECKPOINTS = delete(checkpoint).where(checkpoint.c.branch_id == bindparam("branch_id"))
CHECKPOINT = insert(checkpoint)
# The counter of a branch that went quiet with changes after its last checkpoint.
QUIET = select(ref.c.seq).where(
    ref.c.id == bindparam("branch_id"),
    ref.c.deleted_at.is_(None),
    ref.c.seq > ref.c.sealed_seq,
    ref.c.updated_at <= bindparam("before"),
    ~select(checkpoint.c.id)
    .where(checkpoint.c.branch_id == ref.c.id, checkpoint.c.seq >= ref.c.seq)
    .exists(),
)


def to_row(columns: Row) -> LaneRow:
    path, kind, gen, epoch, ver, digest, size, genesis, edited, replica_id, last, second = columns
    return LaneRow(
        path, kind, gen, epoch, ver, digest, size, genesis or digest, bool(edited), replica_id, last, second
    )
