"""The audit of a repository, for its owner."""

from __future__ import annotations

from typing import Any

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Actor, Model, Page, PageQuery


class AuditEntry(Model, frozen=True):
    """`action`: `noun.verb`. `actor` None: the node, its operator, or a deleted account. `subject`: #12 for
    an issue or proposal, else a name, path or id. `data`: ids, numbers and names, `changed` the fields that
    an edit of the settings gave; of a path rule `path`, and its visibility as it `was` and `became`."""

    id: int
    at: str
    actor: Actor | None
    action: str
    subject: str | None
    device_key_id: str | None
    data: dict[str, Any]


LIST = Endpoint("GET", f"{REPO}/audit", query=PageQuery, returns=Page[AuditEntry])
