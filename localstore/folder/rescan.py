"""Scans a working copy: all of it, or only the folders in which a watcher process has seen changes.

The client's record stores a token: the moment up to which the record is correct. A new token is requested
before the scan begins, so that changes during the scan are reported again."""

from __future__ import annotations

import os
from pathlib import Path

from localstore.folder.files import Files
from localstore.folder.git_tracked import TrackedPaths
from localstore.folder.scan import scan
from localstore.folder.scan_result import PartialWalk, Scan, ScanChanges, WatcherMistaken, changed_exclusions
from localstore.folder.stat_cache import NO_SINKS, ScanSinks
from localstore.record.database import Database
from localstore.record.scan_record import LastScan
from localstore.watch import protocol
from localstore.watch.protocol import Changes

TRUST_SECONDS = 3600  # a full scan after this time finds the few changes that cause no event


def rescan(
    db: Database,
    files: Files,
    record: Path,
    now: int,
    tracked: TrackedPaths,
    sinks: ScanSinks = NO_SINKS,
    lean: bool = False,
) -> Scan:
    """Scan the working copy whose record is in the folder `record`, store the changes, and return the scan.

    `lean`: skip the folders that a watcher reports as unchanged. The whole folder is still scanned without a
    watcher, after a wrong answer of the watcher, or if git's tracked files changed. `now`: Unix seconds.
    `tracked`: the files that are scanned even if a rule ignores them."""
    last = db.scan_record.last_scan()
    changes = protocol.ask_changes(record, last.token if last else None)
    tracked.git.refresh()
    recent = last and 0 <= now - last.everywhere < TRUST_SECONDS and last.git == tracked.git.identity
    if lean and changes is not None and changes.known and last and recent:
        try:
            return _rescan_part(db, files, tracked, sinks, changes, last)
        except WatcherMistaken:
            pass  # a folder vanished during the walk, or the answer was wrong
    this = LastScan(changes.token, now, tracked.git.identity) if changes else None
    return _rescan_all(db, files, tracked, sinks, this, last)


def _rescan_all(
    db: Database,
    files: Files,
    tracked: TrackedPaths,
    sinks: ScanSinks,
    this: LastScan | None,
    last: LastScan | None,
) -> Scan:
    scanned, news = scan(files, db.folders(), tracked, sinks)
    asides = changed_exclusions(db.scan_record.exclusions(), scanned.exclusions) if this else {}
    if any(news) or asides or this != last:
        with db.step():
            _keep(db, news)
            db.scan_record.put_exclusions(asides)
            db.scan_record.put_last_scan(this)
    return scanned


def _rescan_part(
    db: Database, files: Files, tracked: TrackedPaths, sinks: ScanSinks, changes: Changes, last: LastScan
) -> Scan:
    before = db.scan_record.exclusions()
    part = PartialWalk(
        {*map(os.fsdecode, changes.files), *db.scan_record.single_folders()}
        | {folder for folder, aside in before.items() if aside.rescan == "files"},
        {
            *map(os.fsdecode, changes.all),
            *(folder for folder, aside in before.items() if aside.rescan == "all"),
        },
    )
    scanned, news = (
        scan(files, db.scan_record.folders_in(part), tracked, sinks, part)
        if part
        else (Scan(), ScanChanges({}, [], []))
    )
    scanned.exclusions |= {folder: aside for folder, aside in before.items() if not part.covers(folder)}
    asides = changed_exclusions(before, scanned.exclusions)
    if any(news) or asides or changes.token != last.token:
        with db.step():
            _keep(db, news)
            db.scan_record.put_exclusions(asides)
            db.scan_record.put_last_scan(LastScan(changes.token, last.everywhere, last.git))
    scanned.read_from_records(lambda: db.folders().values(), db.scan_record.file)
    return scanned


def _keep(db: Database, news: ScanChanges) -> None:
    if any(news):
        db.put_folders(*news)
