"""Limits how many things of one kind an account creates within an hour, in all repositories together. They
are counted in the transaction that creates them, so that refused and failed requests do not count.

For the operations in `COUNTED`, `View.write` counts one resource. Services count all other resources by
calling `count`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from localstore.core.errors import RateLimited
from relay.base.clock import now_ms
from relay.db.engine.database import Tx
from relay.db.storage import usage as rows

HOUR = 3600_000  # milliseconds
DEFAULTS: Final[Mapping[str, int]] = {
    "refs": 50_000,  # a large import brings its tags
    "labels": 5_000,
    "organisations": 20,
    "documents": 1_000,
    "invitations": 200,
    "releases": 1_000,
    "rules": 5_000,  # of protection, of paths, and checks that have to pass
    "transfers": 500,
}
COUNTED: Final[Mapping[str, str]] = {
    "ref.create": "refs",
    "label.create": "labels",
    "release.create": "releases",
    "protection.set": "rules",
    "path.set": "rules",
    "check.enable": "rules",
    "transfer.create": "transfers",
}


async def count(tx: Tx, account_id: str, what: str, limits: Mapping[str, int], new: int = 1) -> None:
    """Count `new` resources of the kind `what`, a key of DEFAULTS, such as "labels". Raises RateLimited if
    the account exceeds the limit for this kind."""
    if new <= 0:
        return
    limit, now = limits[what], now_ms()
    mine = {"of_account": account_id, "of_kind": what}
    more = {"now": now, "until": now + HOUR, "more": new}
    counted = await tx.one(rows.COUNT_CREATED, **mine, **more)
    if counted is None:
        none = {"account_id": account_id, "kind": what, "made": 0, "expires_at": now + HOUR}
        await tx.many(rows.ENSURE_CREATED, [none])
        counted = await tx.one(rows.COUNT_CREATED, **mine, **more)
    if counted is not None and counted[0] > limit:
        wait = max(1, math.ceil((counted[1] - now) / 1000))
        raise RateLimited(
            f"an account creates at most {limit} {what} within an hour on this node; try again in "
            f"{math.ceil(wait / 60)} minutes, or ask its operator (TR_QUOTA_CREATIONS)",
            retry_after=wait,
            limit=limit,
            window=HOUR // 1000,
        )
