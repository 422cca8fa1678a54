"""Rules of threads: which lines can be commented on, who sees a thread, and what resolving it does.

A thread belongs to a path. A reader sees the thread only if the reader sees this path, and the path to which
the lines moved. Counts include only threads that the reader sees. Comments that wait for a review are visible
to their author only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from localstore.core.diff import anchors
from localstore.core.encoding import digest
from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model import limits
from localstore.core.model.base import Page
from localstore.core.model.issue import Comment
from localstore.core.model.limits import DIFF_BYTES
from localstore.core.model.thread import (
    Place,
    Suggestion,
    Thread,
    ThreadComment,
    ThreadCreate,
    ThreadPatch,
    ThreadQuery,
)
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import View, account_name
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.db.paging import Cursor, page_size
from relay.domain.discussion import comment as posts
from relay.domain.discussion import posting, sight, subject
from relay.domain.discussion.rows import comment as comments
from relay.domain.discussion.rows import thread as rows
from relay.domain.discussion.rows.thread import ThreadRow
from relay.domain.history import sealed
from relay.domain.proposal import live_places, placing, states, versions

LINE_MAX = 1000  # seals of a branch, back from its head, whose lines can be commented on


async def page(view: View, number: str, query: ThreadQuery) -> Page[Thread]:
    """Threads on lines of a proposal, the oldest first

    Each with its comments.
    """
    async with view.read(near=True) as tx:
        n = (await states.find(tx, view, number)).number
    await placing.settle(view.node, view.repo.id, n)
    size = page_size(query.limit)
    of: dict[str, Any] = {"of_repo": view.repo.id, "of_number": n, "me": sight.account_id_of(view)}
    criteria: dict[str, Any] = {} if query.state == "all" else {"state": query.state}
    if query.path is not None:
        criteria["path"] = query.path
    filters = frozenset(criteria) | ({"draft"} if query.draft == "1" else set())
    keyset = rows.keyset_of(filters, paths=view.policy is not None)
    async with view.read() as tx:
        values = {**of, **criteria, "limit": size + 1 if view.policy is None else limits.THREADS}
        if query.cursor is None:
            page_rows = await tx.all(keyset.first, **values)
        else:
            after = dict(zip(keyset.names, Cursor.read(query.cursor, *keyset.blank), strict=True))
            page_rows = await tx.all(keyset.next, **values, **after)
        if view.policy is not None:
            page_rows = [row for row in page_rows if view.sees(row[1]) and view.sees(row[2])]
        listed, more = page_rows[:size], len(page_rows) > size
        if view.policy is None:
            threads = [rows.to_row(row) for row in listed]
        else:
            some = await tx.all(rows.SOME, **of, among=[row[0] for row in listed])
            threads = sorted(map(rows.to_row, some), key=lambda thread: (thread.created_at, thread.id))
        items = await _to_wire(tx, view, n, threads)
    if query.live == "1":
        async with view.read(near=True) as tx:
            newest = await states.find(tx, view, number)
        now = await live_places.find_live_places(view, newest, threads)
        items = [replace(item, live=now.get(item.id)) for item in items]
    return Page(items=items, next_cursor=Cursor.write(*keyset.key(listed[-1])) if more else None)


async def create(view: View, number: str, body: ThreadCreate) -> Thread:
    """Comment on lines of a proposal, or suggest other lines

    The lines are line numbers in a version of the proposal. They may have moved since. Raises Invalid for a
    seal or lines that the proposal does not have, and for a hidden path.
    """
    posting.require_short(body.body, "/body")
    if body.suggestion is not None:
        posting.require_short(body.suggestion, "/suggestion")
        if body.side == "old":
            raise Invalid("a suggestion replaces lines of the new side", pointer="/suggestion")
    if body.end < body.start:
        raise Invalid("the last line stands before the first", pointer="/end")
    async with view.read() as tx:
        n = (await states.find(tx, view, number)).number
    await versions.settle(view.node, view.repo.id, n)
    async with view.read() as tx:
        newest = await states.find(tx, view, number)
        at = await _find_seal(tx, view, newest, body)
    begun = await _begin(view, body, at)
    end = newest.head_seal if body.side == "new" else newest.merge_base or ""
    (begun,) = await placing.carry_threads(view.node, view.repo.id, [begun], end)
    me = view.me.account_id
    async with view.write(account_name(me)) as tx:
        row = await states.find(tx, view, number)
        if not view.sees(body.path):
            raise _no_text(body.path, at)
        of = {"of_repo": view.repo.id, "of_number": row.number}
        await _require_room(tx, row, await tx.value(rows.COUNT, **of), limits.THREADS, "threads")
        await _require_room(
            tx, row, await tx.value(rows.COUNT_OPEN, **of), limits.OPEN_THREADS, "open threads"
        )
        await posting.require_room(tx, view)
        values = {name: getattr(begun, name) for name in rows.COLUMNS}
        await tx.run(rows.INSERT, repo_id=view.repo.id, number=row.number, **values)
        await _add_comment(tx, view, row, begun, body.body, body.draft, "thread.create")
        return await _read_thread(tx, view, row.number, begun.id)


async def comment(view: View, number: str, thread: str, body: ThreadComment) -> Comment:
    """Answer in a thread

    If the thread is a draft that waits for a review, the answer is a draft too.
    """
    posting.require_short(body.body, "/body")
    async with view.write(account_name(view.me.account_id)) as tx:
        row = await states.find(tx, view, number)
        thread_row = await sight.find(tx, view, row.number, thread)
        if await tx.value(comments.COUNT_OF_THREAD, thread=thread_row.id) >= limits.THREAD_COMMENTS:
            raise Conflict(f"a thread has at most {limits.THREAD_COMMENTS} comments; begin another one")
        await posting.require_room(tx, view)
        draft = body.draft or thread_row.draft
        comment_id = await _add_comment(tx, view, row, thread_row, body.body, draft, "thread.comment")
        await tx.run(
            rows.TOUCH, of_repo=view.repo.id, of_number=row.number, thread=thread_row.id, now=now_ms()
        )
        return await posts.one_to_wire(tx, view, row.number, comment_id)


async def update(view: View, number: str, thread: str, patch: ThreadPatch) -> Thread:
    """Resolve a thread, or open it again

    Allowed for the thread's author, the proposal's author, and writers.
    """
    async with view.write() as tx:
        row = await states.find(tx, view, number)
        thread_row = await sight.find(tx, view, row.number, thread)
        mine = view.me.account_id == row.author_id
        view.require_author(row.author_id if mine else thread_row.author_id)
        if thread_row.draft:
            raise Conflict("this thread waits for your review, and goes out with it")
        if thread_row.state != patch.state:
            of = {"of_repo": view.repo.id, "of_number": row.number, "thread": thread_row.id}
            await tx.run(rows.SET_STATE, **of, new_state=patch.state, now=now_ms())
            kind = "thread.resolve" if patch.state == "resolved" else "thread.reopen"
            await sight.announce(tx, view, kind, row.number, thread_row)
        return await _read_thread(tx, view, row.number, thread_row.id)


async def _find_seal(tx: Tx, view: View, newest: ProposalRow, body: ThreadCreate) -> str:
    """Find the seal that the commented lines belong to. For lines of the new side, it is the head of the
    version that the caller has seen; for lines of the old side, the merge base of this version."""
    of = {"of_repo": view.repo.id, "of_number": newest.number}
    version_row = await tx.one(rows.VERSION_OF, **of, head=body.seal_id)
    if version_row is None and not await _is_on_line(tx, newest, body.seal_id):
        raise Invalid(
            f"#{newest.number} has no version {body.seal_id[:12]}",
            pointer="/seal_id",
        )
    if body.side == "new":
        return body.seal_id
    base = newest.merge_base if version_row is None else version_row[0]
    if base is None:
        raise Invalid("the branches have no common seal, so there is no old side", pointer="/side")
    return str(base)


async def _is_on_line(tx: Tx, newest: ProposalRow, seal_id: str) -> bool:
    """Whether the seal is between the merge base and the head of the newest version, along first parents."""
    at: str | None = newest.head_seal
    for _ in range(LINE_MAX):
        if at is None or at == newest.merge_base:
            return False
        if at == seal_id:
            return True
        at = await tx.value(rows.FIRST_PARENT, seal=at)
    return False


async def _begin(view: View, body: ThreadCreate, at: str) -> ThreadRow:
    """Make a new thread on lines in the seal `at`."""
    sealed.require_plaintext(view)
    try:
        root = (await sealed.seal(view, at)).root
        file = await sealed.find_entry(view, root, body.path)
        if file.kind != "text" or file.size > DIFF_BYTES:
            raise NotFound
        text = await sealed.read_content(view, file)
    except (NotFound, Invalid):
        raise _no_text(body.path, at) from None
    span = anchors.of_lines(text, body.start, body.end)
    if span is None:
        last = anchors.lines_of(text, anchors.Span(len(text), len(text)))[1] if text else 0
        raise Invalid(f"{body.path} has {last} lines in {at[:12]}", pointer="/end")
    now = now_ms()
    return ThreadRow(
        id=new_id(),
        author_id=view.me.account_id,
        path=body.path,
        side=body.side,
        first_line=body.start,
        last_line=body.end,
        seal_id=body.seal_id,
        quote=digest(text[span.start : span.end]),
        state="open",
        draft=body.draft,
        suggestion=body.suggestion,
        applied_seal=None,
        at_seal=at,
        at_path=body.path,
        at_from=span.start,
        at_to=span.end,
        at_first=body.start,
        at_last=body.end,
        how="same",
        carried_to=at,
        created_at=now,
        updated_at=now,
    )


def _no_text(path: str, at: str) -> Invalid:
    return Invalid(f"{at[:12]} has no {path}, or it is not text whose lines can be shown", pointer="/path")


async def _require_room(tx: Tx, row: ProposalRow, count: int, most: int, what: str) -> None:
    if count >= most:
        raise Conflict(f"#{row.number} has {most} {what}, and no proposal has more")


async def _add_comment(
    tx: Tx, view: View, row: ProposalRow, thread: ThreadRow, body: str, draft: bool, kind: str
) -> str:
    """Add a comment to the thread, announce it, and return its id. A draft is not announced. `kind`: the kind
    of the event."""
    comment_id = await posts.insert(tx, view, row.number, body, thread=thread.id, draft=draft)
    if not draft:
        await subject.take_part(tx, view, states.subject_of(row))
        await sight.announce(tx, view, kind, row.number, thread, id=comment_id)
    return comment_id


async def _read_thread(tx: Tx, view: View, number: int, thread: str) -> Thread:
    return (await _to_wire(tx, view, number, [await sight.find(tx, view, number, thread)]))[0]


async def _to_wire(tx: Tx, view: View, number: int, threads: Sequence[ThreadRow]) -> list[Thread]:
    by_thread = await posts.of_threads(tx, view, number, [thread.id for thread in threads])
    return [_to_thread(thread, by_thread.get(thread.id, ())) for thread in threads]


def _to_thread(thread: ThreadRow, posted: Iterable[Comment]) -> Thread:
    place = None
    if thread.at_seal == thread.carried_to:
        place = Place(
            seal_id=thread.at_seal,
            path=thread.at_path,
            start=thread.at_first,
            end=thread.at_last,
            how=thread.how,
        )
    suggestion = None
    if thread.suggestion is not None:
        suggestion = Suggestion(text=thread.suggestion, applied_seal=thread.applied_seal)
    return Thread(
        id=thread.id,
        author=to_actor(thread.author_id, thread.author_handle, thread.author_kind),
        path=thread.path,
        side=thread.side,
        start=thread.first_line,
        end=thread.last_line,
        seal_id=thread.seal_id,
        state=thread.state,
        comments=list(posted),
        suggestion=suggestion,
        place=place,
        draft=bool(thread.draft),
        created_at=rfc3339(thread.created_at),
        updated_at=rfc3339(thread.updated_at),
    )
