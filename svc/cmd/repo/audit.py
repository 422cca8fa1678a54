"""The command `svc repo audit`."""

from __future__ import annotations

from typing import Any

from localstore.core.model import audit as endpoints
from localstore.core.model.audit import AuditEntry
from localstore.core.model.base import PageQuery
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit, Repository
from svc.console import Column, answers


def actor(record: dict[str, Any]) -> str:
    who = record["actor"]
    return str(who.get("handle") or who["id"]) if who else ""


_TOLD = ("role", "decision", "state")  # members of data that say what changed


def what(record: dict[str, Any]) -> str:
    """Return in words what changed in an event of the audit log: the changed settings, the visibility of a
    path, a role or a decision. `record` has the fields of the event."""
    data = record["data"]
    if "path" in data:
        return f"{data['became'] or 'no rule'}, was {data['was'] or 'no rule'}"
    if data.get("changed"):
        return ", ".join(map(str, data["changed"]))
    return ", ".join(str(data[name]) for name in _TOLD if data.get(name))


COLUMNS = (
    Column("at", kind="time"),
    Column("actor", actor),
    Column("action"),
    Column("subject"),
    Column("what", what, kind="line", spare=2),
    Column("device_key_id", kind="id", spare=1),
)


@answers(COLUMNS, AuditEntry)
def audit(ctx: Ctx, repository: Repository = "", limit: Limit = 30) -> None:
    """List what happened in a repository, newest first

    Allowed for the owner. Each line has the actor, the action, and the device. For settings it also has the
    changed fields, for a path rule its visibility. Live edits are not listed, because seals contain them.

    Examples:
    svc repo audit
    svc repo audit alice/notes --json at,actor,action,data
    """
    ctx.obj.set_repository(repository)
    repo = ctx.repo
    rows = ctx.api.items(endpoints.LIST, PageQuery(), limit=limit, id=repo.id)
    ctx.out.rows(rows, COLUMNS, AuditEntry, empty="nothing has happened")
