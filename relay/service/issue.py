"""Rules of issues: one sequence of numbers in a repository, who may change what, and what a list shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localstore.core import limits, validation
from localstore.core.errors import Conflict, Invalid, NotFound
from localstore.core.model.base import Actor, Page
from localstore.core.model.issue import Issue, IssueCreate, IssuePatch, IssueQuery
from localstore.core.model.label import Label, LabelCreate
from localstore.core.rights import OPERATIONS
from relay.base.clock import now_ms, rfc3339, rfc3339_or_none
from relay.caller import View, account_name
from relay.db import issue as rows
from relay.db.engine.database import Row, Tx
from relay.http.paging import INT64, Cursor, page_size
from relay.service import label as labels
from relay.service import posting
from relay.service import reaction_counts as reaction


async def page(view: View, query: IssueQuery) -> Page[Issue]:
    """The newest first, in a fixed number of statements."""
    size = page_size(query.limit)
    async with view.read() as tx:
        wanted = await _filters(tx, view, query)
        if wanted is None:
            return Page(items=[])
        keyset = rows.page(frozenset(wanted))
        values = {**wanted, "of_repo": view.repo.id, "limit": size + 1}
        if query.cursor is None:
            found = await tx.all(keyset.first, **values)
        else:
            (after,) = Cursor.read(query.cursor, *keyset.blank)
            found = await tx.all(keyset.next, **values, after_number=after)
        items = await _to_wire(tx, view, found[:size])
    more = len(found) > size
    return Page(items=items, next_cursor=Cursor.write(found[size - 1][0]) if more else None)


async def _filters(tx: Tx, view: View, query: IssueQuery) -> dict[str, str] | None:
    """Parameters of the filters that the query asks for; None if nothing can match."""
    wanted: dict[str, str] = {}
    if query.state != "all":
        wanted["state"] = query.state
    for name, handle in (
        ("author", query.author),
        ("assignee", query.assignee),
        ("involves", query.involves),
    ):
        if handle is None:
            continue
        account_id = await _account(tx, view, handle)
        if account_id is None:
            return None
        wanted[name] = account_id
    if query.label is not None:
        wanted["label"] = query.label.casefold()
    if query.search is not None:
        plain = query.search.casefold().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        wanted["search"] = f"%{plain}%"
    return wanted


async def get(view: View, number: str) -> Issue:
    async with view.read() as tx:
        return await shown(tx, view, await find(tx, view, number))


async def create(view: View, body: IssueCreate) -> Issue:
    """Labels and assignees need the rights to set them, whoever writes the issue."""
    posting.require_short(body.body, "/body")
    now, me = now_ms(), view.me.account_id
    async with view.write(account_name(me)) as tx:
        if body.labels:
            _require(view, "issue.label")
        if body.assignees:
            _require(view, "issue.assign")
        await posting.require_room(tx, view)
        number = await _next_number(tx, view)
        await tx.run(
            rows.INSERT,
            repo_id=view.repo.id,
            number=number,
            kind=rows.ISSUE,
            state="open",
            state_reason=None,
            title=body.title,
            folded_title=body.title.casefold(),
            body=body.body,
            author_id=me,
            comments=0,
            created_at=now,
            updated_at=now,
            closed_at=None,
        )
        await posting.take_part(tx, view, number, "open")
        await _announce(tx, view, "issue.create", number)
        await _label(tx, view, number, "open", body.labels)
        await _assign(tx, view, number, "open", body.assignees)
        return await shown(tx, view, await find(tx, view, str(number)))


async def update(view: View, number: str, patch: IssuePatch) -> Issue:
    """The text is its author's and the moderators', the state its author's and those who triage, labels and
    assignees are for those who triage."""
    if patch.body is not None:
        posting.require_short(patch.body, "/body")
    if patch.state_reason is not None and patch.state != "closed":
        raise Invalid("state_reason belongs to state closed", pointer="/state_reason")
    async with view.write() as tx:
        old = await find(tx, view, number)
        author = old[5]
        view.require_author(author)
        edited = patch.title is not None or patch.body is not None
        if edited:
            _require(view, "issue.edit", author)
        if patch.state is not None:
            _require(view, "issue.close" if patch.state == "closed" else "issue.reopen", author)
        if patch.add_labels or patch.remove_labels:
            _require(view, "issue.label", author)
        if patch.add_assignees or patch.remove_assignees:
            _require(view, "issue.assign", author)
        n, state = old[0], patch.state or old[3]
        reason = old[4] if patch.state is None else patch.state_reason
        if patch.state == "closed":
            reason = patch.state_reason or (old[4] if old[3] == "closed" else "completed")
        if edited or (state, reason) != (old[3], old[4]):
            await _edit(tx, view, old, patch, state, reason)
        if edited:
            await _announce(tx, view, "issue.edit", n)
        if state != old[3]:
            await _announce(tx, view, "issue.close" if state == "closed" else "issue.reopen", n)
        await _unlabel(tx, view, n, patch.remove_labels)
        await _label(tx, view, n, state, patch.add_labels)
        await _unassign(tx, view, n, patch.remove_assignees)
        await _assign(tx, view, n, state, patch.add_assignees)
        return await shown(tx, view, await find(tx, view, number))


async def add_label(view: View, number: str, name: str, create: bool) -> Issue:
    """`create`: make the label if the repository lacks it."""
    async with view.write() as tx:
        old = await find(tx, view, number)
        if create and await labels.find(tx, view, name) is None:
            _require(view, "label.create")
            await labels.add(tx, view, validation.checked(LabelCreate(name=name)))
        await _label(tx, view, old[0], old[3], [name])
        return await shown(tx, view, await find(tx, view, number))


async def remove_label(view: View, number: str, name: str) -> Issue:
    async with view.write() as tx:
        old = await find(tx, view, number)
        await _unlabel(tx, view, old[0], [name])
        return await shown(tx, view, await find(tx, view, number))


async def find(tx: Tx, view: View, number: str) -> Row:
    """The row of an issue, NotFound if there is none of this number."""
    n = int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
    if str(n) != number or not 0 < n < INT64:
        raise NotFound
    row = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=n)
    if row is None:
        raise NotFound
    return row


async def shown(tx: Tx, view: View, row: Row) -> Issue:
    return (await _to_wire(tx, view, [row]))[0]


def actor(account_id: str, handle: str | None, kind: str) -> Actor:
    return Actor(id=account_id, handle=handle, kind="guest" if kind == "guest" else "user")


async def _to_wire(tx: Tx, view: View, found: Sequence[Row]) -> list[Issue]:
    numbers = [row[0] for row in found]
    if not numbers:
        return []
    on: dict[int, list[Label]] = {}
    for n, name, color, description in await tx.all(rows.LABELS, of_repo=view.repo.id, numbers=numbers):
        on.setdefault(n, []).append(Label(name=name, color=color, description=description))
    people: dict[int, list[Actor]] = {}
    for n, *who in await tx.all(rows.ASSIGNEES, of_repo=view.repo.id, numbers=numbers):
        people.setdefault(n, []).append(actor(*who))
    reactions = await reaction.on_issues(tx, view, numbers)
    return [
        Issue(
            number=n,
            title=title,
            body=body,
            state=state,
            state_reason=reason,
            author=actor(author, handle, kind),
            assignees=people.get(n, []),
            labels=on.get(n, []),
            reactions=reactions[n],
            comments=comments,
            created_at=rfc3339(created),
            updated_at=rfc3339(updated),
            closed_at=rfc3339_or_none(closed),
        )
        for n, title, body, state, reason, author, handle, kind, comments, created, updated, closed in found
    ]


def _require(view: View, operation: str, author: str | None = None) -> None:
    """Forbidden unless the row of this operation lets the caller through."""
    may = OPERATIONS[operation]
    if may.author and author == view.me.account_id:
        return
    if may.least is not None:
        view.require(may.least)


async def _next_number(tx: Tx, view: View) -> int:
    if await tx.run(rows.COUNT_UP, of_repo=view.repo.id) == 0:
        await tx.run(rows.FIRST, repo_id=view.repo.id, last=1)
    number = int(await tx.value(rows.LAST, of_repo=view.repo.id))
    if number > limits.ISSUES:
        raise Conflict(f"{view.repo.full_name} has {limits.ISSUES} issues, and no repository has more")
    return number


async def _edit(tx: Tx, view: View, old: Row, patch: IssuePatch, state: str, reason: str | None) -> None:
    now, title = now_ms(), patch.title or old[1]
    closed_at = None if state == "open" else old[11] or now
    await tx.run(
        rows.EDIT,
        of_repo=view.repo.id,
        of_number=old[0],
        new_title=title,
        new_folded_title=title.casefold(),
        new_body=old[2] if patch.body is None else patch.body,
        new_state=state,
        new_state_reason=reason,
        new_closed_at=closed_at,
        now=now,
    )
    if state != old[3]:
        for copied in (rows.LABEL_STATE, rows.PART_STATE):
            await tx.run(copied, of_repo=view.repo.id, of_number=old[0], new_state=state)


async def _label(tx: Tx, view: View, number: int, state: str, names: list[str]) -> None:
    on = {one.name.casefold() for one in await _labels_on(tx, view, number)}
    for folded, name in {name.casefold(): name for name in names}.items():
        if folded in on:
            continue
        found = await labels.find(tx, view, name)
        if found is None:
            raise Invalid(f"{view.repo.full_name} has no label {name}")
        on.add(folded)
        if len(on) > limits.ISSUE_LABELS:
            raise Conflict(f"#{number} has {limits.ISSUE_LABELS} labels, and no issue has more")
        await tx.run(
            rows.LABEL_ON, repo_id=view.repo.id, number=number, folded=folded, kind=rows.ISSUE, state=state
        )
        await _touch(tx, view, "issue.label", number, name=found.name)


async def _unlabel(tx: Tx, view: View, number: int, names: list[str]) -> None:
    for name in names:
        values = {"of_repo": view.repo.id, "of_number": number, "label": name.casefold()}
        if await tx.run(rows.LABEL_OFF, **values):
            await _touch(tx, view, "issue.unlabel", number, name=name)


async def _labels_on(tx: Tx, view: View, number: int) -> list[Label]:
    found = await tx.all(rows.LABELS, of_repo=view.repo.id, numbers=[number])
    return [Label(name=name, color=color, description=text) for _, name, color, text in found]


async def _assign(tx: Tx, view: View, number: int, state: str, handles: list[str]) -> None:
    """Whoever has a role in the repository can be assigned."""
    assigned = {row[1] for row in await tx.all(rows.ASSIGNEES, of_repo=view.repo.id, numbers=[number])}
    for handle in handles:
        who = await _account(tx, view, handle)
        if who is None or await tx.one(rows.MEMBER, of_repo=view.repo.id, who=who) is None:
            raise Invalid(f"{handle} has no role in {view.repo.full_name}", pointer="/assignees")
        if who in assigned:
            continue
        assigned.add(who)
        if len(assigned) > limits.ASSIGNEES:
            raise Conflict(f"#{number} has {limits.ASSIGNEES} assignees, and no issue has more")
        await _set_assigned(tx, view, number, state, who)
        await _touch(tx, view, "issue.assign", number, account_id=who)


async def _set_assigned(tx: Tx, view: View, number: int, state: str, who: str) -> None:
    if not await tx.run(rows.ASSIGNED, of_repo=view.repo.id, of_number=number, who=who, is_assigned=True):
        await tx.run(
            rows.PART,
            repo_id=view.repo.id,
            number=number,
            account_id=who,
            kind=rows.ISSUE,
            state=state,
            posted=False,
            assigned=True,
        )


async def _unassign(tx: Tx, view: View, number: int, handles: list[str]) -> None:
    assigned = {row[1] for row in await tx.all(rows.ASSIGNEES, of_repo=view.repo.id, numbers=[number])}
    for handle in handles:
        who = await _account(tx, view, handle)
        if who in assigned:
            values = {"of_repo": view.repo.id, "of_number": number, "who": who}
            await tx.run(rows.ASSIGNED, **values, is_assigned=False)
            await _touch(tx, view, "issue.unassign", number, account_id=who)


async def _account(tx: Tx, view: View, handle: str) -> str | None:
    """The account of a handle, None if there is none; @me is the caller, nobody if nobody is signed in."""
    if handle == "@me":
        return view.principal.account_id if view.principal else None
    found: str | None = await tx.value(rows.BY_HANDLE, handle=handle.lower())
    return found


async def _touch(tx: Tx, view: View, kind: str, number: int, **data: Any) -> None:
    await tx.run(rows.TOUCH, of_repo=view.repo.id, of_number=number, now=now_ms())
    await _announce(tx, view, kind, number, **data)


async def _announce(tx: Tx, view: View, kind: str, number: int, **data: Any) -> None:
    await view.node.hub.announce(tx, view.repo.id, kind, number=number, **data)
