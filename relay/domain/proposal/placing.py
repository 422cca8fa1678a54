"""Finds the lines of a proposal's threads in its newest version.

This reads files. So it is done after the commit that moved the head, by a job or for the first reader. It
starts at the seal where the lines were last found, and follows them through its descendants. If the new head
is not a descendant (after a rebase), it compares that seal with the new head directly. Files are followed
through renames as in blame.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from localstore.core import tree
from localstore.core.diff import anchors, renames
from localstore.core.diff.anchors import Span
from localstore.core.diff.renames import File
from localstore.core.encoding import digest
from localstore.core.errors import NotFound, TooLarge
from localstore.core.model.limits import DIFF_BYTES, MIB
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from relay.caller import repo_name
from relay.db import seal as seals
from relay.db.collaboration import proposal as proposals
from relay.domain.discussion.rows import thread as rows
from relay.domain.discussion.rows.thread import ThreadRow
from relay.domain.proposal import versions
from relay.memory import texts as heavy
from relay.memory import trees
from relay.node import Node

AT_ONCE = 200  # threads that are carried together
STEPS = 64  # seals between two heads that are walked one by one
SEARCHED = 4 * MIB  # of changed files in which lost lines are looked for
_PLACE = ("at_seal", "at_path", "at_from", "at_to", "at_first", "at_last", "how", "carried_to")


async def settle(node: Node, repo_id: str, number: int) -> None:
    """Find the lines of a proposal's open threads in its newest version. Call it at any time, outside of a
    transaction."""
    await versions.settle(node, repo_id, number)
    of = {"of_repo": repo_id, "of_number": number}
    while True:
        async with node.db.read(near=True) as tx:
            row = await tx.one(proposals.ONE, **of)
            if row is None:
                return
            newest = proposals.to_row(row)
            ends = {"head": newest.head_seal, "base": newest.merge_base or ""}
            threads = [
                rows.to_row(thread_row)
                for thread_row in await tx.all(rows.TO_CARRY, **of, **ends, limit=AT_ONCE)
            ]
        if not threads:
            return
        moved_threads = []
        for side, end in (("new", ends["head"]), ("old", ends["base"])):
            moved_threads += await carry_threads(
                node, repo_id, [thread for thread in threads if thread.side == side], end
            )
        async with node.db.write(repo_name(repo_id)) as tx:
            was = {thread.id: thread.carried_to for thread in threads}
            for thread in moved_threads:
                values = {f"new_{name}": getattr(thread, name) for name in _PLACE}
                await tx.run(rows.CARRIED, **of, thread=thread.id, was=was[thread.id], **values)
        if len(threads) < AT_ONCE:
            return


async def settle_job(node: Node, data: dict[str, Any]) -> None:
    await settle(node, data["repo_id"], data["number"])


async def carry_threads(node: Node, repo_id: str, threads: Sequence[ThreadRow], end: str) -> list[ThreadRow]:
    """Find the lines of the threads in the seal `end`, and return the threads with these positions. If `end`
    is "", they are returned without positions."""
    placed_threads: list[ThreadRow] = []
    for start in {thread.at_seal for thread in threads}:
        group = [thread for thread in threads if thread.at_seal == start]
        line = await _read_line(node, start, end) if end else []
        by_id = {thread.id: thread for thread in group}
        for before, after in zip([start, *line], line, strict=False):
            moving = [thread for thread in by_id.values() if thread.at_seal == before]
            for thread in await _carry_step(node, repo_id, moving, before, after):
                by_id[thread.id] = thread
        if lost := [thread for thread in by_id.values() if end and thread.at_seal != end]:
            for before in {thread.at_seal for thread in lost}:
                again = [thread for thread in lost if thread.at_seal == before]
                by_id |= {
                    thread.id: thread for thread in await _carry_step(node, repo_id, again, before, end)
                }
        placed_threads += [
            replace(thread, carried_to=end, how=_how_carried(thread)) for thread in by_id.values()
        ]
    return placed_threads


def place_thread(thread: ThreadRow, text: bytes, path: str, span: Span, seal: str) -> ThreadRow:
    """Copy the thread with a new position. `span`: the bytes of its lines in `text`. `text`: the file at
    `path` in the tree of `seal`."""
    first, last = anchors.lines_of(text, span)
    same = span.start < span.end or thread.quote == digest(b"")
    same = same and digest(anchors.content(text, first, last)) == thread.quote
    return replace(
        thread,
        at_seal=seal,
        at_path=path,
        at_from=span.start,
        at_to=span.end,
        at_first=first,
        at_last=last,
        how="same" if same else "edited",
    )


def _how_carried(thread: ThreadRow) -> Any:
    if thread.how not in ("same", "moved"):
        return thread.how
    place = (thread.at_path, thread.at_first, thread.at_last)
    return "same" if place == (thread.path, thread.first_line, thread.last_line) else "moved"


async def _read_line(node: Node, start: str, end: str) -> list[str]:
    """List the seals that lead from `start` to `end` along first parents, oldest first, without `start`. If
    `start` is no ancestor of `end` along first parents, or if there are too many seals, lists only `end`."""
    line = [end]
    if start == end:
        return []
    async with node.db.read() as tx:
        while len(line) < STEPS:
            above = await tx.value(rows.FIRST_PARENT, seal=line[-1])
            if above == start:
                return line[::-1]
            if above is None:
                break
            line.append(above)
    return [end]


class _Files:
    """The files of two trees, and the differences between them."""

    def __init__(self, node: Node, repo_id: str, before: bytes, after: bytes) -> None:
        self.node, self.repo_id = node, repo_id
        self.before, self.after = before, after
        self._changes: Mapping[str, Change] | None = None

    async def changes(self) -> Mapping[str, Change]:
        if self._changes is None:
            diff = tree.diff(self.before, self.after)
            self._changes = await trees.drive(diff, self.node.objects.read_many)
        return self._changes

    async def lookup(self, root: bytes, paths: Iterable[str]) -> dict[str, TreeEntry]:
        distinct = sorted(set(paths))
        return await trees.drive(tree.lookup(root, distinct), self.node.objects.read_many, len(distinct))

    async def read(self, file: TreeEntry) -> bytes:
        return await self.node.objects.read(file.digest, self.repo_id)

    async def find_renamed(self) -> dict[str, str]:
        """Find the moved files. Returns new paths by old path."""
        changes = await self.changes()
        removed = {path: _to_file(old) for path, (old, new) in changes.items() if old and not new}
        added = {path: _to_file(new) for path, (old, new) in changes.items() if new and not old}
        if not removed or not added:
            return {}
        moved = renames.exact(removed, added)
        undecided = renames.candidates(removed, added, moved)
        if undecided:
            digests = {file.digest for side in undecided for file in side.values()}
            texts = await self.node.objects.read_many(sorted(digests), self.repo_id)
            size = sum(file.size for side in undecided for file in side.values())
            with contextlib.suppress(TooLarge):  # then those that moved unchanged are all
                moved = moved + await self.node.workers.run(
                    self.repo_id, size, heavy.find_moves, undecided, texts
                )
        return {rename.old: rename.new for rename in moved}

    async def find_searched(self, but: str) -> dict[str, bytes]:
        """Read the new texts of all changed files, except the file at the path `but`. Small ones come first,
        until a size limit is reached. Returns them by path."""
        texts: dict[str, bytes] = {}
        room = SEARCHED
        sides = [(path, new) for path, (_, new) in (await self.changes()).items() if new and path != but]
        for path, file in sorted(sides, key=lambda item: (item[1].size, item[0])):
            room -= file.size
            if room < 0:
                break
            if file.kind == "text":
                texts[path] = await self.read(file)
        return texts


async def _carry_step(
    node: Node, repo_id: str, threads: Sequence[ThreadRow], before: str, after: str
) -> list[ThreadRow]:
    """Find the lines of the threads in the seal `after`. `before`: the seal in which their lines are known.
    Threads whose lines are not found are left out."""
    if not threads:
        return []
    async with node.db.read() as tx:
        roots = [await seals.root_of(tx, repo_id, seal_id) for seal_id in (before, after)]
    if roots[0] is None or roots[1] is None:
        return []
    files = _Files(node, repo_id, roots[0], roots[1])
    placed_threads: list[ThreadRow] = []
    try:
        paths = {thread.at_path for thread in threads}
        old, new = await files.lookup(files.before, paths), await files.lookup(files.after, paths)
        gone = [path for path in paths if path not in new]
        ways = await files.find_renamed() if gone else {}
        if moved := [ways[path] for path in gone if path in ways]:
            new |= await files.lookup(files.after, moved)
        for path in sorted(paths):
            group = [thread for thread in threads if thread.at_path == path]
            way = ways.get(path, path)
            placed_threads += await _carry_in_file(files, group, old.get(path), way, new.get(way), after)
    except NotFound:  # bytes that were never here, or are not any more
        return placed_threads
    return placed_threads


async def _carry_in_file(
    files: _Files,
    threads: Sequence[ThreadRow],
    old: TreeEntry | None,
    path: str,
    new: TreeEntry | None,
    seal: str,
) -> list[ThreadRow]:
    if old is None or old.kind != "text" or old.size > DIFF_BYTES:
        return []
    if old == new:
        return [replace(thread, at_seal=seal, at_path=path) for thread in threads]
    before = await files.read(old)
    after = None
    placed_threads: list[ThreadRow] = []
    if new is not None and new.kind == "text" and new.size <= DIFF_BYTES:
        after = await files.read(new)
        spans = [Span(thread.at_from, thread.at_to) for thread in threads]
        size = len(before) + len(after)
        try:
            new_spans = await files.node.workers.go_on_waiting(
                files.repo_id, size, heavy.follow_spans, before, after, spans
            )
        except TooLarge:  # and would be again: the threads are looked for in the next version
            return []
        placed_threads = [
            place_thread(thread, after, path, span, seal)
            for thread, span in zip(threads, new_spans, strict=True)
        ]
    away = [thread for thread in threads if after is None] + [
        thread for thread in placed_threads if thread.at_from == thread.at_to and thread.quote != digest(b"")
    ]
    by_id = {thread.id: thread for thread in threads}
    for thread in away:
        was = by_id[thread.id]
        moved_thread = await _find_elsewhere(files, was, before, path, seal)
        if moved_thread is not None:
            placed_threads = [other for other in placed_threads if other.id != thread.id] + [moved_thread]
    return placed_threads


async def _find_elsewhere(
    files: _Files, thread: ThreadRow, before: bytes, path: str, seal: str
) -> ThreadRow | None:
    """Find the lines of a thread in another changed file. `before`: the old text in which the lines were.
    Returns the thread at its new position, or None if no file or several files have its lines."""
    lost = before[thread.at_from : thread.at_to]
    matches = []
    for other, text in (await files.find_searched(path)).items():
        span = anchors.elsewhere(b"", text, Span(0, 0), lost)
        if span is not None:
            matches.append(place_thread(thread, text, other, span, seal))
    return matches[0] if len(matches) == 1 else None


def _to_file(side: TreeEntry | None) -> File:
    assert side is not None  # noqa: S101 - the callers left out what has no such side
    return File(side.digest, side.size, side.kind == "text")
