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
    this_scan = LastScan(changes.token, now, tracked.git.identity) if changes else None
    return _rescan_all(db, files, tracked, sinks, this_scan, last)


def _rescan_all(
    db: Database,
    files: Files,
    tracked: TrackedPaths,
    sinks: ScanSinks,
    this_scan: LastScan | None,
    last_scan: LastScan | None,
) -> Scan:
    """Scan the whole folder and store what changed. `this_scan`: what the record notes of this scan, None if
    no watcher reports changes; `last_scan`: what it notes of the one before."""
    scanned, scan_changes = scan(files, db.folders(), tracked, sinks)
    exclusions = changed_exclusions(db.scan_record.exclusions(), scanned.exclusions) if this_scan else {}
    if any(scan_changes) or exclusions or this_scan != last_scan:
        with db.step():
            _keep(db, scan_changes)
            db.scan_record.put_exclusions(exclusions)
            db.scan_record.put_last_scan(this_scan)
    return scanned


def _rescan_part(
    db: Database, files: Files, tracked: TrackedPaths, sinks: ScanSinks, changes: Changes, last_scan: LastScan
) -> Scan:
    """Scan the folders in which the watcher has seen changes, and those that must always be scanned again.
    Everything else is taken from the record. Stores what changed."""
    before = db.scan_record.exclusions()
    part = PartialWalk(
        {*map(os.fsdecode, changes.files), *db.scan_record.single_folders()}
        | {folder for folder, excluded in before.items() if excluded.rescan == "files"},
        {
            *map(os.fsdecode, changes.all),
            *(folder for folder, excluded in before.items() if excluded.rescan == "all"),
        },
    )
    scanned, scan_changes = (
        scan(files, db.scan_record.folders_in(part), tracked, sinks, part)
        if part
        else (Scan(), ScanChanges({}, [], []))
    )
    scanned.exclusions |= {folder: excluded for folder, excluded in before.items() if not part.covers(folder)}
    exclusions = changed_exclusions(before, scanned.exclusions)
    if any(scan_changes) or exclusions or changes.token != last_scan.token:
        with db.step():
            _keep(db, scan_changes)
            db.scan_record.put_exclusions(exclusions)
            db.scan_record.put_last_scan(LastScan(changes.token, last_scan.everywhere, last_scan.git))
    scanned.read_from_records(lambda: db.folders().values(), db.scan_record.file)
    return scanned


def _keep(db: Database, scan_changes: ScanChanges) -> None:
    if any(scan_changes):
        db.put_folders(*scan_changes)
