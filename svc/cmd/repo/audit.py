"""`svc repo audit`."""

from __future__ import annotations

from typing import Any

from localstore.core.model.base import PageQuery
from localstore.core.model.collaboration import audit as endpoints
from localstore.core.model.collaboration.audit import AuditEntry
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit, Repository
from svc.console import Column, answers


def actor(record: dict[str, Any]) -> str:
    who = record["actor"]
    return str(who.get("handle") or who["id"]) if who else ""


COLUMNS = (
    Column("at", kind="time"),
    Column("actor", actor),
    Column("action"),
    Column("subject"),
    Column("device_key_id", kind="id", spare=1),
)


@answers(COLUMNS, AuditEntry)
def audit(ctx: Ctx, repository: Repository = "", limit: Limit = 30) -> None:
    """List what happened in a repository, newest first

    Who did what, with which device, except live edits, which seals keep. For its owner.

    Examples:
    svc repo audit
    svc repo audit alice/notes --json at,actor,action,data
    """
    ctx.obj.set_repository(repository)
    repo = ctx.repo
    found = ctx.api.items(endpoints.LIST, PageQuery(), limit=limit, id=repo.id)
    ctx.out.rows(found, COLUMNS, AuditEntry, empty="nothing has happened")
