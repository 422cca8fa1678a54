"""The record of who did what to sign-ins, keys and tokens."""

from __future__ import annotations

import json
from typing import Any

from relay.base.clock import now_ms
from relay.db.engine.database import Tx
from relay.db.identity import audit as rows

_CHARS = 256


async def record(tx: Tx, actor: str, action: str, subject: str, **data: Any) -> None:
    """One row, in the transaction of what it tells. `actor` and `subject` are ids, `data` is JSON: text from
    outside can neither start a second line nor hide the rest of one."""
    await tx.run(
        rows.INSERT,
        at=now_ms(),
        actor=one_line(actor),
        action=action,
        subject=one_line(subject),
        data=json.dumps({name: _safe(value) for name, value in data.items()}, sort_keys=True),
    )


def one_line(text: str) -> str:
    """`text`, shortened, with everything but visible ASCII and spaces escaped."""
    return text[:_CHARS].encode("unicode_escape").decode("ascii")


def _safe(value: Any) -> Any:
    return value[:_CHARS] if isinstance(value, str) else value
