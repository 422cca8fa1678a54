"""Limits on guessing passwords and pairing codes.

One limit is for each handle at each address, so wrong guesses from one address do not keep the user from
signing in at another. A second limit is for the handle alone, against guesses from many addresses. It does
not apply to networks where the account signed in recently, so it never affects users at their usual places
(SECURITY.md, docs/design/005).
"""

from __future__ import annotations

from localstore.core.errors import RateLimited
from relay.base.clock import now_ms
from relay.caller import Caller
from relay.capacity.limiter import Attempts
from relay.db.engine.database import Tx
from relay.domain.identity.rows import known_address as rows

KNOWN_FOR = 90 * 24 * 3600 * 1000  # milliseconds after a sign-in
KNOWN_NETWORKS = 64  # latest networks of one account
PER_PLACE = 10  # failed tries for one handle from one network, refilled within PLACE_SECONDS
PLACE_SECONDS = 600


class Guesses:
    """Limits on guesses of a secret. One limit is for each handle and network. Another is for each handle:
    `strangers` tries within `seconds`, from all networks together where its account has not signed in
    recently. `what`: the name of the secrets, for messages."""

    def __init__(self, name: str, strangers: int, seconds: int, what: str) -> None:
        self._place = Attempts(
            f"{name}.place", PER_PLACE, PLACE_SECONDS, f"wrong {what} for a handle from one network"
        )
        self._strangers = Attempts(
            f"{name}.strangers",
            strangers,
            seconds,
            f"wrong {what} for a handle from networks that it was not signed in from in 90 days",
        )

    def count(self, caller: Caller, handle: str, known_network: bool) -> None:
        """Count a try before it is known whether it succeeds. `known_network`: the account signed in from
        this network recently. Raises RateLimited after too many tries."""
        limiter = caller.node.limiter
        self._place.count(limiter, f"{handle} {caller.network}")
        if known_network:
            return
        try:
            self._strangers.count(limiter, handle)
        except RateLimited as error:
            raise RateLimited(
                f"too many wrong tries for {handle} came from networks that it was not used from lately; "
                f"sign in from a network where you did before, or with a device key, or try again in "
                f"{error.extra['retry_after']} s",
                error.extra["retry_after"],
                error.extra["limit"],
                error.extra["window"],
            ) from None

    def give_back(self, caller: Caller, handle: str, known_network: bool) -> None:
        """Undo the count of a try that succeeded."""
        limiter = caller.node.limiter
        self._place.give_back(limiter, f"{handle} {caller.network}")
        if not known_network:
            self._strangers.give_back(limiter, handle)


async def is_known(tx: Tx, caller: Caller, handle: str) -> bool:
    """Whether the account of this handle signed in from the caller's network recently."""
    since = now_ms() - KNOWN_FOR
    return await tx.one(rows.KNOWN, handle=handle, place=caller.network, since=since) is not None


async def remember(tx: Tx, caller: Caller, account_id: str) -> None:
    """Record that the account signed in from the caller's network."""
    now = now_ms()
    place = {"account_id": account_id, "network": caller.network, "seen_at": now}
    await tx.run(rows.INSERT, **place)
    await tx.run(rows.SEEN, account=account_id, place=caller.network, now=now)
    await tx.run(rows.DROP_OLD, account=account_id, before=now - KNOWN_FOR, keep=KNOWN_NETWORKS)
