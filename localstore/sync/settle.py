"""Writes the texts of lanes to the files of the folder, as docs/design/004 describes (device rules 4 to
7)."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from localstore.core import paths
from localstore.core.encoding import digest as blake3
from localstore.core.encoding import unhex
from localstore.core.errors import Conflict, NotFound, ServerMisbehaved, ServerUnreachable
from localstore.core.model import limits
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage.chunks import file_cap
from localstore.core.storage.file_kind import kind_of
from localstore.folder.files import BeingWritten, Content
from localstore.folder.stat_cache import Stat, read_stat
from localstore.folder.walk_rules import NESTED
from localstore.folder.writer import FileWrite, Outcome, Writer
from localstore.record.entry import PathRecord
from localstore.sync.aside import claim_conflict_name, finish_moves, forget_and_move_aside, move_aside
from localstore.sync.capture import capture, capture_late_save
from localstore.sync.conflicts import ConflictingTexts, TextsConflict, record_conflict, record_versions
from localstore.sync.merging import merge_edit
from localstore.sync.old_records import rescue
from localstore.sync.transfer.chunked_download import download
from localstore.sync.trash import copy_to_trash
from localstore.sync.working_copy import WorkingCopy

ROUNDS = 4
TRASHED = "trashed"  # the file that is being replaced: digest in hex, and where its copy lies
BATCH_FILES, BATCH_BYTES = 500, 64 * limits.MIB


def writer(copy: WorkingCopy, trashed: Collection[bytes] = ()) -> Writer:
    """A `Writer` for this working copy. `trashed`: digests of files whose copies are in the trash, so that
    they can be replaced."""

    def states(outcomes: Sequence[Outcome]) -> dict[str, str]:
        return {outcome.temp: _next_state(copy, outcome, trashed) for outcome in outcomes}

    return Writer(
        copy.files,
        copy.db,
        lambda outcomes: _finish(copy, outcomes),
        states,
        lambda path, temp: claim_conflict_name(copy, path, temp),
        lambda path, temp: copy.placing(path, temp),
    )


def recover(copy: WorkingCopy) -> None:
    """Finish what a killed process had begun: writes to files, and moves to conflict names. This includes
    what the journal in an earlier record of this folder names."""
    writer(copy, _in_trash(copy)).recover()
    finish_moves(copy)
    rescue(copy)


def is_interrupted(copy: WorkingCopy) -> bool:
    """Whether a process was killed while it wrote files to the folder."""
    return any(intent.state != "partial" for intent in copy.db.intents())


def write_hidden_edits(copy: WorkingCopy) -> list[str]:
    """Write edits that only the record contains to their files, and return the paths. Such an edit is a save
    that was made while svc wrote the file: svc merged it with the written text, and was interrupted before
    the result was in the file. It must be in a file before it can be dropped or replaced. If a text that is
    needed is not available now, its file is left for later."""
    hidden = [path for path in copy.db.find_unsettled() if copy.entries[path].pending]
    for path in hidden:
        with suppress(NotFound, PayloadMissing, ServerMisbehaved, ServerUnreachable):
            settle(copy, [path])
    return hidden


def replace(copy: WorkingCopy, path: str, new: bytes, content: Content, trash: Path | None) -> Path | None:
    """Write `content`, whose BLAKE3 is `new`, at `path` as an edit of the user.

    An existing file is first copied to the folder `trash`, or to a new trash folder if `trash` is None.
    Returns the trash folder that was used; if there was no file, returns `trash`. Raises Conflict if a
    directory or a link is at `path`."""
    copied = copy_to_trash(copy, path, trash)
    if copied is not None:
        copy.db.put(TRASHED, f"{copied[1].hex()} {copied[0] / path}")
    with copy.db.step():
        copy.db.arrivals.drop(path)  # else live sync takes it for a save of an old buffer, and undoes it
    work = writer(copy, trashed=() if copied is None else (copied[1],))
    if work.apply([FileWrite(path, new)], lambda _: iter([(new, content)]), "asked"):
        raise in_the_way(path, copy.files.find_blocker(path))
    return trash if copied is None else copied[0]


def in_the_way(path: str, file: str | None = None) -> Conflict:
    """The error for a path that cannot be written, because a directory or a link is at the path. `file`: a
    file or link in the place of a folder above the path, if this is the reason instead."""
    name = paths.terminal_safe(path)
    if file is not None:
        there = f"{paths.terminal_safe(file)} is a file or a link"
        return Conflict(f"{there}, so there can be no {name}; move it away, then try again")
    return Conflict(f"a directory or a link is where {name} belongs; move it away, then try again")


def _in_trash(copy: WorkingCopy) -> list[bytes]:
    """The digest of the file that an interrupted `replace` was overwriting, if the trash has a copy of it.
    The result is a list with at most one item."""
    digest, _, trashed = (copy.db.text(TRASHED) or "").partition(" ")
    return [unhex(digest)] if trashed and Path(trashed).is_file() else []


def _next_state(copy: WorkingCopy, outcome: Outcome, trashed: Collection[bytes]) -> str:
    """The next journal state for a finished write that the user had asked for. It is `aside` if the bytes of
    the replaced file are stored nowhere else, otherwise `done`. `trashed`: digests of files that are in
    the trash."""
    entry = copy.entries.get(outcome.path)
    saved = {*trashed, outcome.new, entry.shadow if entry else None}
    unknown = outcome.not_a_file or (outcome.displaced is not None and outcome.displaced.digest not in saved)
    return "aside" if unknown else "done"


def settle(copy: WorkingCopy, targets: Iterable[str]) -> None:
    """Write the texts of the lanes to the files at these paths. Files that block a path are moved to conflict
    names. Saves made meanwhile are captured. A file that the user may not write is left as it is, and
    recorded as unwritable."""
    todo = list(targets)
    denied: set[str] = set()
    for _ in range(ROUNDS):
        capture(copy, todo)
        todo = [path for path in todo if path not in denied and not is_settled(copy, path)]
        changes = [change for path in todo for change in _change(copy, path)]
        changes = [change for change in changes if change.path in copy.entries]  # not moved aside since
        for batch in _batches(copy, changes):
            denied |= _apply(copy, batch)
        if not todo:
            return


def remove(copy: WorkingCopy, gone: Sequence[str]) -> None:
    """Remove files that the branch removed and that are unchanged here. A file that the user may not remove
    stays, and is recorded as unwritable."""
    for start in range(0, len(gone), BATCH_FILES):
        work = writer(copy)
        work.apply([FileWrite(path, None) for path in gone[start : start + BATCH_FILES]], _nothing)
        for path, why in work.denied.items():
            _leave(copy, path, f"it cannot be removed here ({why})")


def _nothing(digests: set[bytes]) -> Iterator[tuple[bytes, Content]]:
    yield from ()


def is_settled(copy: WorkingCopy, path: str) -> bool:
    """Whether the file at the path has the text (or bytes) of its lane, or the record has no such file."""
    entry = copy.entries.get(path)
    return entry is None or entry.settled


def _change(copy: WorkingCopy, path: str) -> list[FileWrite]:
    """The write that the path needs, as a list of at most one item. Whatever blocks the path is moved away
    first. The list is empty if the path cannot be written."""
    try:
        with copy.files.unwritten(path) as awaited:
            return _change_of(copy, path, awaited) if _clear_path(copy, path) else []
    except BeingWritten:
        return []


def _change_of(copy: WorkingCopy, path: str, awaited: Callable[[], bool]) -> list[FileWrite]:
    """The write that the path needs, as a list of at most one item. It is computed while no program writes
    the file. `awaited`: returns whether a program waits to write the file. The list is empty if a program
    waits, because its save comes next, or if the path has no entry any more."""
    entry = copy.entries[path]
    now = copy.digest_on_disk(path)
    if now not in (None, entry.shadow, entry.want):
        capture(copy, [path])  # a save since the last capture
        now = copy.digest_on_disk(path)
        if awaited():
            return []  # its save comes next
    if now not in (None, entry.shadow, entry.want) or (now is None and copy.exists(path)):
        _move_aside(copy, entry)
    return [FileWrite(path, entry.want)] if path in copy.entries else []


def _move_aside(copy: WorkingCopy, entry: PathRecord) -> None:
    """Move a file to a conflict name, because its text cannot be merged into the lane. The entry's shadow is
    cleared first, so that a crash in between does not look like a deletion."""
    clash, mine = _conflict_on_disk(copy, entry), copy.digest_on_disk(entry.path)
    entry.shadow = None
    with copy.db.step():
        if clash is not None:
            record_conflict(copy, entry.path, clash)
        record_versions(copy, entry.path, entry.want, mine)
        copy.save(entry)
    move_aside(copy, entry.path)


def _conflict_on_disk(copy: WorkingCopy, entry: PathRecord) -> ConflictingTexts | None:
    """The conflict between the text on the disk and the lane. None if the file is not text or its base is
    unknown."""
    if entry.kind != "text" or entry.shadow is None or copy.digest_on_disk(entry.path) is None:
        return None
    data = copy.files.read_up_to(entry.path, limits.TEXT_FILE)
    if data is None or kind_of(data) != "text":
        return None
    try:
        merge_edit(copy, entry.path, copy.lane_with_pending(entry), copy.text(entry.shadow), data)
    except TextsConflict as found:
        return found.texts
    return None  # saved again in the meantime


def _clear_path(copy: WorkingCopy, path: str) -> bool:
    """Move the directories and files that block the path out of its way. A nested repository, a link, a
    socket or a file over a size cap is left alone. If one of them blocks the path, returns False, and the
    branch's file is not written."""
    blocker = copy.files.find_blocker(path)
    if blocker is not None:
        return _clear_blocker(copy, path, blocker)
    info = copy.files.stat(path)
    if info is not None and not stat.S_ISREG(info.st_mode) and not _is_directory(info.st_mode):
        _leave(copy, path, f"{_describe_mode(info.st_mode)} lies there")
        return False
    if info is None or not _is_directory(info.st_mode):
        return True
    if set(NESTED) & set(copy.files.names(path)):
        _leave(copy, path, "a nested repository lies there")
        return False
    _move_aside(copy, copy.entries[path])
    return True


