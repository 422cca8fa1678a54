"""The audit log of a repository, for its owner."""

from __future__ import annotations

from typing import Any

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Actor, Model, Page, PageQuery


class AuditEntry(Model, frozen=True):
    """An entry of the audit log. `action`: `noun.verb`. `actor`: None for the relay itself, its operator, or
    a deleted account. `subject`: a name, path or id; #12 for an issue or proposal. `data`: ids, numbers
    and names. For an edit of the settings, `data` has `changed`, the names of the edited fields. For a
    path rule it has the `path` and its visibility before (`was`) and after (`became`)."""

    id: int
    at: str
    actor: Actor | None
    action: str
    subject: str | None
    device_key_id: str | None
    data: dict[str, Any]


LIST = Endpoint("GET", f"{REPO}/audit", query=PageQuery, returns=Page[AuditEntry])
