"""Follows renames in live sync: an edit is moved into the file that the other side renamed.

An update names one path, so a rename arrives as a removal and a new file. If the file of an edit was removed,
its new path is searched for among the files that were added since the last seal, as in merges
(`localstore.core.merge.moves`). If the new path is not found, both files stay."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest as blake3
from localstore.core.errors import NotFound, ServerMisbehaved, ServerUnreachable
from localstore.core.merge.moves import Search, Ways, searches
from localstore.core.model.limits import BLOB_FILE, TEXT_FILE
from localstore.core.model.seal import PayloadMissing
from localstore.core.storage.file_kind import kind_of
from localstore.core.tree.directory import TreeEntry
from localstore.core.tree.read import Change
from localstore.record.database import FrontierRow
from localstore.record.entry import PathRecord, known_by_bytes
from localstore.sync.adopting import adopt
from localstore.sync.aside import forget_and_move_aside
from localstore.sync.capture import add_edit, capture
from localstore.sync.conflicts import TextsConflict
from localstore.sync.followed import RemovedText
from localstore.sync.remote import Remote, read_remote
from localstore.sync.renames import text_of, written
from localstore.sync.settle import remove, settle
from localstore.sync.working_copy import WorkingCopy

ASIDE = ".sync-conflict-"  # in the name of a conflict copy, which nobody renamed anything to
WAIT = 10.0  # seconds for which an edit waits until the new file of this folder is on the branch
MEMORY = 600.0  # seconds in which an editor may save a file under the name that it had


# --- edited here, renamed there


def moved_there(copy: WorkingCopy, gone: Collection[str], edited: Sequence[str]) -> Ways:
    """Finds those of the `edited` files that the branch has renamed. `gone`: the paths that the branch
    removed. Returns old path → new path."""
    followable = [path for path in edited if _can_follow(copy, path)]
    if not followable:
        return {}
    texts: dict[bytes, bytes] = {}
    gone_files: dict[str, TreeEntry] = {}
    try:
        for path in gone:
            entry = copy.entries[path]
            if entry.pending and entry.kind == "text":
                text = copy.confirmed_lane(entry).text()
                texts[blake3(text)] = text
                gone_files[path] = TreeEntry("text", blake3(text), len(text))
            elif entry.shadow is not None:
                gone_files[path] = TreeEntry(entry.kind, entry.shadow, entry.size)
    except (NotFound, PayloadMissing, ServerMisbehaved):
        return {}
    rows = copy.db.rows()
    came = _came_there(copy, gone_files, rows)
    return _find(copy, gone_files, followable, came, texts, rows)


def _can_follow(copy: WorkingCopy, path: str) -> bool:
    """Whether the file has an edit that can be moved into another file."""
    entry = copy.entries[path]
    now = copy.digest_on_disk(path)
    if entry.foreign or entry.shadow is None or now is None:
        return False
    if entry.kind == "text":
        return entry.pending > 0 and now == entry.shadow
    return entry.kind == "blob" and not entry.pending


def _came_there(
    copy: WorkingCopy, gone_files: Mapping[str, TreeEntry], rows: Mapping[str, FrontierRow]
) -> dict[str, TreeEntry]:
    """The files that others created on the branch since the last seal, by path. A file that was created with
    the bytes of one of `gone_files` counts as it was created, even if it was edited afterwards."""
    sealed, names = copy.db.read_sealed(), {file.digest for file in gone_files.values()}
    came = {}
    for path, row in rows.items():
        if (
            row.other
            and path not in gone_files
            and path not in sealed
            and ASIDE not in path
            and row.kind != "gone"
        ):
            came[path] = _as_made(copy, TreeEntry(row.kind, row.digest, row.size), path, row.gen, names)
    return came


def _as_made(copy: WorkingCopy, now: TreeEntry, path: str, gen: int, names: Collection[bytes]) -> TreeEntry:
    entry = copy.entries.get(path)
    genesis = entry.genesis if entry is not None and entry.gen == gen else None
    return TreeEntry(now.kind, genesis, now.size) if genesis is not None and genesis in names else now


def take_along(copy: WorkingCopy, old: str, new: str) -> None:
    """Move the edit of the file `old`, which the branch renamed to `new`, into the file `new`. Then remove
    `old`. If the edit does not fit, the edited file becomes a conflict copy."""
    entry, target = copy.entries.get(old), copy.entries.get(new)
    if entry is None:
        return  # it was moved aside with its folder, where the branch has a file
    taken = False
    if target is not None and target.kind == entry.kind == "text":
        mine = entry.shadow
        taken = _take_text(copy, entry, target)
        if taken and mine is not None:  # an editor that has the file open will save there again
            copy.followed.removed[old] = RemovedText(mine, time.monotonic() + MEMORY, new)
    elif target is not None and target.kind == entry.kind == "blob":
        taken = _take_bytes(copy, entry, new)
    if taken:
        remove(copy, [old])
        copy.followed.moved.append((old, new))
        copy.followed.edited.add(new)
    elif old in copy.entries:
        forget_and_move_aside(copy, old)


def _take_text(copy: WorkingCopy, entry: PathRecord, target: PathRecord) -> bool:
    """Add the edit of the text `entry` to the pending edits of the text `target`. Returns False if the edit
    does not fit there. Afterwards the edited file counts as removed by the branch and unedited here, so that
    a crash cannot cause the edit to be applied twice."""
    base, mine = copy.confirmed_lane(entry).text(), copy.lane_with_pending(entry).text()
    assert entry.shadow is not None  # noqa: S101 - asked by `_can_follow`
    done = known_by_bytes(entry.path, "text", entry.shadow, entry.size)
    if not _is_editable(copy, target):
        return False
    try:
        with copy.db.step():
            add_edit(copy, target, base, mine)
            copy.save(target)
            copy.forget(entry.path)
            copy.save(done)
    except TextsConflict as found:
        settle(copy, [entry.path])
        forget_and_move_aside(copy, entry.path, target.path, found.texts)
        return False
    settle(copy, [target.path])
    return True


def _is_editable(copy: WorkingCopy, target: PathRecord) -> bool:
    """Whether an edit of another file can be added to the text `target`. Three conditions must hold: the lane
    of `target` on the branch is known; no update of `target` is in flight, except an edit; and its file shows
    the recorded text. An edit that was saved in the file is captured first."""
    if not target.gen or target.foreign or target.shadow is None:
        return False
    if copy.db.flight_kinds().get(target.path, "edit_text") != "edit_text":
        return False
    capture(copy, [target.path])
    return copy.digest_on_disk(target.path) == target.shadow


def _take_bytes(copy: WorkingCopy, entry: PathRecord, new: str) -> bool:
    content = copy.files.read_up_to(entry.path, BLOB_FILE)
    if content is None or entry.shadow is None:
        return False
    name = blake3(content)
    if copy.digest_on_disk(new) not in (entry.shadow, name):
        return False  # edited there as well
    if copy.digest_on_disk(new) != name and not written(copy, new, content, entry.shadow):
        return False
    with copy.db.step():
        copy.forget(entry.path)
        copy.save(known_by_bytes(entry.path, "blob", name, len(content)))
    return True


# --- renamed here, edited there


def bring_along(copy: WorkingCopy, entry: PathRecord, remote: Remote) -> bool:
    """Apply the branch's edit of a file to the path to which the file was renamed here. The branch's version
    at the old path then counts as known, so that its removal can be sent. Returns False if this is not
    possible. Then the caller restores the file at the old path with the edit."""
    old, row = entry.path, remote.row
    waiting = copy.followed.later.pop(old, time.monotonic() + WAIT)
    if entry.shadow is None or not entry.gen or entry.foreign or copy.exists(old):
        return False
    if entry.gen == row.gen and row.other <= entry.seen and entry.settled:
        return False
    new = _find_new_path(copy, entry)
    if new is None:
        return False
    if not _is_sent(copy, new):
        if time.monotonic() < waiting:
            copy.followed.later[old] = waiting
        return old in copy.followed.later
    target = copy.entries[new]
    try:
        if entry.kind == row.kind == target.kind == "text":
            brought = _bring_text(copy, entry, remote, target)
        else:
            brought = entry.kind == row.kind == target.kind == "blob" and _bring_bytes(
                copy, entry, remote, new
            )
    except (NotFound, PayloadMissing, ServerMisbehaved):
        brought = False
    (copy.followed.moved if brought else copy.followed.back).append((old, new))
    if brought:
        copy.followed.edited.add(new)
        if target.kind == "text":
            settle(copy, [new])  # a failure is not hidden: the edit is recorded, and the next round writes it
    return brought


def _is_sent(copy: WorkingCopy, path: str) -> bool:
    """Whether the branch has this file, according to the record."""
    entry = copy.entries.get(path)
    sent = entry is not None and entry.gen > 0
    return sent and copy.db.flight_kinds().get(path, "edit_text") == "edit_text"


def _find_new_path(copy: WorkingCopy, entry: PathRecord) -> str | None:
    """The path in this folder to which the missing file was renamed, None if it was not renamed. Files that
    nobody else has changed on the branch are looked at first."""
    assert entry.shadow is not None  # noqa: S101 - asked by `bring_along`
    gone_files = {entry.path: TreeEntry(entry.kind, entry.shadow, entry.size)}
    sealed, rows = copy.db.read_sealed(), copy.db.rows()
    came: dict[str, TreeEntry] = {}
    copy.entries.load(changed := copy.db.may_need_update())
    for path in changed:
        file = _on_disk(copy, path)
        if file is None:
            continue
        if not copy.exists(path):
            gone_files[path] = file
        elif ASIDE not in path and path not in sealed:
            other = copy.entries.get(path)
            came[path] = _as_made(copy, file, path, other.gen if other else 0, (entry.shadow,))
    own = {path: candidate for path, candidate in came.items() if path not in rows or not rows[path].other}
    for files in (own, came):
        new = _find(copy, gone_files, [entry.path], files, {}, rows).get(entry.path)
        if new is not None:
            return new
    return None


def _on_disk(copy: WorkingCopy, path: str) -> TreeEntry | None:
    """The file that was at the path on the disk, according to the record. None if there was none."""
    entry, stat = copy.entries.get(path), copy.db.scan_record.single(path)
    if stat is None and entry is not None:
        return None if entry.shadow is None else TreeEntry(entry.kind, entry.shadow, entry.size)
    stat = stat or copy.db.scan_record.file(path)
    return None if stat is None else TreeEntry(stat.kind, stat.digest, stat.size)


def _bring_text(copy: WorkingCopy, entry: PathRecord, remote: Remote, target: PathRecord) -> bool:
    """Apply the branch's edit of a text to `target`, the file to which the text was renamed here. The
    branch's text is merged with the unconfirmed edits of this folder; what it changes in the last text on the
    disk becomes a pending edit of `target`. The same transaction records the branch's version at the old path
    as known. Returns False if the texts conflict, or if `target` cannot be edited now."""
    assert entry.shadow is not None  # noqa: S101 - asked by `bring_along`
    base, theirs = copy.text(entry.shadow), text_of(copy, remote)
    if entry.pending:
        confirmed, mine = copy.confirmed_lane(entry).text(), copy.lane_with_pending(entry).text()
        both = merge(confirmed, theirs, mine)
        if both.conflicts:
            return False
        theirs = both.text
    if not _is_editable(copy, target):
        return False
    try:
        with copy.db.step():
            add_edit(copy, target, base, theirs)
            copy.save(target)
            adopt(copy, remote, remote.row.digest)
    except TextsConflict:
        return False
    return True


def _bring_bytes(copy: WorkingCopy, entry: PathRecord, remote: Remote, new: str) -> bool:
    """Write the branch's version of a binary file to the path `new`, to which the file was renamed here. Then
    record this version as known at the old path. Returns False if the file was edited here, or if the bytes
    are not available."""
    row = remote.row
    if entry.shadow is None or copy.digest_on_disk(new) not in (entry.shadow, row.digest):
        return False
    if copy.digest_on_disk(new) != row.digest:
        content = dict(copy.fetch({row.digest: row.size}, keep=False)).get(row.digest)
        if content is None or blake3(content) != row.digest:
            return False
        if not written(copy, new, content, entry.shadow):
            return False
    with copy.db.step():
        adopt(copy, remote, row.digest)
    return True


# --- saved under the old name after the rename came


def remember_removed(copy: WorkingCopy, gone: Collection[str]) -> None:
    """Remember the texts of these paths, which the branch removes. An editor may have one of them open and
    save it again."""
    now = time.monotonic()
    removed = copy.followed.removed
    for path in [path for path, text in removed.items() if text.until < now]:
        del removed[path]
    for path in gone:
        entry = copy.entries.get(path)
        if entry is not None and entry.kind == "text" and entry.shadow is not None:
            removed[path] = RemovedText(entry.shadow, now + MEMORY)


def follow_save(copy: WorkingCopy, old: str) -> None:
    """Handles a save at `old`, the old path of a file that others renamed recently: moves the saved edit into
    the renamed file, and removes the file at `old`. Does nothing if no file was saved there. Three kinds of
    saves count as new files and stay: a repeated save of the same text, the unchanged old text, and a copy of
    the renamed file."""
    removed = copy.followed.removed.get(old)
    if removed is None or old in copy.entries or removed.until < time.monotonic():
        return
    saved_text = copy.files.read_up_to(old, TEXT_FILE)
    if saved_text is None or kind_of(saved_text) != "text":
        return
    name = blake3(saved_text)
    if name == removed.digest:
        del copy.followed.removed[old]
        return
    with suppress(NotFound, PayloadMissing, ServerMisbehaved, ServerUnreachable, TextsConflict):
        base = copy.text(removed.digest)
        target = copy.entries.get(removed.new or _find_successor(copy, old, removed, base, saved_text) or "")
        if target is None or target.want == name or not _is_editable(copy, target):
            return
        with copy.db.step():
            copy.objects.add([(name, saved_text)])
            add_edit(copy, target, base, saved_text)
            copy.save(target)
            copy.save(known_by_bytes(old, "text", name, len(saved_text)))
        settle(copy, [target.path])
        remove(copy, [old])
        copy.followed.removed[old] = RemovedText(name, removed.until, target.path)
        copy.followed.moved.append((old, target.path))
        copy.followed.edited.add(target.path)


def _find_successor(
    copy: WorkingCopy, old: str, removed: RemovedText, base: bytes, saved_text: bytes
) -> str | None:
    """The path that the removed text was renamed to. `base`: the removed text; `mine`: the text saved at the
    old path. None if `mine` is not based on `base`, or if the text was not renamed."""
    was, rows = {old: TreeEntry("text", removed.digest, len(base))}, copy.db.rows()
    saved = {f"{old} ": TreeEntry("text", blake3(saved_text), len(saved_text))}
    if not _find(copy, was, [old], saved, {removed.digest: base, blake3(saved_text): saved_text}, rows):
        return None
    came = _came_there(copy, was, rows)
    texts = {path: file for path, file in came.items() if file.kind == "text"}
    return _find(copy, was, [old], texts, {removed.digest: base}, rows).get(old)


# --- both


def _find(
    copy: WorkingCopy,
    gone_files: Mapping[str, TreeEntry],
    followable: Collection[str],
    came: Mapping[str, TreeEntry],
    texts: Mapping[bytes, bytes],
    rows: Mapping[str, FrontierRow],
) -> Ways:
    """Which of the removed files were renamed to which of the new files, as old path → new path.
    `gone_files`: all removed files, by path; `followable`: paths of those to search for; `came`: the new
    files, by path. `texts`: texts that are already known, by digest."""
    gone: dict[str, Change] = {path: (file, None) for path, file in gone_files.items()}
    edits: dict[str, Change] = {path: (gone_files[path], gone_files[path]) for path in followable}
    search, _ = searches({**gone, **{path: (None, file) for path, file in came.items()}}, edits)
    ways = search.exact
    if search.wanted:
        with suppress(NotFound, PayloadMissing, ServerMisbehaved):
            ways = search.pairs(_texts(copy, search, texts, rows))
    return {old: new for old, new in ways.items() if old in followable}


def _texts(
    copy: WorkingCopy, search: Search, held: Mapping[bytes, bytes], rows: Mapping[str, FrontierRow]
) -> dict[bytes, bytes]:
    """The texts that the search for renames compares, by digest. `held`: texts that are already known. Raises
    the errors of `WorkingCopy.text`."""
    digests = search.digests()
    texts = {name: text for name, text in held.items() if name in digests}
    for path, file in search.added.items():
        if file.digest in digests and file.digest not in texts:
            data = copy.files.read_up_to(path, TEXT_FILE)
            if data is not None and blake3(data) == file.digest:
                texts[file.digest] = data
    live = [row for path in search.added if (row := rows.get(path)) and row.live and row.digest in digests]
    for remote in read_remote(copy, [row for row in live if row.digest not in texts]):
        texts[remote.row.digest] = text_of(copy, remote)
    return texts | {name: copy.text(name) for name in digests if name not in texts}
