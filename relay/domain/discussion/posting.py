"""Limits that all posts share: how many an account posts in a minute, and how long a post is."""

from __future__ import annotations

from localstore.core.errors import Invalid, RateLimited
from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.caller import View
from relay.db.collaboration import issue as rows
from relay.db.collaboration import review as reviews
from relay.db.engine.database import Tx
from relay.domain.discussion.rows import report as reports

MINUTE = 60_000


def require_short(text: str, pointer: str) -> None:
    """Raise Invalid if the text has more bytes than a body may have."""
    if len(text.encode()) > limits.ISSUE_BODY_BYTES:
        raise Invalid("body is at most 64 KiB of text without NUL", pointer=pointer)


async def require_room(tx: Tx, view: View) -> None:
    """Raise RateLimited if the account has posted too much in the last minute, counted over all repositories.
    Call it in a transaction that locks the account."""
    if not view.node.limiter.enabled:
        return
    most = limits.POSTS_MEMBER if view.has("triage") else limits.POSTS_STRANGER
    values = {"who": view.me.account_id, "since": now_ms() - MINUTE}
    counted = [
        await tx.value(statement, **values)
        for statement in (rows.OPENED, rows.WROTE, reviews.WROTE, reports.WROTE)
    ]
    if sum(counted) >= most:
        raise RateLimited(
            f"{most} issues, proposals, reviews, comments and reports within a minute are enough; "
            "try again later",
            retry_after=60,
            limit=most,
        )
