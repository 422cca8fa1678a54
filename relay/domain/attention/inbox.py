"""The caller's inbox; titles and names are read with the caller's current rights."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, NamedTuple

from localstore.core.errors import NotFound
from localstore.core.model.base import Page
from localstore.core.model.inbox import (
    InboxChanged,
    InboxItem,
    InboxMarks,
    InboxQuery,
    InboxRepo,
    InboxState,
    InboxSubject,
)
from localstore.core.numbers import whole_number
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.caller import Caller
from relay.db.engine.database import Row, Tx
from relay.db.engine.keyset import Keyset
from relay.db.paging import Cursor, page_size
from relay.domain.attention.rows import inbox as rows
from relay.domain.attention.rows import inbox_offers as offers

# In the id of a row about an organisation, where others have a number: an invitation to it, a declined one.
ORG, DECLINED = "org", "declined"


async def page(caller: Caller, query: InboxQuery) -> Page[InboxItem]:
    """The caller's inbox, newest first

    Without `all`, rows that are marked as done are left out. Invitations to organisations are listed too: the
    invited account sees open ones, and the inviter sees declined ones.
    """
    filters: dict[str, Any] = {} if query.reason is None else {"reason": query.reason}
    open_only = frozenset() if query.all else frozenset({"open"})
    inbox = rows.keyset_of(frozenset({*open_only, *filters}))
    lists: list[tuple[Keyset, Callable[[Row], InboxItem]]] = [(inbox, _to_wire)]
    if query.reason in (None, "invited"):
        lists += [(offers.keyset_of(open_only), _offer_to_wire), (offers.answers(open_only), _answer_to_wire)]
    size = page_size(query.limit)
    values = {"account": caller.me.account_id, "current": now_ms(), "limit": size + 1}
    entries: list[tuple[tuple[Any, ...], InboxItem]] = []
    async with caller.read() as tx:
        for keyset, to_wire in lists:
            of = {**values, **(filters if keyset is inbox else {})}
            if query.cursor is None:
                page_rows = await tx.all(keyset.first, **of)
            else:
                after = dict(zip(keyset.names, Cursor.read(query.cursor, *keyset.blank), strict=True))
                page_rows = await tx.all(keyset.next, **of, **after)
            entries += [(keyset.key(row), to_wire(row)) for row in page_rows]
    entries.sort(key=itemgetter(0), reverse=True)
    more = len(entries) > size
    items = [item for _, item in entries[:size]]
    return Page(items=items, next_cursor=Cursor.write(*entries[size - 1][0]) if more else None)


class _Marking(NamedTuple):
    """The SQL statements that read and mark one row of an inbox, with their parameters."""

    one: Any
    mark: Any
    to_wire: Callable[[Row], InboxItem]
    about: dict[str, Any]


async def update(caller: Caller, item: str, body: InboxState) -> InboxItem:
    """Mark one row as read, done or unread

    Raises NotFound if the caller may not see what the row is about.
    """
    marking = _marking_of(caller, item)
    if marking is None:
        raise NotFound
    async with caller.write() as tx:
        if not await _mark(tx, marking, body):
            raise NotFound
        row = await tx.one(marking.one, **marking.about)
        if row is None:
            raise NotFound
        return marking.to_wire(row)


def _marking_of(caller: Caller, item: str) -> _Marking | None:
    """The statements that read and mark the row with this id; None if the id is malformed."""
    about_id, _, digits = item.rpartition(".")
    me = {"account": caller.me.account_id, "current": now_ms()}
    if digits == ORG:
        return _Marking(offers.ONE, offers.MARK, _offer_to_wire, {**me, "of_org": about_id})
    if digits == DECLINED:
        return _Marking(offers.ANSWER, offers.MARK_ANSWER, _answer_to_wire, {**me, "of_invite": about_id})
    number = whole_number(digits)
    if number is None or str(number) != digits:
        return None
    return _Marking(rows.ONE, rows.MARK, _to_wire, {**me, "of_repo": about_id, "of_number": number})


async def _mark(tx: Tx, marking: _Marking, body: InboxState) -> bool:
    """Mark a row as read, done or unread. Returns False if the caller has no such row, or may not see what
    the row is about."""
    if await tx.one(marking.one, **marking.about) is None:
        return False
    await tx.run(marking.mark, **marking.about, **_marks(body))
    return True


async def update_all(caller: Caller, body: InboxMarks) -> InboxChanged:
    """Mark the given rows, or all rows that are not done

    Ids of rows that no longer exist are ignored.
    """
    me, marks = caller.me.account_id, _marks(body)
    async with caller.write() as tx:
        if body.ids is not None:
            markings = [_marking_of(caller, item) for item in dict.fromkeys(body.ids)]
            marked = [await _mark(tx, marking, body) for marking in markings if marking is not None]
            return InboxChanged(changed=sum(marked))
        changed = await tx.run(rows.MARK_ALL, account=me, **marks)
        changed += await tx.run(offers.MARK_ALL, account=me, current=now_ms(), **marks)
        changed += await tx.run(offers.MARK_ANSWERS, account=me, **marks)
    return InboxChanged(changed=changed)


def _marks(body: InboxState) -> dict[str, bool]:
    return {"new_unread": body.state == "unread", "new_done": body.state == "done"}


def _to_wire(row: Row) -> InboxItem:
    repo_id, number, reason, unread, done, updated, owner, name, kind, title, state, event, *who = row
    full_name = f"{owner}/{name}"
    subject = (
        InboxSubject(
            kind=kind,
            number=number,
            title=title,
            state="open" if state == "open" else "closed",
            merged=state == "merged",
        )
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
        actor=to_actor(*who) if who[0] else None,
    )


def _offer_to_wire(row: Row) -> InboxItem:
    return _org_row_to_wire(row, ORG, "invite.create")


def _answer_to_wire(row: Row) -> InboxItem:
    return _org_row_to_wire(row, DECLINED, "invite.decline")


def _org_row_to_wire(row: Row, suffix: str, event: str) -> InboxItem:
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
        actor=to_actor(*who),
    )
