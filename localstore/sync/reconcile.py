"""Brings the branch's live frontier (its files now, with unsealed edits) into the folder. It works path by
path, according to the table in docs/design/004."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from localstore.core import paths
from localstore.core.encoding import digest
from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.merge.moves import Ways
from localstore.core.model.live import UpdateInvalid
from localstore.core.model.seal import PayloadMissing
from localstore.folder.scan_result import Scan
from localstore.record.database import FrontierRow
from localstore.record.entry import PathRecord
from localstore.sync.adopting import adopt, entry_of
from localstore.sync.aside import forget_and_move_aside, move_aside
from localstore.sync.capture import capture
from localstore.sync.conflicts import (
    ConflictingTexts,
    TextsConflict,
    drop_unused,
    record_conflict,
    record_versions,
)
from localstore.sync.live_renames import bring_along, moved_there, remember_removed, take_along
from localstore.sync.merging import advance
from localstore.sync.remote import Remote, read_remote, require_readable
from localstore.sync.settle import remove, settle
from localstore.sync.working_copy import WorkingCopy

CHUNK = 1000
Here = Callable[[FrontierRow], Remote | None]
"""The lane of a row, if it is known without asking the relay; None if it is not."""


def reconcile(copy: WorkingCopy, scan: Scan) -> list[str]:
    """Write the frontier into the folder. Call this when every edit is captured and nothing is in flight.

    Returns the changed paths, removals first. If the relay sent lanes that cannot be loaded, all other paths
    are written, and then ServerMisbehaved is raised."""
    try:
        changed = _reconcile(copy, scan)
    except (NotFound, PayloadMissing, ServerMisbehaved):
        copy.db.put("since", 0)  # a row names missing bytes: fetch all rows again
        raise
    require_readable(copy)
    return changed


def reconcile_paths(copy: WorkingCopy, scan: Scan, paths: Collection[str], local: Here) -> list[str]:
    """Write the frontier at these paths into the folder, as `reconcile` does for all paths. Returns the
    changed paths. `local`: returns the state of the lane for a row if it is known here, so that it need
    not be requested. Lanes that cannot be loaded are added to `WorkingCopy.unreadable`."""
    if _folds_case(copy):  # which file of two stays depends on all of them
        return _reconcile(copy, scan)
    rows = {path: row for path in paths if (row := copy.db.row(path)) is not None}
    for path in copy.db.unwritable().keys() & paths:
        copy.db.drop_unwritable(path)
    copy.entries.load(paths)
    entries = [(path, entry) for path in paths if (entry := copy.entries.get(path)) is not None]
    return _reconcile_rows(copy, scan, rows, entries, set(), local)


def _reconcile(copy: WorkingCopy, scan: Scan) -> list[str]:
    rows = copy.db.rows()
    unwritable = _unwritable_paths(copy, rows)
    return _reconcile_rows(copy, scan, rows, list(copy.entries.items()), unwritable, _nothing_here)


def _nothing_here(row: FrontierRow) -> Remote | None:
    return None


def _reconcile_rows(
    copy: WorkingCopy,
    scan: Scan,
    rows: dict[str, FrontierRow],
    entries: list[tuple[str, PathRecord]],
    unwritable: set[str],
    local: Here,
) -> list[str]:
    flying = copy.db.flight_kinds()
    index = copy.db.number("since")
    gone_paths = [
        path
        for path, entry in entries
        if path not in rows and is_gone(entry, index) and path not in flying and not scan.unknown(path)
    ]
    sources = _sources(copy, rows, gone_paths)
    removed, gone_renames = _removals(copy, sorted(gone_paths), sources)
    behind = [
        rows[path]
        for path in sorted(rows)
        if path not in flying
        and path not in unwritable
        and not scan.unknown(path)
        and is_behind(copy.entries.get(path), rows[path])
    ]
    behind = follow_epochs(copy, behind)
    replaced = moved_there(copy, edits, edits) if (edits := _replaced_texts(copy, behind)) else {}
    changed = _write_rows(copy, [row for row in behind if row.path not in replaced], local)
    copied, source_renames = _removals(copy, sorted(sources))
    removed += copied
    renames = {**gone_renames, **source_renames, **replaced}
    for old, new in renames.items():  # after the new files were written
        take_along(copy, old, new)
    if replaced:
        changed += _write_rows(copy, [rows[path] for path in sorted(replaced)], local)
    return removed + changed


def _replaced_texts(copy: WorkingCopy, rows: list[FrontierRow]) -> list[str]:
    """The paths of texts that were edited here, while the branch put another file in their place. [] unless
    the folder is synced live."""
    if not copy.live:
        return []
    replaced = []
    for row in rows:
        entry = copy.entries.get(row.path)
        if entry is not None and entry.kind == "text" and entry.gen not in (0, row.gen) and not entry.foreign:
            capture(copy, [row.path])
            replaced += [row.path] if entry.pending else []
    return replaced


def _write_rows(copy: WorkingCopy, todo: list[FrontierRow], local: Here) -> list[str]:
    """Bring the files of these rows into the folder. Returns the paths that were written, now or by a later
    round: files that a program has open for writing are among them."""
    changed: list[str] = []
    digests = {row.digest for row in todo if row.kind == "blob"}
    copy.paths_of_binaries = copy.db.paths_of_binaries(digests) if digests else {}
    for start in range(0, len(todo), CHUNK):
        settling = []
        for remote in _remotes(copy, todo[start : start + CHUNK], local):
            try:
                settles = _reconcile_path(copy, remote)
            except UpdateInvalid as error:
                copy.unreadable[remote.row.path] = error.detail
                continue
            if settles:
                settling.append(remote.row.path)
        unsettled = [path for path in settling if not _is_settled(copy, path)]
        settle(copy, settling)
        changed += _without_unwritable(copy, unsettled)
        copy.progress("reconcile", min(start + CHUNK, len(todo)), len(todo))
    return changed


def _remotes(copy: WorkingCopy, rows: list[FrontierRow], local: Here) -> Iterator[Remote]:
    """Yields each row with the state of its lane. States that are known here (`local` returns them) come
    first. The others are requested from the relay."""
    missing = []
    for row in rows:
        held = local(row)
        if held is None:
            missing.append(row)
        else:
            yield held
    yield from read_remote(copy, missing)


def follow_epochs(copy: WorkingCopy, rows: list[FrontierRow]) -> list[FrontierRow]:
    """Record the new epochs of lanes whose text stayed the same, in one transaction. Returns all other
    rows."""
    others: list[FrontierRow] = []
    followed: list[PathRecord] = []
    if not rows or not copy.entries:
        return rows
    copy.entries.load(row.path for row in rows)
    for row in rows:
        entry = copy.entries.get(row.path)
        if entry is None or not _same_text(entry, row):
            others.append(row)
            continue
        entry.epoch, entry.genesis, entry.touched = row.epoch, row.digest, False
        entry.seen = max(entry.seen, row.ver)
        followed.append(entry)
    with copy.db.step():
        for entry in followed:
            copy.db.put_lane_state(entry.path, None)
        copy.save_all(followed)
    return others


def _same_text(entry: PathRecord, row: FrontierRow) -> bool:
    """Whether entry and row have the same text and differ only in the epoch. With pending edits here, or live
    edits on the branch, the result is False."""
    return (
        entry.gen == row.gen
        and entry.kind == row.kind == "text"
        and 0 <= entry.epoch < row.epoch
        and not entry.pending
        and not row.live
        and entry.want == row.digest
    )


def _without_unwritable(copy: WorkingCopy, paths: list[str]) -> list[str]:
    """Those of the paths that this folder can have."""
    unwritable = copy.db.unwritable() if paths else {}
    return [path for path in paths if path not in unwritable]


def _is_settled(copy: WorkingCopy, path: str) -> bool:
    """Whether the file on the disk has the text of its lane."""
    entry = copy.entries.get(path)
    return entry is not None and entry.settled


def changed_on_branch(copy: WorkingCopy, paths: Collection[str]) -> list[str]:
    """Those of `paths` that `reconcile` would change or remove."""
    copy.entries.load(paths)
    index = copy.db.number("since")
    changed = []
    for path in paths:
        entry, row = copy.entries.get(path), copy.db.row(path)
        if is_behind(entry, row) if row is not None else entry is not None and is_gone(entry, index):
            changed.append(path)
    return changed


def is_gone(entry: PathRecord, index: int) -> bool:
    """Whether the branch has removed the file of an entry that has no row on the frontier. A file that was
    accepted after the rows were read counts as present. `index`: the number of the frontier up to which rows
    are known."""
    return entry.gen > 0 and entry.seen <= index


def is_behind(entry: PathRecord | None, row: FrontierRow) -> bool:
    """Whether the row of the frontier is newer than what is recorded about the path."""
    if entry is not None and row.ver < entry.seen and not entry.foreign:
        return False  # the row is older than a received answer
    if entry is None or entry.gen != row.gen or entry.epoch != row.epoch or not entry.settled:
        return True
    return row.other > entry.seen


def _unwritable_paths(copy: WorkingCopy, rows: dict[str, FrontierRow]) -> set[str]:
    """The paths that this file system cannot store beside others, because it ignores case. They are recorded
    as unwritable, so that they never count as removed."""
    recorded = copy.db.unwritable()
    blocked = set()
    if _folds_case(copy):
        here_first = sorted(rows, key=lambda name: (name not in copy.entries, name))
        for path, holder in paths.case_collisions(here_first).items():
            blocked.add(path)
            copy.db.put_unwritable(path, f"this file system takes it for {paths.terminal_safe(holder)}")
    for path in recorded:
        if path not in blocked:
            copy.db.drop_unwritable(path)
    return blocked


def _folds_case(copy: WorkingCopy) -> bool:
    """Whether the file system ignores case."""
    return copy.files.stat(".SVC") is not None


def _sources(copy: WorkingCopy, rows: dict[str, FrontierRow], gone: list[str]) -> set[str]:
    """Of the paths that the branch removed (`gone`), those whose files must stay for a moment. Such a file is
    binary and unchanged, and the branch has its bytes under another path now. That path is written first, by
    copying the file (`localstore.sync.settle`) instead of fetching its bytes. Files that block a path of the
    branch are not in the result."""
    records = {path: copy.entries[path] for path in gone}
    shadows = {path: entry.shadow for path, entry in records.items() if entry.kind != "text"}
    digests = set(shadows.values())
    digests_there = {
        row.digest
        for row in rows.values()
        if row.digest in digests and is_behind(copy.entries.get(row.path), row)
    }
    if not digests_there or _folds_case(copy):
        return set()
    folders = {folder for path in rows for folder in paths.parents(path)}
    return {
        path
        for path, shadow in shadows.items()
        if shadow in digests_there
        and path not in folders
        and not any(above in rows for above in paths.parents(path))
        and copy.digest_on_disk(path) == shadow
    }


def _removals(copy: WorkingCopy, gone: list[str], later: Collection[str] = ()) -> tuple[list[str], Ways]:
    """Remove the files that the branch removed, if they are unchanged here. `gone`: their paths; `later`:
    those to leave alone for now. Returns (paths of the removed files, renames). `renames` is old path → new
    path of edited files that the branch renamed; these files stay where they are. Renames are found only if
    the folder is synced live.

    Any other edited file becomes a recorded conflict copy, because sending it would bring the file back for
    everybody. Directories and other things that are not files stay. A file that the branch may never have had
    stays too, and counts as new."""
    clean: list[str] = []
    edits: list[str] = []
    for path in gone:
        if path in later:
            continue
        entry = copy.entries[path]
        if (entry.kind == "text" and not entry.settled) or copy.live:
            capture(copy, [path])
        now = copy.digest_on_disk(path)
        unchanged = now is not None and now == entry.shadow and not entry.pending
        (clean if unchanged else edits).append(path)
    ways = moved_there(copy, gone, edits) if copy.live and edits else {}
    for path in edits:
        if path not in ways:
            if not copy.entries[path].foreign and copy.files.is_file(path):
                forget_and_move_aside(copy, path)
                continue
            with copy.db.step():
                copy.forget(path)
    if copy.live:
        remember_removed(copy, clean)
    remove(copy, clean)
    return _without_unwritable(copy, clean), ways


def _reconcile_path(copy: WorkingCopy, remote: Remote) -> bool:
    """Update the record of one path. Returns whether the file must be written (`settle`)."""
    entry = copy.entries.get(remote.row.path)
    if entry is not None and copy.live and bring_along(copy, entry, remote):
        return False
    if entry is not None and entry.gen == remote.row.gen:
        return _same_lane(copy, entry, remote)
    if entry is not None and entry.kind == "text" and entry.gen and not entry.settled:
        settle(copy, [entry.path])
    return _other_lane(copy, remote)


def _same_lane(copy: WorkingCopy, entry: PathRecord, remote: Remote) -> bool:
    """Update the record of a path that has the same lane on the branch and in the record, and merge local
    edits into it. Returns whether the file must be written."""
    if entry.kind != "text":
        return True
    capture(copy, [entry.path])
    on_disk = copy.stat_on_disk(entry.path)
    odd = on_disk is not None and on_disk.kind != "text" and on_disk.digest != entry.shadow
    undecided = (odd or on_disk is None) and entry.settled
    if undecided and entry.epoch == remote.row.epoch and remote.row.other <= entry.seen:
        return False  # the unsent delete or change of kind replaces the version that this folder knows
    try:
        advance(copy, entry, remote)
    except TextsConflict as found:
        return _keep_mine_aside(copy, entry, remote, found.texts)
    if odd:
        _take_theirs(copy, remote)
    elif on_disk is None:
        entry.shadow = None  # an edit on the branch wins over the local delete
        with copy.db.step():
            copy.save(entry)
    return True


def _keep_mine_aside(copy: WorkingCopy, entry: PathRecord, remote: Remote, clash: ConflictingTexts) -> bool:
    """Record a conflict, keep the local text in a conflict copy, and take the branch's version. Returns
    whether that version must be written to the path now."""
    path = entry.path
    if not entry.settled:  # write the lane first: a captured edit may be in no file
        settle(copy, [path])
        settled_entry = copy.entries.get(path)
        if settled_entry is None or not settled_entry.settled:
            return False  # the file is being saved continuously; the next pull tries again
        return _same_lane(copy, settled_entry, remote)
    if copy.digest_on_disk(path) == digest(clash.mine):
        with copy.db.step():
            record_conflict(copy, path, clash)
            copy.forget(path)
    _take_theirs(copy, remote)
    return True


def _take_theirs(copy: WorkingCopy, remote: Remote) -> None:
    """Record the relay's version of a path. A file on the disk at this path becomes a conflict copy."""
    path = remote.row.path
    _move_mine_aside(copy, remote)
    with copy.db.step():
        drop_unused(copy, path)
        adopt(copy, remote, None)


