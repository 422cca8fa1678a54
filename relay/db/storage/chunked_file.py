"""SQL statements on files stored as chunks. A row means that this repository has every chunk of the file, and
that the chunks together match the file's digest."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, select, tuple_, update

from relay.db.engine.upsert import InsertNew
from relay.db.schema.storage import chunked_file

_ASKED = and_(
    chunked_file.c.repo_id == bindparam("repo_id"),
    chunked_file.c.digest.in_(bindparam("digests", expanding=True)),
)

INSERT = InsertNew(chunked_file)
ROWS = select(chunked_file.c.digest, chunked_file.c.manifest, chunked_file.c.size).where(_ASKED)
ANY = select(chunked_file.c.size).where(chunked_file.c.repo_id == bindparam("repo_id")).limit(1)
SIZES = select(chunked_file.c.digest, chunked_file.c.size).where(_ASKED)
MANIFEST = select(chunked_file.c.manifest).where(
    chunked_file.c.repo_id == bindparam("repo_id"), chunked_file.c.digest == bindparam("digest")
)
TOUCH = (
    update(chunked_file)
    .where(_ASKED, chunked_file.c.last_seen < bindparam("stale"))
    .values(last_seen=bindparam("now"))
)
MANIFESTS = select(chunked_file.c.manifest).distinct()
# What the collector asks about, a page at a time, and takes away.
STALE = (
    select(chunked_file.c.repo_id, chunked_file.c.digest)
    .where(
        tuple_(chunked_file.c.repo_id, chunked_file.c.digest)
        > tuple_(bindparam("after_repo"), bindparam("after_digest")),
        chunked_file.c.last_seen < bindparam("cutoff"),
    )
    .order_by(chunked_file.c.repo_id, chunked_file.c.digest)
    .limit(bindparam("limit"))
)
DROP = delete(chunked_file).where(_ASKED, chunked_file.c.last_seen < bindparam("cutoff"))
ALL = select(chunked_file.c.repo_id, chunked_file.c.digest, chunked_file.c.manifest, chunked_file.c.size)
