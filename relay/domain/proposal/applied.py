"""Resolves threads when a seal that applies their suggestions lands."""

from __future__ import annotations

from relay.base.clock import now_ms
from relay.caller import View
from relay.db.engine.database import Tx
from relay.domain.discussion import sight
from relay.domain.discussion.rows import thread as rows

SUBJECT = "suggestions"


async def resolve_applied(tx: Tx, view: View, subject: str, seal: str) -> None:
    """Resolve the threads whose suggestions the seal applies, and record the seal in them. `subject`: a text
    with the number of the proposal and the ids of the threads. Called in the transaction that moves the
    head."""
    what, *rest = subject.split(" ")
    if what != SUBJECT:
        return
    number, *ids = rest
    of = {"of_repo": view.repo.id, "of_number": int(number)}
    for row in await tx.all(rows.SOME, **of, among=ids, me=""):
        thread = rows.to_row(row)
        await tx.run(rows.APPLIED, **of, thread=thread.id, seal=seal, now=now_ms())
        await sight.announce(tx, view, "thread.apply", int(number), thread, seal=seal)
