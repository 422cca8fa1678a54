"""Statements on files that are stored as chunks. A row says: this repository holds every chunk of the file,
and they were read and compared with its digest once."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, select, update

from relay.db.schema import chunked_file
from relay.db.upsert import InsertNew

_ASKED = and_(
    chunked_file.c.repo_id == bindparam("repo_id"),
    chunked_file.c.digest.in_(bindparam("digests", expanding=True)),
)

INSERT = InsertNew(chunked_file)
ANY = select(chunked_file.c.size).where(chunked_file.c.repo_id == bindparam("repo_id")).limit(1)
SIZES = select(chunked_file.c.digest, chunked_file.c.size).where(_ASKED)
MANIFEST = select(chunked_file.c.manifest).where(
    chunked_file.c.repo_id == bindparam("repo_id"), chunked_file.c.digest == bindparam("digest")
)
TOUCH = update(chunked_file).where(_ASKED).values(last_seen=bindparam("now"))
MANIFESTS = select(chunked_file.c.manifest).distinct()
ALL = select(chunked_file.c.repo_id, chunked_file.c.digest, chunked_file.c.manifest, chunked_file.c.size)
