"""The audit log of a repository, for its owner."""

from __future__ import annotations

from typing import Any

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Actor, Model, Page, PageQuery


class AuditEntry(Model, frozen=True):
    """An entry of the audit log. `action`: `noun.verb`. `actor`: None for the relay itself, its operator, or
    a deleted account. `subject`: #12 for an issue or proposal, else a name, path or id. `data`: ids, numbers
    and names; for an edit of the settings `changed`, the fields in the request; for a path rule its `path`,
    and its visibility before (`was`) and after (`became`)."""

    id: int
    at: str
    actor: Actor | None
    action: str
    subject: str | None
    device_key_id: str | None
    data: dict[str, Any]


LIST = Endpoint("GET", f"{REPO}/audit", query=PageQuery, returns=Page[AuditEntry])
