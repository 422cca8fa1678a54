"""Limits for what a stranger could guess: a password, a pairing code.

Wrong tries count for handle and address together, so that nobody locks a person out from elsewhere. So that
many addresses together cannot guess without end either, they also count for the handle as a whole, but only
where they come from a network that this account was not signed in from lately: people at their usual places
never meet that limit (SECURITY.md, docs/design/005).
"""

from __future__ import annotations

from localstore.core.errors import RateLimited
from relay.base.clock import now_ms
from relay.caller import Caller
from relay.db.engine.database import Tx
from relay.db.identity import known_address as rows
from relay.http.limiter import Attempts

KNOWN_FOR = 90 * 24 * 3600 * 1000  # milliseconds after a sign-in
KNOWN_NETWORKS = 64  # of one account, the latest
PER_PLACE = 10  # wrong tries for one handle from one network, all of them back after PLACE_SECONDS
PLACE_SECONDS = 600


class Guesses:
    """`strangers` wrong tries for one handle from all networks that it is not known at, all of them back
    after `seconds`."""

    def __init__(self, name: str, strangers: int, seconds: int) -> None:
        self._place = Attempts(f"{name}.place", PER_PLACE, PLACE_SECONDS)
        self._strangers = Attempts(f"{name}.strangers", strangers, seconds)

    def take(self, caller: Caller, handle: str, known: bool) -> None:
        """Count a try before it is made. RateLimited when there were too many."""
        limiter = caller.node.limiter
        self._place.take(limiter, f"{handle} {caller.network}")
        if known:
            return
        try:
            self._strangers.take(limiter, handle)
        except RateLimited as error:
            raise RateLimited(
                f"too many wrong tries for {handle} came from places it was not used at lately; sign in "
                f"from a place where you did before, or with a device key, or try again in "
                f"{error.extra['retry_after']} s",
                error.extra["retry_after"],
                error.extra["limit"],
                error.extra["window"],
            ) from None

    def give_back(self, caller: Caller, handle: str, known: bool) -> None:
        """The try was good and does not count."""
        limiter = caller.node.limiter
        self._place.give_back(limiter, f"{handle} {caller.network}")
        if not known:
            self._strangers.give_back(limiter, handle)


async def is_known(tx: Tx, caller: Caller, handle: str) -> bool:
    """Whether the account of this handle was signed in from the caller's network lately."""
    since = now_ms() - KNOWN_FOR
    return await tx.one(rows.KNOWN, handle=handle, place=caller.network, since=since) is not None


async def remember(tx: Tx, caller: Caller, account_id: str) -> None:
    """The account is signed in from the caller's network now."""
    now = now_ms()
    place = {"account_id": account_id, "network": caller.network, "seen_at": now}
    await tx.run(rows.INSERT, **place)
    await tx.run(rows.SEEN, account=account_id, place=caller.network, now=now)
    await tx.run(rows.DROP_OLD, account=account_id, before=now - KNOWN_FOR, keep=KNOWN_NETWORKS)
