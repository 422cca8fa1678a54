"""SQL statements about the node as a whole."""

from __future__ import annotations

from sqlalchemy import BigInteger, cast, func, literal, select

from relay.db.schema.job import job
from relay.db.schema.repo import repo
from relay.db.schema.seal import seal
from relay.db.schema.storage import object_, pack

ALIVE = select(literal(1))
REPOSITORIES = select(func.count()).select_from(repo).where(repo.c.deleted_at.is_(None))
SEALS = select(func.count()).select_from(seal)
OBJECTS = select(func.count()).select_from(object_)
PACK_BYTES = select(cast(func.sum(pack.c.size), BigInteger))
JOBS_WAITING = select(func.count()).select_from(job).where(job.c.done_at.is_(None))