def _clear_blocker(copy: WorkingCopy, path: str, blocker: str) -> bool:
    """Move the file `blocker`, which is in the place of a directory above the path, out of its way. Returns
    False if it is left alone, because it is no file or is over a size cap."""
    info, name = copy.files.stat(blocker), paths.terminal_safe(blocker)
    if info is None:
        return True  # it went meanwhile
    if not stat.S_ISREG(info.st_mode):
        _leave(copy, path, f"{name} is {_describe_mode(info.st_mode)} here")
        return False
    cap = max(copy.file_cap, file_cap(copy.repo_kind))
    file = read_stat(copy.files, blocker) if info.st_size > cap else None
    if file is not None and file.kind != "text":
        _leave(copy, path, f"{name} is a file over the size cap here")
        return False
    forget_and_move_aside(copy, blocker)
    return True


def _leave(copy: WorkingCopy, path: str, reason: str) -> None:
    with copy.db.step():
        copy.db.put_unwritable(path, reason)


def _describe_mode(mode: int) -> str:
    return "a symlink" if stat.S_ISLNK(mode) else "a special file"


def _is_directory(mode: int) -> bool:
    return stat.S_ISDIR(mode)


def _batches(copy: WorkingCopy, changes: list[FileWrite]) -> Iterator[list[FileWrite]]:
    batch: list[FileWrite] = []
    room = BATCH_BYTES
    for change in changes:
        size = copy.entries[change.path].size
        if batch and (len(batch) == BATCH_FILES or size > room):
            yield batch
            batch, room = [], BATCH_BYTES
        batch.append(change)
        room -= size
    if batch:
        yield batch


