"""Rules of comments on issues and proposals. Authors and moderators may change them."""

from __future__ import annotations

from typing import Any

from localstore.core.errors import Conflict, NotFound
from localstore.core.model import limits
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.issue import Comment, CommentBody
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import View, account_name
from relay.db.collaboration import issue as issues
from relay.db.engine.database import Tx
from relay.db.paging import Cursor, page_size
from relay.domain.attention.mentions import find_new_mentions
from relay.domain.discussion import posting, sight, subject
from relay.domain.discussion import reaction_counts as reaction
from relay.domain.discussion.rows import comment as rows
from relay.domain.discussion.rows import thread as threads
from relay.domain.discussion.rows.comment import CommentRow
from relay.domain.discussion.subject import Subject


async def page(view: View, number: str, query: PageQuery) -> Page[Comment]:
    """Comments on an issue, oldest first"""
    size = page_size(query.limit)
    async with view.read(near=True) as tx:
        issue = await subject.find(tx, view, number)
    async with view.read() as tx:
        values = {"of_repo": view.repo.id, "of_number": issue.number, "limit": size + 1}
        if query.cursor is None:
            comment_rows = await tx.all(rows.PAGE.first, **values)
        else:
            after = dict(zip(rows.PAGE.names, Cursor.read(query.cursor, *rows.PAGE.blank), strict=True))
            comment_rows = await tx.all(rows.PAGE.next, **values, **after)
        items = await _to_wire(tx, view, issue.number, [rows.to_row(row) for row in comment_rows[:size]])
    more = len(comment_rows) > size
    next_cursor = Cursor.write(*rows.PAGE.key(comment_rows[size - 1])) if more else None
    return Page(items=items, next_cursor=next_cursor)


async def create(view: View, number: str, body: CommentBody) -> Comment:
    """Comment on an issue"""
    posting.require_short(body.body, "/body")
    async with view.write(account_name(view.me.account_id)) as tx:
        issue = await subject.find(tx, view, number)
        if issue.comments >= limits.COMMENTS:
            raise Conflict(f"#{issue.number} has {limits.COMMENTS} comments, and no {issue.kind} has more")
        await posting.require_room(tx, view)
        comment_id = await insert(tx, view, issue.number, body.body)
        await _count(tx, view, issue.number, 1)
        await subject.take_part(tx, view, issue)
        await view.node.hub.announce(tx, view.repo.id, "comment.create", number=issue.number, id=comment_id)
        return await one_to_wire(tx, view, issue.number, comment_id)


async def insert(
    tx: Tx, view: View, number: int, body: str, thread: str | None = None, draft: bool = False
) -> str:
    """Insert a comment of the caller and return its id. `thread`: id of the thread, if the comment is on
    lines of a proposal. `draft`: only the caller sees the comment until a review publishes it."""
    now, comment_id = now_ms(), new_id()
    await tx.run(
        rows.INSERT,
        id=comment_id,
        repo_id=view.repo.id,
        number=number,
        author_id=view.me.account_id,
        body=body,
        created_at=now,
        updated_at=now,
        deleted_at=None,
        thread_id=thread,
        draft=draft,
        review_id=None,
    )
    return comment_id


async def edit(view: View, number: str, comment: str, body: CommentBody) -> Comment:
    """Change the text of a comment"""
    posting.require_short(body.body, "/body")
    async with view.write() as tx:
        issue, row = await find(tx, view, number, comment)
        view.require_author(row.author_id)
        values = {"of_repo": view.repo.id, "of_number": issue.number, "comment": row.id}
        await tx.run(rows.EDIT, **values, new_body=body.body, now=now_ms())
        await _announce(tx, view, "edit", issue.number, row, **find_new_mentions(row.body, body.body))
        return await one_to_wire(tx, view, issue.number, row.id)


async def delete(view: View, number: str, comment: str) -> None:
    """Delete a comment

    Its text and reactions are deleted. The row of the comment stays and still counts against the limit, so
    that nobody can post more by deleting.
    """
    async with view.write() as tx:
        issue, row = await find(tx, view, number, comment)
        view.require_author(row.author_id)
        values = {"of_repo": view.repo.id, "of_number": issue.number, "comment": row.id}
        await tx.run(rows.DELETE, **values, now=now_ms())
        await tx.run(rows.DROP, **values)
        await _announce(tx, view, "delete", issue.number, row)
        thread = row.thread_id
        if thread is None:
            await _count(tx, view, issue.number, -1)
        elif not await tx.value(rows.LEFT_IN_THREAD, thread=thread):
            await tx.run(threads.DELETE, of_repo=view.repo.id, of_number=issue.number, thread=thread)


async def find(tx: Tx, view: View, number: str, comment: str) -> tuple[Subject, CommentRow]:
    """Find a comment on an issue or proposal. Returns (issue or proposal, comment). Raises NotFound also for
    a draft of another author, and for a comment in a thread that the caller does not see."""
    issue = await subject.find(tx, view, number)
    values = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=issue.number, comment=comment)
    if values is None:
        raise NotFound
    row = rows.to_row(values)
    if row.draft and row.author_id != sight.account_id_of(view):
        raise NotFound
    if row.thread_id is not None:
        await sight.find(tx, view, issue.number, row.thread_id)
    return issue, row


async def of_threads(tx: Tx, view: View, number: int, ids: list[str]) -> dict[str, list[Comment]]:
    """The comments of each thread, by thread id, oldest first. Runs two statements."""
    if not ids:
        return {}
    values = {"of_repo": view.repo.id, "of_number": number, "threads": ids, "me": sight.account_id_of(view)}
    comment_rows = [rows.to_row(row) for row in await tx.all(rows.OF_THREADS, **values)]
    by_thread: dict[str, list[Comment]] = {}
    for row, comment in zip(comment_rows, await _to_wire(tx, view, number, comment_rows), strict=True):
        by_thread.setdefault(str(row.thread_id), []).append(comment)
    return by_thread


async def one_to_wire(tx: Tx, view: View, number: int, comment: str) -> Comment:
    """One comment, in the form that answers have."""
    _, row = await find(tx, view, str(number), comment)
    return (await _to_wire(tx, view, number, [row]))[0]


async def _announce(tx: Tx, view: View, verb: str, number: int, row: CommentRow, **data: Any) -> None:
    """Write the event `comment.VERB` about a comment, or `thread.VERB` if the comment is in a thread. Nothing
    is written for a draft, which only its author sees."""
    if row.thread_id is None:
        await view.node.hub.announce(tx, view.repo.id, f"comment.{verb}", number=number, id=row.id, **data)
    elif not row.draft:
        thread = await sight.find(tx, view, number, row.thread_id)
        await sight.announce(tx, view, f"thread.{verb}", number, thread, id=row.id, **data)


async def _count(tx: Tx, view: View, number: int, more: int) -> None:
    await tx.run(issues.COMMENTED, of_repo=view.repo.id, of_number=number, more=more, now=now_ms())


async def _to_wire(tx: Tx, view: View, number: int, comment_rows: list[CommentRow]) -> list[Comment]:
    reactions = await reaction.on_comments(tx, view, number, [row.id for row in comment_rows])
    return [
        Comment(
            id=row.id,
            author=to_actor(row.author_id, row.author_handle, row.author_kind),
            body=row.body,
            reactions=reactions[row.id],
            created_at=rfc3339(row.created_at),
            updated_at=rfc3339(row.updated_at),
            draft=bool(row.draft),
        )
        for row in comment_rows
    ]
