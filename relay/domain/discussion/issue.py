"""Rules of issues: numbers, rights to change them, and lists."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.errors import Invalid, NotFound
from localstore.core.model.base import Page
from localstore.core.model.issue import Issue, IssueCreate, IssuePatch, IssueQuery
from localstore.core.model.limits import PAGE_DEFAULT
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.caller import View, account_name
from relay.db.collaboration import issue as rows
from relay.db.collaboration.issue import IssueRow
from relay.db.engine.database import Tx
from relay.db.paging import Cursor, page_size
from relay.domain.attention.mentions import find_new_mentions
from relay.domain.discussion import posting, subject
from relay.domain.discussion import reaction_counts as reaction
from relay.domain.discussion.subject import Subject


async def page(view: View, query: IssueQuery) -> Page[Issue]:
    """Issues, newest first

    Runs a fixed number of statements.
    """
    size = page_size(query.limit)
    async with view.read() as tx:
        filters = await subject.to_filters(tx, view, query, ("author", "assignee", "involves"))
        if filters is None:
            return Page(items=[])
        lead = await subject.find_leading_filter(tx, view, filters, rows.LEADERS, rows.count_statement)
        keyset = rows.keyset_of(frozenset(filters), lead)
        values = {**filters, "of_repo": view.repo.id, "limit": size + 1}
        if query.cursor is None:
            page_rows = await tx.all(keyset.first, **values)
        else:
            (after,) = Cursor.read(query.cursor, *keyset.blank)
            page_rows = await tx.all(keyset.next, **values, after_number=after)
    issues = [rows.to_row(columns) for columns in page_rows]
    async with view.read(near=size <= PAGE_DEFAULT) as tx:
        items = await _to_wire(tx, view, issues[:size])
    more = len(issues) > size
    return Page(items=items, next_cursor=Cursor.write(issues[size - 1].number) if more else None)


async def get(view: View, number: str) -> Issue:
    """One issue"""
    async with view.read(near=True) as tx:
        return await one_to_wire(tx, view, await find(tx, view, number))


async def create(view: View, body: IssueCreate) -> Issue:
    """Open an issue

    Setting labels and assignees needs the right to do so, even for the author.
    """
    posting.require_short(body.body, "/body")
    async with view.write(account_name(view.me.account_id)) as tx:
        if body.labels:
            subject.require_operation(view, "issue.label")
        if body.assignees:
            subject.require_operation(view, "issue.assign")
        await posting.require_room(tx, view)
        issue = await subject.insert(tx, view, rows.ISSUE, body.title, body.body)
        await subject.add_labels(tx, view, issue, body.labels)
        await subject.assign(tx, view, issue, body.assignees)
        return await one_to_wire(tx, view, await find(tx, view, str(issue.number)))


async def update(view: View, number: str, patch: IssuePatch) -> Issue:
    """Edit, close, reopen, label or assign an issue

    The author and moderators may change the text. The author and the role triage may change the state. Labels
    and assignees need the role triage.
    """
    if patch.body is not None:
        posting.require_short(patch.body, "/body")
    if patch.state_reason is not None and patch.state != "closed":
        raise Invalid("state_reason belongs to state closed", pointer="/state_reason")
    async with view.write() as tx:
        old = await find(tx, view, number)
        author = old.author_id
        view.require_author(author)
        edited = patch.title is not None or patch.body is not None
        if edited:
            subject.require_operation(view, "issue.edit", author)
        if patch.state is not None:
            subject.require_operation(
                view, "issue.close" if patch.state == "closed" else "issue.reopen", author
            )
        if patch.add_labels or patch.remove_labels:
            subject.require_operation(view, "issue.label", author)
        if patch.add_assignees or patch.remove_assignees:
            subject.require_operation(view, "issue.assign", author)
        n, state = old.number, patch.state or old.state
        reason = old.state_reason if patch.state is None else patch.state_reason
        if patch.state == "closed":
            reason = patch.state_reason or (old.state_reason if old.state == "closed" else "completed")
        if edited or (state, reason) != (old.state, old.state_reason):
            await _edit(tx, view, old, patch, state, reason)
        if edited:
            new = old.body if patch.body is None else patch.body
            await subject.announce(tx, view, "issue.edit", n, **find_new_mentions(old.body, new))
        if state != old.state:
            await subject.announce(tx, view, "issue.close" if state == "closed" else "issue.reopen", n)
        now = Subject(n, rows.ISSUE, state, author)
        await subject.remove_labels(tx, view, now, patch.remove_labels)
        await subject.add_labels(tx, view, now, patch.add_labels)
        await subject.unassign(tx, view, now, patch.remove_assignees)
        await subject.assign(tx, view, now, patch.add_assignees)
        return await one_to_wire(tx, view, await find(tx, view, number))


async def close(tx: Tx, view: View, number: int, by: int) -> None:
    """Close an open issue because the proposal number `by` was merged. The caller has checked the rules."""
    old = await find(tx, view, str(number))
    if old.state == "open":
        await _edit(tx, view, old, IssuePatch(), "closed", "completed")
        await subject.announce(tx, view, "issue.close", number, proposal=by)


async def add_label(view: View, number: str, name: str, create: bool) -> Issue:
    """Add a label to an issue. `create`: create the label if the repository lacks it."""
    async with view.write() as tx:
        await subject.add_named_label(tx, view, _row_to_subject(await find(tx, view, number)), name, create)
        return await one_to_wire(tx, view, await find(tx, view, number))


async def remove_label(view: View, number: str, name: str) -> Issue:
    """Take a label off an issue"""
    async with view.write() as tx:
        await subject.remove_labels(tx, view, _row_to_subject(await find(tx, view, number)), [name])
        return await one_to_wire(tx, view, await find(tx, view, number))


async def find(tx: Tx, view: View, number: str) -> IssueRow:
    """Find an issue. Raises NotFound if no issue has this number."""
    columns = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=subject.number_of(number))
    if columns is None:
        raise NotFound
    return rows.to_row(columns)


async def one_to_wire(tx: Tx, view: View, row: IssueRow) -> Issue:
    return (await _to_wire(tx, view, [row]))[0]


def _row_to_subject(row: IssueRow) -> Subject:
    return Subject(row.number, rows.ISSUE, row.state, row.author_id, row.comments)


async def _to_wire(tx: Tx, view: View, issues: Sequence[IssueRow]) -> list[Issue]:
    numbers = [row.number for row in issues]
    if not numbers:
        return []
    on = await subject.labels_of(tx, view, numbers)
    people = await subject.assignees_of(tx, view, numbers)
    reactions = await reaction.on_issues(tx, view, numbers)
    return [
        Issue(
            number=row.number,
            title=row.title,
            body=row.body,
            state=row.state,
            state_reason=row.state_reason,
            author=to_actor(row.author_id, row.author_handle, row.author_kind),
            assignees=people.get(row.number, []),
            labels=on.get(row.number, []),
            reactions=reactions[row.number],
            comments=row.comments,
            created_at=rfc3339(row.created_at),
            updated_at=rfc3339(row.updated_at),
            closed_at=rfc3339_or_none(row.closed_at),
        )
        for row in issues
    ]


async def _edit(tx: Tx, view: View, old: IssueRow, patch: IssuePatch, state: str, reason: str | None) -> None:
    now, title = now_ms(), patch.title or old.title
    body = old.body if patch.body is None else patch.body
    closed_at = None if state == "open" else old.closed_at or now
    await tx.run(
        rows.EDIT,
        of_repo=view.repo.id,
        of_number=old.number,
        new_title=title,
        new_body=body,
        new_state=state,
        new_state_reason=reason,
        new_closed_at=closed_at,
        now=now,
    )
    if state != old.state:
        await subject.set_state(tx, view.repo.id, old.number, state)
    if (title, body) != (old.title, old.body):
        this = subject.Subject(old.number, rows.ISSUE, state, old.author_id)
        await subject.replace_words(tx, view, this, title, body)
