"""The audit log of sign-ins, keys and tokens: events of an account."""

from __future__ import annotations

from typing import Any

from relay.db.engine.database import Author, Tx
from relay.events import log

OPERATOR = "operator"
_CHARS = 256


async def record(
    tx: Tx, actor: str, action: str, subject: str, *, account_id: str | None = None, **data: Any
) -> None:
    """Write an audit event, in the transaction that has the effect. `actor` and `subject` are ids.
    `account_id`: the account to which the event belongs; None means the actor. Text from outside is escaped,
    so that it can neither start a new line nor hide part of a line."""
    author = tx.author if tx.author.actor == actor else Author(one_line(actor), None, tx.author.turn)
    await log.append(
        tx,
        action,
        account_id=account_id or (actor if actor not in ("", OPERATOR) else None),
        audience="owner",
        author=author,
        data={**{name: _escape(value) for name, value in data.items()}, "subject": one_line(subject)},
    )


def one_line(text: str) -> str:
    """Shorten `text` to one line, and escape everything in it except visible ASCII and spaces."""
    return text[:_CHARS].encode("unicode_escape").decode("ascii")


def _escape(value: Any) -> Any:
    return one_line(value) if isinstance(value, str) else value
