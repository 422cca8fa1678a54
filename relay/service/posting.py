"""What opening an issue and commenting on one have in common: how much, how long, and who takes part."""

from __future__ import annotations

from localstore.core import limits
from localstore.core.errors import Invalid, RateLimited
from relay.base.clock import now_ms
from relay.caller import View
from relay.db import issue as rows
from relay.db.engine.database import Tx

MINUTE = 60_000


def require_short(text: str, pointer: str) -> None:
    """Invalid for a text that is longer than a body may be, in bytes."""
    if len(text.encode()) > limits.ISSUE_BODY_BYTES:
        raise Invalid("body is at most 64 KiB of text without NUL", pointer=pointer)


async def require_room(tx: Tx, view: View) -> None:
    """RateLimited for an account that has posted as much as it may within the last minute, wherever; the
    transaction names the account."""
    most = limits.POSTS_MEMBER if view.has("triage") else limits.POSTS_STRANGER
    values = {"who": view.me.account_id, "since": now_ms() - MINUTE}
    if await tx.value(rows.OPENED, **values) + await tx.value(rows.WROTE, **values) >= most:
        raise RateLimited(
            f"{most} issues and comments within a minute are enough; try again later",
            retry_after=60,
            limit=most,
        )


async def take_part(tx: Tx, view: View, number: int, state: str) -> None:
    """The caller has opened this issue, or commented on it."""
    who = view.me.account_id
    if await tx.run(rows.POSTED, of_repo=view.repo.id, of_number=number, who=who) == 0:
        await tx.run(
            rows.PART,
            repo_id=view.repo.id,
            number=number,
            account_id=who,
            kind=rows.ISSUE,
            state=state,
            posted=True,
            assigned=False,
        )