def _other_lane(copy: WorkingCopy, remote: Remote) -> bool:
    """Update the record of a path whose file is new on the branch, or was replaced there. A different local
    file becomes a conflict copy. Always returns True, because the file must be written."""
    path = remote.row.path
    entry = copy.entries.get(path)
    now = copy.digest_on_disk(path)
    clean = now is None or (entry is not None and now == entry.shadow and not entry.pending)
    if now != remote.row.digest and not clean:
        _move_mine_aside(copy, remote)
        now = None
    with copy.db.step():
        adopt(copy, remote, now)
    return True


def _move_mine_aside(copy: WorkingCopy, remote: Remote) -> None:
    """Record a conflict with the relay's version, drop the entry of the path, then rename its file to a
    conflict name. In this order, a crash between the steps does not look like a deletion."""
    path = remote.row.path
    mine = copy.digest_on_disk(path)
    with copy.db.step():
        record_versions(copy, path, remote.row.digest, mine)
        copy.forget(path)
    move_aside(copy, path)


def attach_lanes(copy: WorkingCopy) -> None:
    """Find the lane of each file whose lane on this branch is not known yet (`PathRecord.foreign`), and
    record it. The bytes in the record count as an older version of the lane's text, so that later edits are
    merged into the lane."""
    foreign = copy.db.foreign()
    if not foreign:
        return
    rows = copy.db.rows()
    present = [path for path in foreign if path in rows]
    for start in range(0, len(present), CHUNK):
        adopted = []
        with copy.db.step():
            for remote in read_remote(copy, [rows[path] for path in present[start : start + CHUNK]]):
                if remote.state is not None:
                    copy.db.put_lane_state(remote.row.path, remote.state)
                adopted.append(entry_of(remote, copy.entries[remote.row.path].shadow))
            copy.save_all(adopted)
