"""The caller's inbox; titles and names are read with the caller's current rights."""

from __future__ import annotations

from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model.base import Page
from localstore.core.model.collaboration.inbox import (
    InboxChanged,
    InboxItem,
    InboxQuery,
    InboxRepo,
    InboxState,
    InboxSubject,
)
from relay.base.clock import now_ms, rfc3339
from relay.caller import Caller
from relay.db.collaboration import inbox as rows
from relay.db.engine.database import Row
from relay.http import paging
from relay.http.paging import INT64


async def page(caller: Caller, query: InboxQuery) -> Page[InboxItem]:
    """The newest first; without what is done, unless `all`."""
    wanted: dict[str, Any] = {} if query.reason is None else {"reason": query.reason}
    filters = frozenset(wanted) | (frozenset() if query.all else {"open"})
    async with caller.read() as tx:
        return await paging.page(
            tx, rows.page(filters), query, _to_wire, account=caller.me.account_id, current=now_ms(), **wanted
        )


async def update(caller: Caller, item: str, body: InboxState) -> InboxItem:
    """Mark one row. Raises NotFound if its subject is hidden by now."""
    repo_id, _, digits = item.rpartition(".")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1
    if str(number) != digits or not 0 <= number < INT64:
        raise NotFound
    about = {"account": caller.me.account_id, "of_repo": repo_id, "of_number": number}
    async with caller.write() as tx:
        await caller.recheck(tx)
        if await tx.one(rows.ONE, **about, current=now_ms()) is None:
            raise NotFound
        await tx.run(rows.MARK, **about, **_marks(body))
        found = await tx.one(rows.ONE, **about, current=now_ms())
        if found is None:
            raise NotFound
        return _to_wire(found)


async def update_all(caller: Caller, body: InboxState) -> InboxChanged:
    """Mark every row that is not done."""
    async with caller.write() as tx:
        await caller.recheck(tx)
        changed = await tx.run(rows.MARK_ALL, account=caller.me.account_id, **_marks(body))
    return InboxChanged(changed=changed)


def _marks(body: InboxState) -> dict[str, bool]:
    return {"new_unread": body.state == "unread", "new_done": body.state == "done"}


def _to_wire(row: Row) -> InboxItem:
    repo_id, number, reason, unread, done, updated, owner, name, kind, title = row
    full_name = f"{owner}/{name}"
    subject = (
        InboxSubject(kind=kind, number=number, title=title)
        if number
        else InboxSubject(kind="repository", number=None, title=full_name)
    )
    return InboxItem(
        id=f"{repo_id}.{number}",
        repo=InboxRepo(id=repo_id, full_name=full_name),
        subject=subject,
        reason=reason,
        unread=bool(unread),
        done=bool(done),
        updated_at=rfc3339(updated),
    )
