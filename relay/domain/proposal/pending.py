"""Draft comments on lines. They are published together with their author's review."""

from __future__ import annotations

from relay.base.clock import now_ms
from relay.caller import View
from relay.db.engine.database import Tx
from relay.domain.discussion import sight
from relay.domain.discussion.rows import comment as comments
from relay.domain.discussion.rows import thread as rows


async def has_pending(tx: Tx, view: View, number: int) -> bool:
    """Whether the caller has draft comments on the proposal."""
    of = {"of_repo": view.repo.id, "of_number": number, "me": view.me.account_id}
    return bool(await tx.all(comments.PENDING, **of))


async def publish_pending(tx: Tx, view: View, number: int, review: str) -> None:
    """Publish all draft comments of the caller on this proposal together with this review. One event
    announces them all, except comments that only writers see, which have separate events for writers."""
    of = {"of_repo": view.repo.id, "of_number": number}
    by_me = {**of, "me": view.me.account_id}
    pending_rows = await tx.all(comments.PENDING, **by_me)
    if not pending_rows:
        return
    thread_ids = sorted({thread for _, thread in pending_rows})
    threads = {
        thread_row.id: thread_row
        for thread_row in map(rows.to_row, await tx.all(rows.SOME, **by_me, among=thread_ids))
    }
    await tx.run(rows.SEND, **by_me, now=now_ms())
    await tx.run(comments.SEND, **by_me)
    published: list[str] = []
    for comment, thread in pending_rows:
        if await sight.audience_of(tx, view, threads[thread]) == "reader":
            published.append(comment)
        else:
            await sight.announce(tx, view, "thread.comment", number, threads[thread], id=comment)
    if published:
        await tx.run(comments.WENT_WITH, **of, comments=published, review=review)
