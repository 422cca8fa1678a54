"""The audit of a repository for its owner: all its events except live edits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from localstore.core.model.audit import AuditEntry
from localstore.core.model.base import Page, PageQuery
from relay.base.actors import to_actor as actor_of
from relay.base.clock import rfc3339
from relay.caller import View
from relay.db import paging
from relay.db.engine.database import Row
from relay.domain.repository.rows import audit as rows
from relay.domain.repository.rows.path import CHANGES_OF

# Members of data that name the subject.
_NAMES = ("name", "account_id", "id", "version", "branch", "pattern")
_PATHS = ("path.set", "path.remove")


async def page(view: View, query: PageQuery) -> Page[AuditEntry]:
    """Events of a repository, newest first

    Events contain no paths. If an event is about a path rule, its path is read from the recorded change of
    the rule.
    """
    async with view.read() as tx:
        entries = await paging.read_page(tx, rows.PAGE, query, _to_wire, of_repo=view.repo.id)
        ids = {
            str(entry.data["change"])
            for entry in entries.items
            if entry.action in _PATHS and "change" in entry.data
        }
        if not ids:
            return entries
        changes = {row[0]: row[1:] for row in await tx.all(CHANGES_OF, of_repo=view.repo.id, ids=sorted(ids))}
    return replace(entries, items=[_with_path(entry, changes) for entry in entries.items])


def _with_path(entry: AuditEntry, changes: Mapping[str, Sequence[Any]]) -> AuditEntry:
    change = changes.get(str(entry.data.get("change"))) if entry.action in _PATHS else None
    if change is None:
        return entry
    path, was, became = change
    return replace(entry, subject=path, data={**entry.data, "path": path, "was": was, "became": became})


def _to_wire(row: Row) -> AuditEntry:
    event_id, created, actor, handle, kind, action, number, device_key_id, raw = row
    data: dict[str, Any] = msgspec.json.decode(raw)
    about = next((str(data[name]) for name in _NAMES if data.get(name)), None)
    return AuditEntry(
        id=event_id,
        at=rfc3339(created),
        actor=actor_of(actor, handle, kind) if kind else None,
        action=action,
        subject=about if number is None else f"#{number}",
        device_key_id=device_key_id,
        data=data,
    )