def _apply(copy: WorkingCopy, batch: list[FileWrite]) -> set[str]:
    """Write a batch of files. Returns the paths that the user may not write; they are recorded as
    unwritable."""
    texts = {change.new for change in batch if copy.entries[change.path].kind == "text"}
    sizes = {change.new: copy.entries[change.path].size for change in batch if change.new is not None}

    large = {change.new: change.path for change in batch if copy.entries[change.path].kind == "chunked"}

    def supply(digests: set[bytes]) -> Iterator[tuple[bytes, Content]]:
        absent: dict[bool, dict[bytes, int]] = {True: {}, False: {}}
        for digest in digests:
            if digest in large:
                yield digest, download(copy, digest, sizes[digest], near=large[digest])
                continue
            data = copy.objects.get(digest)
            if data is not None:
                yield digest, data
            else:
                absent[digest in texts][digest] = sizes[digest]
        for digest, data in copy.copies_of(dict(absent[False])):
            del absent[False][digest]
            copy.reused += len(data)
            yield digest, data
        for is_text, missing in absent.items():
            if missing:
                yield from copy.fetch(missing, keep=is_text)

    work = writer(copy)
    work.apply(batch, supply)  # blocked paths stay unsettled until the next round
    for path, why in work.denied.items():
        _leave(copy, path, f"it cannot be written here ({why})")
    copy.progress("write", len(batch), None, sum(sizes.values()))
    return set(work.denied)


