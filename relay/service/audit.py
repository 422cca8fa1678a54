"""The audit of a repository: all its events except live edits, for its owner."""

from __future__ import annotations

from typing import Any

import msgspec

from localstore.core.model.base import Actor, Page, PageQuery
from localstore.core.model.collaboration.audit import AuditEntry
from relay.base.clock import rfc3339
from relay.caller import View
from relay.db.collaboration import audit as rows
from relay.db.engine.database import Row
from relay.http import paging

_NAMES = ("name", "account_id", "id", "version", "branch")  # members of data that name the subject


async def page(view: View, query: PageQuery) -> Page[AuditEntry]:
    """The newest first."""
    async with view.read() as tx:
        return await paging.page(tx, rows.PAGE, query, _to_wire, of_repo=view.repo.id)


def _to_wire(row: Row) -> AuditEntry:
    event_id, created, actor, handle, kind, action, number, device_key_id, raw = row
    data: dict[str, Any] = msgspec.json.decode(raw)
    about = next((str(data[name]) for name in _NAMES if data.get(name)), None)
    return AuditEntry(
        id=event_id,
        at=rfc3339(created),
        actor=Actor(id=actor, handle=handle, kind="guest" if kind == "guest" else "user") if kind else None,
        action=action,
        subject=about if number is None else f"#{number}",
        device_key_id=device_key_id,
        data=data,
    )
