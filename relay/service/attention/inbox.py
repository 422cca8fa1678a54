"""The caller's inbox; titles and names are read with the caller's current rights."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
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
from relay.base.actors import actor
from relay.base.clock import now_ms, rfc3339
from relay.caller import Caller
from relay.db.collaboration import inbox as rows
from relay.db.collaboration import inbox_offers as offers
from relay.db.engine.database import Row
from relay.db.engine.keyset import Keyset
from relay.http.paging import INT64, Cursor, page_size

# In the id of a row about an organisation, where others have a number: an invitation to it, a declined one.
ORG, DECLINED = "org", "declined"


async def page(caller: Caller, query: InboxQuery) -> Page[InboxItem]:
    """The newest first; without what is done, unless `all`. Invitations to organisations are among them
    while they wait, and for who invited once they are declined."""
    wanted: dict[str, Any] = {} if query.reason is None else {"reason": query.reason}
    left = frozenset() if query.all else frozenset({"open"})
    mine = rows.page(frozenset({*left, *wanted}))
    lists: list[tuple[Keyset, Callable[[Row], InboxItem]]] = [(mine, _to_wire)]
    if query.reason in (None, "invited"):
        lists += [(offers.page(left), _offer), (offers.answers(left), _answer)]
    size = page_size(query.limit)
    values = {"account": caller.me.account_id, "current": now_ms(), "limit": size + 1}
    found: list[tuple[tuple[Any, ...], InboxItem]] = []
    async with caller.read() as tx:
        for keyset, to_wire in lists:
            of = {**values, **(wanted if keyset is mine else {})}
            if query.cursor is None:
                some = await tx.all(keyset.first, **of)
            else:
                after = dict(zip(keyset.names, Cursor.read(query.cursor, *keyset.blank), strict=True))
                some = await tx.all(keyset.next, **of, **after)
            found += [(keyset.key(row), to_wire(row)) for row in some]
    found.sort(key=itemgetter(0), reverse=True)
    more = len(found) > size
    items = [item for _, item in found[:size]]
    return Page(items=items, next_cursor=Cursor.write(*found[size - 1][0]) if more else None)


async def update(caller: Caller, item: str, body: InboxState) -> InboxItem:
    """Mark one row. Raises NotFound if its subject is hidden by now."""
    about_id, _, digits = item.rpartition(".")
    me = {"account": caller.me.account_id, "current": now_ms()}
    if digits == ORG:
        return await _mark(caller, offers.ONE, offers.MARK, _offer, body, {**me, "of_org": about_id})
    if digits == DECLINED:
        about = {**me, "of_invite": about_id}
        return await _mark(caller, offers.ANSWER, offers.MARK_ANSWER, _answer, body, about)
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1
    if str(number) != digits or not 0 <= number < INT64:
        raise NotFound
    about = {**me, "of_repo": about_id, "of_number": number}
    return await _mark(caller, rows.ONE, rows.MARK, _to_wire, body, about)


async def _mark(
    caller: Caller,
    one: Any,
    mark: Any,
    to_wire: Callable[[Row], InboxItem],
    body: InboxState,
    about: dict[str, Any],
) -> InboxItem:
    async with caller.write() as tx:
        await caller.recheck(tx)
        if await tx.one(one, **about) is None:
            raise NotFound
        await tx.run(mark, **about, **_marks(body))
        found = await tx.one(one, **about)
        if found is None:
            raise NotFound
        return to_wire(found)


async def update_all(caller: Caller, body: InboxState) -> InboxChanged:
    """Mark every row that is not done."""
    me, marks = caller.me.account_id, _marks(body)
    async with caller.write() as tx:
        await caller.recheck(tx)
        changed = await tx.run(rows.MARK_ALL, account=me, **marks)
        changed += await tx.run(offers.MARK_ALL, account=me, current=now_ms(), **marks)
        changed += await tx.run(offers.MARK_ANSWERS, account=me, **marks)
    return InboxChanged(changed=changed)


def _marks(body: InboxState) -> dict[str, bool]:
    return {"new_unread": body.state == "unread", "new_done": body.state == "done"}


def _to_wire(row: Row) -> InboxItem:
    repo_id, number, reason, unread, done, updated, owner, name, kind, title, event, *who = row
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
        event=event,
        actor=actor(*who) if who[0] else None,
    )


def _offer(row: Row) -> InboxItem:
    return _of_org(row, ORG, "invite.create")


def _answer(row: Row) -> InboxItem:
    return _of_org(row, DECLINED, "invite.decline")


def _of_org(row: Row, suffix: str, event: str) -> InboxItem:
    about_id, _, unread, done, updated, handle, *who = row
    return InboxItem(
        id=f"{about_id}.{suffix}",
        repo=None,
        subject=InboxSubject(kind="organisation", number=None, title=handle),
        reason="invited",
        unread=bool(unread),
        done=bool(done),
        updated_at=rfc3339(updated),
        event=event,
        actor=actor(*who),
    )
