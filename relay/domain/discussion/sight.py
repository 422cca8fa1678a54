"""Decides who sees a thread and who is notified of it. All code about threads must use this module, because
the paths of threads may be hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model.proposal import ThreadCounts
from localstore.core.tree.policy import Policy
from relay.caller import View
from relay.db import repo as repos
from relay.db.engine.database import Tx
from relay.domain.discussion import subject
from relay.domain.discussion.rows import thread as rows
from relay.domain.discussion.rows.thread import ThreadRow
from relay.events.log import Audience


def account_id_of(view: View) -> str:
    """The id of the caller's account; "" for an anonymous caller."""
    return view.principal.account_id if view.principal else ""


async def find(tx: Tx, view: View, number: int, thread: str) -> ThreadRow:
    """The row of a thread. Raises NotFound if there is no such thread, if it is a draft of another author, or
    if its path is hidden."""
    row = await tx.one(
        rows.ONE, of_repo=view.repo.id, of_number=number, thread=thread, me=account_id_of(view)
    )
    if row is None or not _is_visible(view, thread_row := rows.to_row(row)):
        raise NotFound
    return thread_row


async def count_threads(tx: Tx, view: View, numbers: Sequence[int]) -> dict[int, ThreadCounts]:
    """Count the open and the resolved threads that the caller sees, by proposal number. Runs one
    statement."""
    of = {"of_repo": view.repo.id, "numbers": list(numbers)}
    if view.policy is None:
        states = [(n, state, many) for n, state, many in await tx.all(rows.COUNTS, **of)]
    else:
        states = [
            (n, state, many)
            for n, state, path, at_path, many in await tx.all(rows.COUNTS_BY_PATH, **of)
            if view.sees(path) and view.sees(at_path)
        ]
    by_number: dict[int, dict[str, int]] = {n: {"open": 0, "resolved": 0} for n in numbers}
    for n, state, many in states:
        by_number[n][state] += many
    return {n: ThreadCounts(**counted) for n, counted in by_number.items()}


async def audience_of(tx: Tx, view: View, thread: ThreadRow) -> Audience:
    """The audience of events about the thread. It is the writers if the thread's path is hidden from other
    readers, else all readers."""
    if view.repo.policy is None:
        return "reader"
    rules = await tx.all(repos.POLICY, repo_id=view.repo.id)
    policy = Policy(view.repo.policy, dict(map(tuple, rules)))
    return "reader" if policy.sees(thread.path) and policy.sees(thread.at_path) else "writer"


async def announce(tx: Tx, view: View, kind: str, number: int, thread: ThreadRow, **data: Any) -> None:
    """Write an event of this kind that only readers who see the thread receive. If all readers of the
    proposal see the thread, also set the time of the proposal's last change."""
    hearers = await audience_of(tx, view, thread)
    if hearers == "reader":
        await subject.record_change(tx, view, kind, number, thread=thread.id, **data)
        return
    await view.node.hub.announce(
        tx, view.repo.id, kind, number=number, audience=hearers, thread=thread.id, **data
    )


def _is_visible(view: View, thread: ThreadRow) -> bool:
    return view.sees(thread.path) and view.sees(thread.at_path)
