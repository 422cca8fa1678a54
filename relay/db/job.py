"""SQL statements on jobs. A worker takes a job by a lease, which ends at a certain time. If the worker dies,
the job is free from that time. The value of the lease identifies the holder, and changes with each
renewal."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, null, or_, select, update

from relay.db.engine.upsert import InsertNew
from relay.db.schema.job import job

_DUE = and_(
    job.c.done_at.is_(None),
    job.c.run_at <= bindparam("now"),
    or_(job.c.leased_until.is_(None), job.c.leased_until < bindparam("now")),
)
_MINE = and_(job.c.id == bindparam("job_id"), job.c.leased_until == bindparam("lease"))

INSERT = InsertNew(job)  # an existing `key` means that the work is queued already: periodic jobs rely on it
# Those of one kind are a range of the index of open jobs: however many of it wait, others are found at once.
DUE = select(job.c.id).where(_DUE, job.c.kind == bindparam("of_kind")).limit(1)
CLAIM = (
    update(job)
    .where(
        job.c.id.in_(
            select(job.c.id)
            .where(_DUE, job.c.kind == bindparam("of_kind"))
            .order_by(job.c.run_at)
            .limit(bindparam("limit"))
            .with_for_update(skip_locked=True)
        )
    )
    .values(leased_until=bindparam("lease"), attempts=job.c.attempts + 1)
    .returning(job.c.id, job.c.kind, job.c.data, job.c.attempts, job.c.lane)
)
# Of a kind with lanes: those that are due and stand in no lane that is full.
DUE_IN_LANES = (
    select(job.c.id, job.c.lane)
    .where(_DUE, job.c.kind == bindparam("of_kind"), job.c.lane.not_in(bindparam("full", expanding=True)))
    .order_by(job.c.run_at)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
TAKE = (
    update(job)
    .where(job.c.id.in_(bindparam("ids", expanding=True)))
    .values(leased_until=bindparam("lease"), attempts=job.c.attempts + 1)
    .returning(job.c.id, job.c.kind, job.c.data, job.c.attempts, job.c.lane)
)
RENEW = update(job).where(_MINE).values(leased_until=bindparam("until"))
DONE = (
    update(job).where(_MINE).values(done_at=bindparam("now"), leased_until=null(), error=bindparam("error"))
)
AGAIN = (
    update(job)
    .where(_MINE)
    .values(run_at=bindparam("next_at"), leased_until=null(), error=bindparam("error"))
)
SWEEP = delete(job).where(job.c.done_at < bindparam("before"))
KEYS = select(job.c.key).where(job.c.key.in_(bindparam("keys", expanding=True)))
