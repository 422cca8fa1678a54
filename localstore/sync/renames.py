"""Follows renames before a pull. An edit of the branch is moved into the file that was renamed here, and an
edit made here into the file that the branch renamed. Renames are found as in a merge of two seals
(`localstore.core.merge.moves`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest as blake3
from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.lane.lane import Lane
from localstore.core.merge.moves import Search, Ways, searches
from localstore.core.model.limits import TEXT_FILE
from localstore.core.model.seal import PayloadMissing
from localstore.core.tree.directory import TreeEntry
from localstore.core.tree.read import Change
from localstore.folder import writer as writing
from localstore.folder.files import Blocked, Content
from localstore.folder.scan_result import Scan
from localstore.record.database import FrontierRow
from localstore.sync.adopting import adopt
from localstore.sync.aside import forget_and_move_aside
from localstore.sync.conflicts import ConflictingTexts
from localstore.sync.remote import Remote, read_remote
from localstore.sync.settle import writer
from localstore.sync.working_copy import WorkingCopy


def follow_renames(copy: WorkingCopy, scan: Scan) -> dict[str, tuple[str, str]]:
    """Follow the renames of both sides since this folder and the branch were last equal. This is part of a
    pull that merges, and runs before edits are captured.

    Returns old path → (new path here, new path on the branch) for each file that the sides renamed
    differently. Both versions of such a file stay."""
    ours = _ours(copy, scan)
    if not ours:
        return {}
    rows = copy.db.rows()
    theirs = _theirs(copy, rows)
    our_search, their_search = searches(ours, theirs)
    if not (our_search.added or our_search.exact or their_search.added or their_search.exact):
        return {}
    moved_here, moved_there = _ways(copy, scan, rows, our_search), _ways(copy, scan, rows, their_search)
    for old, new in sorted(moved_here.items()):
        if old in theirs and old in rows and old not in moved_there and new not in theirs:
            _bring_edit(copy, rows[old], new, ours[old][0], ours[new][1])
    for old, new in sorted(moved_there.items()):
        edit = ours.get(old)
        if edit is not None and edit[1] is not None and edit[0] is not None and new not in ours:
            _move_edit(copy, old, rows[new], edit[0])
    return {
        old: (new, moved_there[old])
        for old, new in sorted(moved_here.items())
        if moved_there.get(old, new) != new
    }


def _ours(copy: WorkingCopy, scan: Scan) -> dict[str, Change]:
    """The changes of this folder that the branch lacks, by path. A file that is on the branch and not in the
    last seal counts as new here. It may be the new name of a file that was renamed here, whose old name the
    relay has refused to remove."""
    flying = copy.db.flight_kinds()
    sealed = copy.db.read_sealed()
    changes: dict[str, Change] = {}
    for path in copy.db.may_need_update():
        if path in flying or scan.unknown(path):
            continue
        entry, stat = copy.entries.get(path), scan.find(path)
        now = None if stat is None else TreeEntry(stat.kind, stat.digest, stat.size)
        if now is not None and (entry is None or (path not in sealed and entry.shadow == now.digest)):
            changes[path] = (None, now)
        elif entry is not None and entry.gen and entry.settled and not entry.pending and entry.shadow:
            base = TreeEntry(entry.kind, entry.shadow, entry.size)
            if now is None or now.digest != base.digest:
                changes[path] = (base, now)
    return changes


def _theirs(copy: WorkingCopy, rows: Mapping[str, FrontierRow]) -> dict[str, Change]:
    """The changes of the branch that this folder lacks, by path. `rows`: the rows of the frontier, by
    path."""
    index = copy.db.number("since")
    changes: dict[str, Change] = {}
    for path, entry in copy.entries.items():
        if not entry.gen or entry.shadow is None or not entry.settled or entry.pending:
            continue
        row, base = rows.get(path), TreeEntry(entry.kind, entry.shadow, entry.size)
        if row is None:
            if entry.seen <= index:
                changes[path] = (base, None)
        elif row.digest != entry.shadow:
            changes[path] = (base, _tree_entry(row))
    for path, row in rows.items():
        if path not in copy.entries:
            changes[path] = (None, _tree_entry(row))
    return changes


def _tree_entry(row: FrontierRow) -> TreeEntry:
    assert row.kind != "gone"  # noqa: S101 - rows of the frontier are files
    return TreeEntry(row.kind, row.digest, row.size)


def _ways(copy: WorkingCopy, scan: Scan, rows: Mapping[str, FrontierRow], search: Search) -> Ways:
    """Finds the files that one side moved, as old path → new path. `search`: the search for moves on this
    side; `rows`: the rows of the frontier, by path. If one of the texts is not available, only moves of files
    with equal bytes are found."""
    digests = search.digests()
    texts: dict[bytes, bytes] = {}
    for path in search.added if digests else ():
        stat = scan.find(path)
        if stat is not None and stat.digest in digests:
            texts[stat.digest] = copy.files.read_up_to(path, TEXT_FILE) or b""
    live = [rows[path] for path in search.added if path in rows and rows[path].live] if digests else []
    try:
        for remote in read_remote(copy, live):
            texts[remote.row.digest] = text_of(copy, remote)
        texts |= {name: copy.text(name) for name in digests if name not in texts}
    except (NotFound, PayloadMissing, ServerMisbehaved):
        return dict(search.exact)
    return search.pairs(texts)


def text_of(copy: WorkingCopy, remote: Remote) -> bytes:
    return copy.text(remote.row.digest) if remote.state is None else Lane.load(remote.state).text()


def _bring_edit(
    copy: WorkingCopy, row: FrontierRow, new: str, base: TreeEntry | None, mine: TreeEntry | None
) -> None:
    """Apply the branch's edit of a file to the path `new`, to which the file was renamed here. `row`: the
    branch's version; `base`: the version that both sides edited; `mine`: the version of this folder. The
    branch's version at the old path then counts as known, so that its removal can be sent. If the edits
    conflict, the branch's version stays and this folder's version becomes a conflict copy."""
    remote = next(iter(read_remote(copy, [row])), None)
    if remote is None or base is None or mine is None:
        return
    if base.kind == mine.kind == remote.row.kind == "text":
        theirs, was = text_of(copy, remote), copy.text(base.digest)
        text = copy.files.read_up_to(new, TEXT_FILE)
        if text is None or blake3(text) != mine.digest:
            return  # saved again meanwhile; the next pull looks again
        merged = merge(was, theirs, text)
        content = theirs if merged.conflicts or merged.text is None else merged.text
        if merged.conflicts:
            forget_and_move_aside(copy, new, clash=ConflictingTexts(was, theirs, text, merged.conflicts))
        else:
            copy.merged.add(new)
    elif mine.digest == base.digest and remote.row.kind == "blob":
        content = dict(copy.fetch({remote.row.digest: remote.row.size}, keep=False)).get(
            remote.row.digest, b""
        )
        if blake3(content) != remote.row.digest:
            return
        copy.merged.add(new)
    else:
        return
    if written(copy, new, content, mine.digest):
        with copy.db.step():
            adopt(copy, remote, remote.row.digest)


def written(copy: WorkingCopy, path: str, content: bytes, base: bytes) -> bool:
    """Write `content` to the path as if the user had saved it. `base`: digest of the text that was edited.
    Returns whether the file has the content now."""
    name = blake3(content)
    if name == base:
        return True

    def supply(digests: Collection[bytes]) -> Iterator[tuple[bytes, Content]]:
        yield name, content

    return not writer(copy, trashed=(base,)).apply([writing.FileWrite(path, name)], supply, "asked")


def _move_edit(copy: WorkingCopy, old: str, row: FrontierRow, base: TreeEntry) -> None:
    """Rename the edited file `old` to the path of `row`, to which the branch has renamed it. Then record the
    text from which the edit was made (`base`) as an older version of the branch's file, so that the edit is
    merged into the branch's version.

    In this order, nothing is lost if the process ends in between: the file then counts as a new one at a path
    that the branch has."""
    remote = next(iter(read_remote(copy, [row])), None)
    if remote is None or remote.row.kind != base.kind or copy.exists(row.path):
        return
    if copy.files.find_blocker(row.path) is not None:
        return  # its copy is kept beside, once the branch's files take the place
    with suppress(FileExistsError, FileNotFoundError, Blocked):
        copy.files.move(old, row.path)
        with copy.db.step():
            copy.forget(old)
            adopt(copy, remote, base.digest)
        copy.files.prune(old)
        copy.merged.add(row.path)
