"""A look at a working copy: everywhere, or only where a watcher says that something changed.

The records carry the moment up to which they are true, written in the step that makes them so. The moment of
a look is asked for before it begins, so that what changes meanwhile is told again.
"""

from __future__ import annotations

import os
from pathlib import Path

from localstore.cutting import CutLists
from localstore.db import Database
from localstore.files import Files
from localstore.found import Lost, News, Part, Scan, changed_asides
from localstore.scanner import scan
from localstore.watch import talk
from localstore.watch.talk import Changes, Token


def look_around(
    db: Database, files: Files, record: Path, lists: CutLists | None = None, lean: bool = False
) -> Scan:
    """Look at the folder of a record and remember what was found. `lean`: take a watcher's word for the
    folders that did not change. Without one, or where its word leads nowhere, the look goes everywhere."""
    since = db.looked()
    told = talk.changes(record, since)
    if lean and told is not None and told.known and since is not None:
        try:
            return _some(db, files, lists, told, since)
        except Lost:
            pass  # a folder went while we walked, or the word was wrong
    return _everywhere(db, files, lists, told.token if told else None, since)


def _everywhere(
    db: Database, files: Files, lists: CutLists | None, now: Token | None, since: Token | None
) -> Scan:
    found, news = scan(files, db.folders(), db, lists)
    asides = changed_asides(db.asides(), found.asides) if now else {}
    if any(news) or asides or now != since:
        with db.step():
            _keep(db, news)
            db.put_asides(asides)
            db.put_looked(now)
    return found


def _some(db: Database, files: Files, lists: CutLists | None, told: Changes, since: Token) -> Scan:
    before = db.asides()
    part = Part(
        {*map(os.fsdecode, told.files), *db.single_folders()}
        | {folder for folder, aside in before.items() if aside.again == "files"},
        {*map(os.fsdecode, told.all), *(folder for folder, aside in before.items() if aside.again == "all")},
    )
    found, news = scan(files, db.folders_in(part), db, lists, part) if part else (Scan(), News({}, [], []))
    found.asides |= {folder: aside for folder, aside in before.items() if not part.covers(folder)}
    asides = changed_asides(before, found.asides)
    if any(news) or asides or told.token != since:
        with db.step():
            _keep(db, news)
            db.put_asides(asides)
            db.put_looked(told.token)
    found.lean(lambda: db.folders().values(), db.file)
    return found


def _keep(db: Database, news: News) -> None:
    if any(news):
        db.put_folders(*news)
