"""The tables of a working copy's database."""

from __future__ import annotations

from localstore.record import arrivals, conflicts, differences, scan_record

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE entries(path TEXT PRIMARY KEY, kind TEXT NOT NULL, gen INTEGER NOT NULL, epoch INTEGER NOT NULL,
    seen INTEGER NOT NULL, genesis BLOB, touched INTEGER NOT NULL, pending INTEGER NOT NULL, want BLOB,
    size INTEGER NOT NULL, shadow BLOB) WITHOUT ROWID;
CREATE TABLE lane_states(path TEXT PRIMARY KEY, state BLOB NOT NULL);
CREATE TABLE pending(id INTEGER PRIMARY KEY, path TEXT NOT NULL, ops BLOB NOT NULL);
CREATE INDEX pending_path ON pending(path);
CREATE TABLE flights(n INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE rows(path TEXT PRIMARY KEY, kind TEXT NOT NULL, gen INTEGER NOT NULL, epoch INTEGER NOT NULL,
    ver INTEGER NOT NULL, other INTEGER NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL,
    live INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sealed(path TEXT PRIMARY KEY, kind TEXT NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL)
    WITHOUT ROWID;
CREATE TABLE stats(path TEXT PRIMARY KEY, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
    ctime INTEGER NOT NULL, inode INTEGER NOT NULL, kind TEXT NOT NULL, digest BLOB NOT NULL,
    checked INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE journal(temp TEXT PRIMARY KEY, path TEXT NOT NULL, inode INTEGER, new BLOB, state TEXT NOT NULL);
CREATE TABLE objects(digest BLOB PRIMARY KEY, pack INTEGER NOT NULL, offset INTEGER NOT NULL,
    stored INTEGER NOT NULL, codec INTEGER NOT NULL, raw INTEGER NOT NULL, start INTEGER NOT NULL,
    size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE unwritable(path TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
"""
DIRECTORIES = "CREATE TABLE directories(digest BLOB PRIMARY KEY, raw BLOB NOT NULL) WITHOUT ROWID;"
WHOLE = "ALTER TABLE lane_states ADD COLUMN whole INTEGER NOT NULL DEFAULT 1;"
# From each version of the schema to the next.
STEPS = (
    SCHEMA,
    scan_record.SCHEMA + DIRECTORIES + differences.SCHEMA + differences.FILL,
    scan_record.ASIDES,
    differences.INDEXES,
    WHOLE,
    scan_record.MARKS,
    conflicts.SCHEMA,
    conflicts.SEVERAL,
    arrivals.SCHEMA,
    conflicts.ANY_KIND,
)
