"""The event log, from which the hub, timelines, inboxes, webhooks and audits are made.

    await log.append(tx, "ref.create", repo_id=view.repo.id, data={"name": "main"})

An event is written in the transaction of its effect and names its author. Its kind is `noun.verb` or `live`.
Its `data` contains ids, numbers and names, never titles, bodies or paths. Its `audience` is the lowest level
that may see it: `reader` (everybody who sees the repository), `writer`, or `owner`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from relay.base.clock import now_ms
from relay.db.engine.database import Author, Row, Tx
from relay.db.live import event as rows
from relay.db.repo import Role

Audience = Literal["reader", "writer", "owner"]
LEVEL: Final[dict[str, int]] = {"reader": 1, "writer": 2, "owner": 3}
LIVE: Final = rows.LIVE
KIND = re.compile(r"live|[a-z_]+\.[a-z_]+")

# Events that change what somebody may see or do in a repository: members and roles, state and class.
ACCESS: Final = frozenset(
    {
        "access.grant",
        "access.change",
        "access.remove",
        "repo.update",
        "repo.delete",
        "repo.restore",
        "repo.suspend",
        "repo.kill",
        "repo.resume",
        "repo.transfer",
    }
)
# Events after which a session or key of the account may have ended.
ENDS: Final = frozenset(
    {
        "session.end",
        "session.revoke",
        "session.refresh_reused",
        "device_key.revoke",
        "account.disable",
    }
)


@dataclass(slots=True, frozen=True)
class Logged:
    """One event: a row of the log."""

    id: int
    repo_id: str | None
    account_id: str | None
    number: int | None
    kind: str
    actor: str
    device_key_id: str | None
    turn: str | None
    audience: str
    data: str
    created_at: int

    @property
    def changes_access(self) -> bool:
        return self.kind in ACCESS

    def fields(self) -> dict[str, Any]:
        """The details of the event: its column `data`, decoded from JSON."""
        decoded: dict[str, Any] = msgspec.json.decode(self.data)
        return decoded


def to_logged(columns: Row) -> Logged:
    return Logged(*columns)


def audience_of(role: Role | None) -> Audience:
    """The audience to which somebody with this role belongs: reader, writer or owner. None stands for a
    reader of a public repository without a role."""
    if role == "owner":
        return "owner"
    return "writer" if role in ("write", "admin") else "reader"


async def append(
    tx: Tx,
    kind: str,
    *,
    repo_id: str | None = None,
    account_id: str | None = None,
    number: int | None = None,
    audience: Audience = "reader",
    author: Author | None = None,
    data: dict[str, Any],
) -> int:
    """Write an event in the transaction `tx`, which must have locked the repository (see `Database.write`).
    Followers are woken after the commit. `author`: who did it; if None, the author of the transaction.
    Returns the event's id."""
    if not KIND.fullmatch(kind):
        raise ValueError(f"{kind} is not a kind of event: noun.verb")
    who = tx.author if author is None else author
    event_id: int = await tx.value(
        rows.INSERT,
        id=await tx.stamp(),
        repo_id=repo_id,
        account_id=account_id,
        number=number,
        kind=kind,
        actor=who.actor,
        device_key_id=who.device_key_id,
        turn=who.turn,
        audience=audience,
        data=msgspec.json.encode(data).decode(),
        created_at=now_ms(),
    )
    tx.wake()
    return event_id
