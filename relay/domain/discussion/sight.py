"""Who sees and hears of which thread: the one door for paths, for threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model.collaboration.proposal import ThreadCounts
from localstore.core.rights.policy import Policy
from relay.caller import View
from relay.db import repo as repos
from relay.db.engine.database import Tx
from relay.domain.discussion import subject
from relay.domain.discussion.rows import thread as rows
from relay.domain.discussion.rows.thread import ThreadRow
from relay.events.log import Audience


def me(view: View) -> str:
    """The caller's account; "" for nobody."""
    return view.principal.account_id if view.principal else ""


async def find(tx: Tx, view: View, number: int, thread: str) -> ThreadRow:
    """NotFound for one that is missing, waits for somebody else's review, or is on a hidden path."""
    found = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=number, thread=thread, me=me(view))
    if found is None or not _sees(view, row := rows.row(found)):
        raise NotFound
    return row


async def counts(tx: Tx, view: View, numbers: Sequence[int]) -> dict[int, ThreadCounts]:
    """How many threads of each proposal are open, and how many resolved, as far as the caller sees them; one
    statement."""
    of = {"of_repo": view.repo.id, "numbers": list(numbers)}
    if view.policy is None:
        found = [(n, state, many) for n, state, many in await tx.all(rows.COUNTS, **of)]
    else:
        found = [
            (n, state, many)
            for n, state, path, at_path, many in await tx.all(rows.COUNTS_BY_PATH, **of)
            if view.sees(path) and view.sees(at_path)
        ]
    made: dict[int, dict[str, int]] = {n: {"open": 0, "resolved": 0} for n in numbers}
    for n, state, many in found:
        made[n][state] += many
    return {n: ThreadCounts(**one) for n, one in made.items()}


async def audience(tx: Tx, view: View, thread: ThreadRow) -> Audience:
    """Who may hear of the thread: on a path that only writers see, writers."""
    if view.repo.policy is None:
        return "reader"
    rules = await tx.all(repos.POLICY, repo_id=view.repo.id)
    policy = Policy(view.repo.policy, dict(map(tuple, rules)))
    return "reader" if policy.sees(thread.path) and policy.sees(thread.at_path) else "writer"


async def announce(tx: Tx, view: View, kind: str, number: int, thread: ThreadRow, **data: Any) -> None:
    """The event goes to those who see the thread. To others the proposal has not changed."""
    heard = await audience(tx, view, thread)
    if heard == "reader":
        await subject.touch(tx, view, kind, number, thread=thread.id, **data)
        return
    await view.node.hub.announce(
        tx, view.repo.id, kind, number=number, audience=heard, thread=thread.id, **data
    )


def _sees(view: View, thread: ThreadRow) -> bool:
    return view.sees(thread.path) and view.sees(thread.at_path)
