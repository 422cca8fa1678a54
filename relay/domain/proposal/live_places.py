"""Finds where the lines of threads are on the live frontier of a proposal's head branch. On the frontier,
typed edits move the lines before they are sealed.

The positions are computed for callers with the role write, from the sealed and the live text, and are not
stored. The work counts against the caller's budget for texts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from localstore.core.diff import anchors
from localstore.core.diff.anchors import Span
from localstore.core.encoding import digest
from localstore.core.model.limits import DIFF_BYTES
from localstore.core.model.thread import How, LivePlace
from relay.caller import View
from relay.db import ref as refs
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.db.live import lane as lanes
from relay.db.live.lane import LaneRow
from relay.db.ref import RefRow
from relay.domain.discussion.rows.thread import ThreadRow
from relay.domain.history import content, sealed
from relay.domain.live import frontier
from relay.domain.proposal.placing import SEARCHED
from relay.memory.lanes import Desk

CHANGED = 1000  # paths with unsealed changes beyond which a lost file's lines are not looked for


async def find_live_places(
    view: View, proposal: ProposalRow, threads: Sequence[ThreadRow]
) -> dict[str, LivePlace]:
    """Find the live positions of open threads whose file has unsealed changes. Returns them by thread id.
    Returns {} for callers who may not see the live frontier, and for a head in another repository."""
    candidates = [
        thread
        for thread in threads
        if thread.state == "open" and thread.side == "new" and thread.at_seal == proposal.head_seal
    ]
    if (
        not candidates
        or not view.has("write")
        or view.policy is not None
        or proposal.head_repo_id is not None
    ):
        return {}
    async with view.read(snapshot=True) as tx:
        row = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=proposal.head_id)
        branch = refs.to_row(row) if row is not None else None
        if branch is None or branch.head != proposal.head_seal or branch.seq == branch.sealed_seq:
            return {}
        work = await _begin_work(tx, view, branch, candidates)
    if not work.todo:
        return {}
    await work.read_sealed(view, proposal.head_seal)
    me = view.me.account_id
    await view.node.share.finish(me, work.go_on)
    return work.places


async def _begin_work(tx: Tx, view: View, branch: RefRow, threads: Sequence[ThreadRow]) -> _Comparisons:
    """Collect the comparisons to make: the threads whose file has changed, and the live texts."""
    stored = await tx.all(
        lanes.BY_PATH, branch_id=branch.id, paths=sorted({thread.at_path for thread in threads})
    )
    changed = {row.path: row for row in map(lanes.to_row, stored) if row.ver > branch.sealed_seq}
    todo = [thread for thread in threads if thread.at_path in changed]
    texts = {path: row for path, row in changed.items() if _is_readable(row)}
    others: dict[str, LaneRow] = {}
    if any(thread.at_path not in texts for thread in todo):
        since = [
            lanes.to_row(lane_row)
            for lane_row in await tx.all(lanes.SINCE, branch_id=branch.id, since=branch.sealed_seq)
        ]
        room = SEARCHED
        for row in sorted(since, key=lambda row: (row.size, row.path)) if len(since) <= CHANGED else ():
            if _is_readable(row) and row.path not in texts and (room := room - row.size) >= 0:
                others[row.path] = row
    live = await _read_texts(tx, view, branch.id, [*texts.values(), *others.values()])
    return _Comparisons(todo, live, frozenset(others), branch.seq)


def _is_readable(row: LaneRow) -> bool:
    return row.kind == "text" and row.size <= DIFF_BYTES


async def _read_texts(tx: Tx, view: View, branch_id: str, rows: Sequence[LaneRow]) -> dict[str, bytes]:
    edited = [row for row in rows if row.edited]
    whole = [row for row in rows if not row.edited]
    by_digest = await content.read(view.node, tx, view.repo.id, [row.digest for row in whole])

    def read(desk: Desk) -> dict[str, bytes]:
        return {row.path: desk.find(frontier.key_of(branch_id, row)).text() for row in edited}

    texts = await frontier.with_lanes(view.node, tx, view.repo.id, branch_id, edited, read) if edited else {}
    return texts | {row.path: by_digest[row.digest] for row in whole}


@dataclass(slots=True)
class _Comparisons:
    """Finds where the lines of threads are in the live texts of their files. `todo`: the threads that are
    left. `live`: live texts by path. `others`: paths of texts to search for lines whose file does not have
    them any more. `seq`: the number of the live frontier. `sealed`: sealed texts by path. `places`: the
    result, by thread id."""

    todo: list[ThreadRow]
    live: dict[str, bytes]
    others: frozenset[str]
    seq: int
    sealed: dict[str, bytes] = field(default_factory=dict)
    places: dict[str, LivePlace] = field(default_factory=dict)

    async def read_sealed(self, view: View, seal: str) -> None:
        root = (await sealed.seal(view, seal)).root
        files = await sealed.find_entries(view, root, {thread.at_path for thread in self.todo})
        for path, file in files.items():
            self.sealed[path] = await sealed.read_content(view, file)

    def go_on(self, seconds: float) -> bool:
        """Find the lines of threads for at most `seconds`. Returns whether all are found."""
        until = time.monotonic() + seconds
        while self.todo and time.monotonic() < until:
            thread = self.todo.pop()
            if thread.at_path in self.sealed:
                self.places[thread.id] = self._place(thread, self.sealed[thread.at_path])
        return not self.todo

    def _place(self, thread: ThreadRow, before: bytes) -> LivePlace:
        after, span = self.live.get(thread.at_path), Span(thread.at_from, thread.at_to)
        lost = before[span.start : span.end]
        if after is not None:
            (moved,) = anchors.follow(before, after, [span])
            nearby = anchors.elsewhere(before, after, moved, lost) or moved
            if nearby.start < nearby.end or not lost:
                return self._place_at(thread, thread.at_path, after, nearby)
        matches = [
            (path, there)
            for path in sorted(self.others)
            if (there := anchors.elsewhere(b"", self.live[path], Span(0, 0), lost)) is not None
        ]
        if len(matches) == 1:
            path, there = matches[0]
            return self._place_at(thread, path, self.live[path], there)
        if after is not None:
            return self._place_at(thread, thread.at_path, after, moved)
        return LivePlace(
            path=thread.at_path, start=thread.at_first, end=thread.at_last, how="gone", seq=self.seq
        )

    def _place_at(self, thread: ThreadRow, path: str, text: bytes, span: Span) -> LivePlace:
        first, last = anchors.lines_of(text, span)
        unchanged = (span.start < span.end or thread.quote == digest(b"")) and thread.quote == digest(
            anchors.content(text, first, last)
        )
        there = (path, first, last) == (thread.path, thread.first_line, thread.last_line)
        how: How = "edited" if not unchanged else "same" if there else "moved"
        return LivePlace(path=path, start=first, end=last, how=how, seq=self.seq)
