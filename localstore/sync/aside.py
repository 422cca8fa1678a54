"""Moves local files and directories to conflict names, because the branch's files need their paths.

Each is recorded as a conflict before it moves. So no conflict copy is ever forgotten, even after a crash: a
push waits until the user resolves it."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from localstore.core.paths import is_inside
from localstore.folder.files import Blocked
from localstore.record.conflicts import RecordedConflict
from localstore.record.database import Intent
from localstore.sync.conflicts import ConflictingTexts, author_of, drop_unused, record_conflict
from localstore.sync.working_copy import WorkingCopy

MOVING = "moving"  # in the journal: a file of a path that the branch lacks is about to move aside


def claim_conflict_name(copy: WorkingCopy, path: str, at: str | None = None) -> str:
    """A free conflict name for the file at `path`, claimed and recorded by `claim_name_for`. `at`: where the
    file is now, by default `path`. The name is recorded for files and directories only: no branch can contain
    anything else, so there is nothing to resolve."""
    if copy.files.is_special(at or path):
        name = copy.free_name(path)
        copy.conflicts.append((path, name))
        return name
    return claim_name_for(copy, path, copy.digest_on_disk(at or path))


def claim_name_for(copy: WorkingCopy, path: str, mine: bytes | None) -> str:
    """A free conflict name for the local version of `path`. `mine`: the digest of that version. The name is
    added to `WorkingCopy.conflicts` and recorded. If a conflict of this version is already recorded, the
    recorded name is returned, unless a file is now in the place of a directory above it."""
    recorded = [clash for clash in copy.db.conflicts.of(path) if clash.mine == mine]
    blocked = [clash for clash in recorded if copy.files.find_blocker(clash.kept_as) is not None]
    same = [clash for clash in recorded if clash not in blocked]
    unused = [clash for clash in same if not copy.is_taken(clash.kept_as)]
    if unused:
        name = unused[0].kept_as
    else:
        name = copy.free_name(path)
        row = copy.db.row(path)
        theirs = row.digest if row is not None else None
        fresh = RecordedConflict(path, name, None, theirs, mine, author_of(copy, path), "", "")
        with copy.db.step():
            for clash in blocked:
                copy.db.conflicts.remove(clash.kept_as)
            copy.db.conflicts.put(recorded[-1]._replace(kept_as=name) if recorded else fresh)
    copy.conflicts.append((path, name))
    return name


def forget_and_move_aside(
    copy: WorkingCopy, path: str, of: str | None = None, clash: ConflictingTexts | None = None
) -> None:
    """Drop the entry of a path, then rename its file to a conflict name. In this order, a crash between the
    two steps does not look like a deletion. `of`: the path that the file conflicts with, by default its own
    path. `clash`: the conflicting texts, which are recorded too.

    The move is written to the journal first, so that it is finished after a crash. Otherwise the file could
    stay at its path and count as new, if the branch has no file there."""
    with copy.db.step():
        if clash is not None:
            record_conflict(copy, of or path, clash)
        else:
            drop_unused(copy, of or path)  # records of conflicts that are over, with other versions
        copy.forget(path)
        if not copy.exists(path):
            return
        intent = Intent(path, of or path, None, None, MOVING)
        copy.db.put_intents([intent])
    _finish_move(copy, intent)


def finish_moves(copy: WorkingCopy) -> None:
    """Finish the moves to conflict names that a killed process had begun."""
    for intent in copy.db.intents():
        if intent.state == MOVING:
            _finish_move(copy, intent)


def _finish_move(copy: WorkingCopy, intent: Intent) -> None:
    move_aside(copy, intent.temp, intent.path)
    with copy.db.step():
        copy.db.drop_intents([intent.temp])


def move_aside(copy: WorkingCopy, path: str, of: str | None = None) -> None:
    """Rename the file or directory at the path, if there is one, to a free conflict name. A directory that
    contains no files is removed instead. `of`: the path that it conflicts with, by default its own path."""
    while (info := copy.files.stat(path)) is not None:
        copy.files.forget()
        if stat.S_ISDIR(info.st_mode):
            moved = _remove_empty(copy, path) or _move_folder(copy, path)
        else:
            moved = _move(copy, path, claim_conflict_name(copy, of or path, path))
            if not moved:
                _give_up_name(copy, path)
        if moved:
            return


def _move(copy: WorkingCopy, path: str, name: str) -> bool:
    """Rename `path` to `name`. Returns False if another program took the name or a directory on the way to
    it meanwhile, or if nothing is at the path any more."""
    try:
        copy.files.move(path, name)
    except (FileExistsError, FileNotFoundError, Blocked):
        return False
    return True


def _give_up_name(copy: WorkingCopy, path: str) -> None:
    """Give back the conflict name that was claimed last, because no file was moved to it. If the file is
    still at its path, its conflict stays recorded, under another free name."""
    _, name = copy.conflicts.pop()
    clash = copy.db.conflicts.get(name)
    with copy.db.step():
        copy.db.conflicts.remove(name)
        if clash is not None and copy.exists(path):
            copy.db.conflicts.put(clash._replace(kept_as=copy.free_name(clash.path)))


def _remove_empty(copy: WorkingCopy, path: str) -> bool:
    """Remove a directory if it contains only directories and no files. Returns whether it was removed."""
    if next(files_below(copy, path), None) is not None:
        return False
    for folder in reversed(list(folders_below(copy, path))):
        copy.files.prune(f"{folder}/")
    return not copy.exists(path)


def _move_folder(copy: WorkingCopy, path: str) -> bool:
    """Rename a directory to a free conflict name. Recorded conflict copies in it stay recorded, under their
    new paths. If the directory has other files, it gets a conflict record too. Returns False if the name was
    taken meanwhile, or if nothing is at the path any more.

    During the rename each copy is recorded under both paths, so that its record is also found after a
    crash."""
    inside = [clash for clash in copy.db.conflicts.list() if is_inside(clash.kept_as, path)]
    copy_names = {clash.kept_as for clash in inside}
    with copy.db.step():
        for below in [tracked for tracked in copy.entries if tracked.startswith(path + "/")]:
            copy.forget(below)
        only_copies = bool(copy_names) and all(name in copy_names for name in files_below(copy, path))
        name = copy.free_name(path) if only_copies else claim_name_for(copy, path, None)
        moved = renamed_records(inside, path, name)
        for clash in moved:
            copy.db.conflicts.put(clash)
    is_moved = _move(copy, path, name)
    with copy.db.step():
        for clash in inside if is_moved else moved:
            copy.db.conflicts.remove(clash.kept_as)
        if not is_moved and not only_copies:
            _give_up_name(copy, path)
    if is_moved:
        copy.conflicts = [
            (of, name + kept_as[len(path) :] if is_inside(kept_as, path) else kept_as)
            for of, kept_as in copy.conflicts
        ]
    return is_moved


def renamed_records(records: list[RecordedConflict], old: str, new: str) -> list[RecordedConflict]:
    """The records of the conflict copies in the directory `old`, changed for the directory's new name
    `new`."""
    return [clash._replace(kept_as=new + clash.kept_as[len(old) :]) for clash in records]


def files_below(copy: WorkingCopy, path: str) -> Iterator[str]:
    """The paths of everything in a directory, at any depth, that is not a directory."""
    return (below for below, is_folder in _walk(copy, path) if not is_folder)


def folders_below(copy: WorkingCopy, path: str) -> Iterator[str]:
    """The directory itself and all directories in it, parents first."""
    yield path
    yield from (below for below, is_folder in _walk(copy, path) if is_folder)


def _walk(copy: WorkingCopy, path: str) -> Iterator[tuple[str, bool]]:
    """Yields everything in a directory as (path, whether it is a directory)."""
    folders = [path]
    while folders:
        folder = folders.pop()
        for name in copy.files.names(folder):
            info = copy.files.stat(f"{folder}/{name}")
            if info is None:
                continue
            is_folder = stat.S_ISDIR(info.st_mode)
            if is_folder:
                folders.append(f"{folder}/{name}")
            yield f"{folder}/{name}", is_folder
