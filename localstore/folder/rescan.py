"""A look at a working copy: everywhere, or only where a watcher says that something changed.

The records carry the moment up to which they are true, written in the step that makes them so. The moment of
a look is asked for before it begins, so that what changes meanwhile is told again.
"""

from __future__ import annotations

import os
from pathlib import Path

from localstore.folder.files import Files
from localstore.folder.scan import scan
from localstore.folder.scan_result import Lost, News, Part, Scan, changed_asides
from localstore.folder.stat_cache import NOTHING_KEPT, Kept
from localstore.record.database import Database
from localstore.record.scan_record import Looked
from localstore.watch import talk
from localstore.watch.talk import Changes

TRUST_SECONDS = 3600  # then a look goes everywhere again, for the few changes that make no event


def look_around(
    db: Database, files: Files, record: Path, now: int, kept: Kept = NOTHING_KEPT, lean: bool = False
) -> Scan:
    """Look at the folder of a record and remember what was found. `lean`: take a watcher's word for the
    folders that did not change. Without one, or where its word leads nowhere, the look goes everywhere. `now`
    is in seconds of Unix time."""
    last = db.disk.looked()
    told = talk.changes(record, last.token if last else None)
    if lean and told is not None and told.known and last and 0 <= now - last.everywhere < TRUST_SECONDS:
        try:
            return _some(db, files, kept, told, last)
        except Lost:
            pass  # a folder went while we walked, or the word was wrong
    return _everywhere(db, files, kept, Looked(told.token, now) if told else None, last)


def _everywhere(db: Database, files: Files, kept: Kept, this: Looked | None, last: Looked | None) -> Scan:
    found, news = scan(files, db.folders(), db, kept)
    asides = changed_asides(db.disk.asides(), found.asides) if this else {}
    if any(news) or asides or this != last:
        with db.step():
            _keep(db, news)
            db.disk.put_asides(asides)
            db.disk.put_looked(this)
    return found


def _some(db: Database, files: Files, kept: Kept, told: Changes, last: Looked) -> Scan:
    before = db.disk.asides()
    part = Part(
        {*map(os.fsdecode, told.files), *db.disk.single_folders()}
        | {folder for folder, aside in before.items() if aside.again == "files"},
        {*map(os.fsdecode, told.all), *(folder for folder, aside in before.items() if aside.again == "all")},
    )
    found, news = (
        scan(files, db.disk.folders_in(part), db, kept, part) if part else (Scan(), News({}, [], []))
    )
    found.asides |= {folder: aside for folder, aside in before.items() if not part.covers(folder)}
    asides = changed_asides(before, found.asides)
    if any(news) or asides or told.token != last.token:
        with db.step():
            _keep(db, news)
            db.disk.put_asides(asides)
            db.disk.put_looked(Looked(told.token, last.everywhere))
    found.lean(lambda: db.folders().values(), db.disk.file)
    return found


def _keep(db: Database, news: News) -> None:
    if any(news):
        db.put_folders(*news)