# --- what came out of an exchange


def _finish(copy: WorkingCopy, outcomes: Sequence[Outcome]) -> dict[str, str]:
    """Record what each write replaced. Returns the state that each write gets in the journal, by the path of
    its temporary file."""
    states = {}
    fresh, gone = [], []
    for outcome in outcomes:
        states[outcome.temp] = _finish_write(copy, outcome)
        if outcome.new is None:
            gone.append(outcome.path)
        else:
            placed = _stat_of_placed(copy, outcome)
            if placed is not None and placed.digest == outcome.new:
                fresh.append(placed)
    copy.db.put_stats(fresh, gone)
    return states


def _stat_of_placed(copy: WorkingCopy, outcome: Outcome) -> Stat | None:
    """The stat of the file that was written, with its digest. None if the file is gone. An unchanged text is
    not read again, because reading it would look like a read by a program (`localstore.live.reads`)."""
    info, placed, entry = copy.files.stat(outcome.path), outcome.placed, copy.entries.get(outcome.path)
    if info is None or placed is None or entry is None or entry.kind != "text":
        return read_stat(copy.files, outcome.path)
    digest = outcome.new
    if digest is None or entry.want != digest:
        return read_stat(copy.files, outcome.path)
    seen = (info.st_ino, info.st_size, info.st_mtime_ns)
    if seen != (placed.st_ino, placed.st_size, placed.st_mtime_ns):
        return read_stat(copy.files, outcome.path)
    times = (info.st_mtime_ns, info.st_ctime_ns)
    return Stat(outcome.path, info.st_size, *times, info.st_ino, "text", digest, time.time_ns())


def _finish_write(copy: WorkingCopy, outcome: Outcome) -> str:
    entry = copy.entries.get(outcome.path)
    if entry is None:
        return "aside" if outcome.not_a_file or outcome.displaced is not None else "done"
    before, out = entry.shadow, outcome.displaced
    slipped = out is not None and out.digest not in (before, outcome.new) and not outcome.not_a_file
    late = _late_save(copy, entry, outcome) if slipped else None
    if out is not None and late is not None:
        copy.rebase(entry, out.digest, late)
    base, entry.shadow = entry.shadow, outcome.new
    if outcome.new is None:
        copy.forget(outcome.path)
    else:
        copy.save(entry)
        copy.placed(outcome.path, before if out is None else out.digest, outcome.new)
    if outcome.not_a_file:
        return "aside"
    if not slipped:
        return "done"
    if late is not None and outcome.new is not None and _capture_late_save(copy, entry, base, late):
        copy.save(entry)
        return "done"
    if out is not None:
        record_versions(copy, outcome.path, outcome.new, out.digest)
    return "aside"


def _late_save(copy: WorkingCopy, entry: PathRecord, outcome: Outcome) -> bytes | None:
    """The text of a save that happened while svc wrote the file. It is in the file that the write replaced.
    None if there was no such save, or if it is not text."""
    if entry.kind != "text" or outcome.displaced is None or outcome.displaced.kind != "text":
        return None
    data = copy.files.read(outcome.temp)
    return data if blake3(data) == outcome.displaced.digest and kind_of(data) == "text" else None


def _capture_late_save(copy: WorkingCopy, entry: PathRecord, base: bytes | None, data: bytes) -> bool:
    """Capture a save that happened while svc wrote the file. `data`: the saved text; `base`: digest of the
    text that the save was made from. Returns False if the save cannot be merged."""
    old = copy.objects.get(base) if base is not None else None
    if old is None or kind_of(old) != "text":
        return False  # the path held another branch's binary
    copy.objects.add([(blake3(data), data)])
    return capture_late_save(copy, entry, old, data)
