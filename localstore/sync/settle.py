"""Making the disk show what the lanes say (device rules 4 to 7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from localstore.core import limits, paths
from localstore.core.encoding import digest as blake3
from localstore.core.encoding import unhex
from localstore.core.errors import Conflict
from localstore.core.storage.file_kind import kind_of
from localstore.folder.files import Content
from localstore.folder.stat_cache import read_stat
from localstore.folder.walk_rules import NESTED
from localstore.folder.writer import Change, Outcome, Writer
from localstore.record.entry import PathRecord
from localstore.sync.capture import capture, capture_late_save
from localstore.sync.conflicts import ConflictingTexts, TextsConflict, record_conflict
from localstore.sync.merging import merge_edit
from localstore.sync.old_records import rescue
from localstore.sync.transfer.chunked_download import download
from localstore.sync.trash import copy_to_trash
from localstore.sync.working_copy import WorkingCopy

ROUNDS = 4
TRASHED = "trashed"  # the file that is being replaced: digest in hex, and where its copy lies
BATCH_FILES, BATCH_BYTES = 500, 64 * limits.MIB


def writer(copy: WorkingCopy, kept: Collection[bytes] = ()) -> Writer:
    """`kept`: digests of files that the user asked to replace and that lie in the trash."""

    def asked(outcomes: Sequence[Outcome]) -> dict[str, str]:
        return {outcome.temp: _replaced(copy, outcome, kept) for outcome in outcomes}

    return Writer(
        copy.files, copy.db, lambda outcomes: _finish(copy, outcomes), asked, copy.claim_conflict_name
    )


def recover(copy: WorkingCopy) -> None:
    """Finish what a killed process began (device rule 5), also one that worked under a former link."""
    writer(copy, _in_trash(copy)).recover()
    rescue(copy)


def replace(copy: WorkingCopy, path: str, new: bytes, content: Content, trash: Path | None) -> Path | None:
    """Put the user's choice, `content` with the BLAKE3 `new`, at `path`; what is there goes to `trash`, or a
    new one, first. Not to be taken for a delete at any moment. The trash, None if there was nothing to
    keep."""
    copied = copy_to_trash(copy, path, trash)
    if copied is not None:
        copy.db.put(TRASHED, f"{copied[1].hex()} {copied[0] / path}")
    work = writer(copy, kept=() if copied is None else (copied[1],))
    if work.apply([Change(path, new)], lambda _: iter([(new, content)]), "asked"):
        raise Conflict(f"a directory or a link is where {path} belongs; move it away, then try again")
    return trash if copied is None else copied[0]


def _in_trash(copy: WorkingCopy) -> list[bytes]:
    """The digest of the file that a killed `replace` was about, if its copy in the trash is still there."""
    digest, _, trashed = (copy.db.text(TRASHED) or "").partition(" ")
    return [unhex(digest)] if trashed and Path(trashed).is_file() else []


def _replaced(copy: WorkingCopy, outcome: Outcome, kept: Collection[bytes]) -> str:
    entry = copy.entries.get(outcome.path)
    known = {*kept, outcome.new, entry.shadow if entry else None}
    unknown = outcome.not_a_file or (outcome.displaced is not None and outcome.displaced.digest not in known)
    return "aside" if unknown else "done"


def settle(copy: WorkingCopy, wanted: Iterable[str]) -> None:
    """Write these paths, whose lanes changed. What stands in the way moves aside; saves are captured."""
    todo = list(wanted)
    for _ in range(ROUNDS):
        capture(copy, todo)
        todo = [path for path in todo if not _is_settled(copy, path)]
        changes = [change for path in todo for change in _change(copy, path)]
        for batch in _batches(copy, changes):
            _apply(copy, batch)
        if not todo:
            return


def remove(copy: WorkingCopy, gone: Sequence[str]) -> None:
    """Take files away that are gone from the branch and unchanged here."""
    for start in range(0, len(gone), BATCH_FILES):
        writer(copy).apply([Change(path, None) for path in gone[start : start + BATCH_FILES]], _nothing)


def _nothing(digests: set[bytes]) -> Iterator[tuple[bytes, Content]]:
    yield from ()


def _is_settled(copy: WorkingCopy, path: str) -> bool:
    entry = copy.entries.get(path)
    return entry is None or entry.settled


def _change(copy: WorkingCopy, path: str) -> list[Change]:
    """The write this path needs, after everything that is in its way has moved; none if it cannot be."""
    entry = copy.entries[path]
    if not _clear_path(copy, path):
        return []
    now = copy.digest_on_disk(path)
    if now not in (None, entry.shadow, entry.want):
        capture(copy, [path])  # a save since the last capture
        now = copy.digest_on_disk(path)
    if now not in (None, entry.shadow, entry.want) or (now is None and copy.exists(path)):
        _move_aside(copy, entry)
    return [Change(path, entry.want)] if path in copy.entries else []


def _move_aside(copy: WorkingCopy, entry: PathRecord) -> None:
    """The disk holds something that this lane cannot take in: it becomes a file of its own. Nothing is known
    to be on the disk first, so that a crash before the rename never looks like a delete."""
    clash = _conflict_on_disk(copy, entry)
    entry.shadow = None
    with copy.db.step():
        if clash is not None:
            record_conflict(copy, entry.path, clash)
        copy.save(entry)
    copy.move_aside(entry.path)


def _conflict_on_disk(copy: WorkingCopy, entry: PathRecord) -> ConflictingTexts | None:
    """What the text on the disk stands against; None if there is none, or nothing that it was made from."""
    if entry.kind != "text" or entry.shadow is None or copy.digest_on_disk(entry.path) is None:
        return None
    data = copy.files.read_up_to(entry.path, limits.TEXT_FILE)
    if data is None or kind_of(data) != "text":
        return None
    try:
        merge_edit(copy, entry.path, copy.lane_with_pending(entry), copy.text(entry.shadow), data)
    except TextsConflict as found:
        return found.texts
    return None  # saved again since it was looked at


def _clear_path(copy: WorkingCopy, path: str) -> bool:
    """Free the path of directories and of files where it needs a directory. False if it must stay as it is:
    a repository of its own lies there."""
    for above in paths.parents(path):
        info = copy.files.stat(above)
        if info is None:
            return True
        if not _is_directory(info.st_mode):
            copy.forget_and_move_aside(above)
            return True
    info = copy.files.stat(path)
    if info is None or not _is_directory(info.st_mode):
        return True
    if set(NESTED) & set(copy.files.names(path)):
        with copy.db.step():
            copy.db.put_unwritable(path, "a nested repository lies there")
        return False
    with copy.db.step():
        for below in [known for known in copy.entries if known.startswith(path + "/")]:
            copy.forget(below)
    _move_aside(copy, copy.entries[path])
    return True


def _is_directory(mode: int) -> bool:
    return (mode & 0o170000) == 0o040000


def _batches(copy: WorkingCopy, changes: list[Change]) -> Iterator[list[Change]]:
    batch: list[Change] = []
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


def _apply(copy: WorkingCopy, batch: list[Change]) -> None:
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
        for is_text, wanted in absent.items():
            if wanted:
                yield from copy.fetch(wanted, keep=is_text)

    writer(copy).apply(batch, supply)  # what is blocked stays unsettled: the next round clears the way
    copy.progress("write", len(batch), None, sum(sizes.values()))


# --- what came out of an exchange


def _finish(copy: WorkingCopy, outcomes: Sequence[Outcome]) -> dict[str, str]:
    states = {}
    fresh, gone = [], []
    for outcome in outcomes:
        states[outcome.temp] = _finished(copy, outcome)
        if outcome.new is None:
            gone.append(outcome.path)
        else:
            placed = read_stat(copy.files, outcome.path)
            if placed is not None and placed.digest == outcome.new:
                fresh.append(placed)
    copy.db.put_stats(fresh, gone)
    return states


def _finished(copy: WorkingCopy, outcome: Outcome) -> str:
    entry = copy.entries.get(outcome.path)
    if entry is None:
        return "aside" if outcome.not_a_file or outcome.displaced is not None else "done"
    before, entry.shadow = entry.shadow, outcome.new
    if outcome.new is None:
        copy.forget(outcome.path)
    else:
        copy.save(entry)
    if outcome.not_a_file:
        return "aside"
    if outcome.displaced is None or outcome.displaced.digest in (before, outcome.new):
        return "done"
    if outcome.new is not None and _captured_late_save(copy, entry, before, outcome):
        copy.save(entry)
        return "done"
    return "aside"


def _captured_late_save(copy: WorkingCopy, entry: PathRecord, before: bytes | None, outcome: Outcome) -> bool:
    """Whether a save that slipped into the exchange could be taken into the lane."""
    old = copy.objects.get(before) if before is not None else None
    if old is None or entry.kind != "text" or outcome.displaced is None or outcome.displaced.kind != "text":
        return False
    if kind_of(old) != "text":
        return False  # the path held another branch's binary
    data = copy.files.read(outcome.temp)
    if blake3(data) != outcome.displaced.digest or kind_of(data) != "text":
        return False
    return capture_late_save(copy, entry, old, data)
