"""The timeline of an issue or a proposal, from the event log."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.proposal import TimelineItem
from relay.base.actors import to_actor as actor_of
from relay.base.clock import rfc3339
from relay.caller import View
from relay.db import paging
from relay.db.collaboration import proposal as rows
from relay.db.engine.database import Row, Tx
from relay.domain.discussion import subject
from relay.events.log import LEVEL, audience_of


async def page(view: View, number: str, query: PageQuery) -> Page[TimelineItem]:
    """Events of an issue or a proposal, oldest first

    Only events that the caller may see. A filtered view gets no events of threads, because the path of a
    thread may have become hidden after the event.
    """
    hears = LEVEL[audience_of(view.role)]
    audiences = [name for name, level in LEVEL.items() if level <= hears]
    async with view.read() as tx:
        n = (await subject.find(tx, view, number)).number
        of = {"of_repo": view.repo.id, "of_number": n, "audiences": audiences}
        listed = rows.TIMELINE if view.policy is None else rows.TIMELINE_WITHOUT_THREADS
        events = await paging.read_page(tx, listed, query, _to_wire, **of)
        return replace(events, items=await _name_people(tx, events.items))


async def _name_people(tx: Tx, events: list[TimelineItem]) -> list[TimelineItem]:
    """Add the accounts that the events are about."""
    ids = {str(event.data["account_id"]) for event in events if "account_id" in event.data}
    if not ids:
        return events
    people = {row[0]: actor_of(*row) for row in await tx.all(rows.PEOPLE, ids=sorted(ids))}
    return [replace(event, person=people.get(str(event.data.get("account_id", "")))) for event in events]


def _to_wire(row: Row) -> TimelineItem:
    id_, kind, actor, handle, actor_kind, created, data = row
    return TimelineItem(
        id=id_,
        kind=kind,
        actor=actor_of(actor, handle, actor_kind) if actor_kind else None,
        at=rfc3339(created),
        data=msgspec.json.decode(data),
    )
