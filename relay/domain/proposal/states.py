"""Finds proposals. Sets the state of a proposal in all rows that contain it."""

from __future__ import annotations

from typing import Any

from localstore.core.errors import NotFound
from localstore.core.model.proposal import State
from relay.base.clock import now_ms
from relay.caller import View
from relay.db.collaboration import proposal as rows
from relay.db.collaboration.proposal import ProposalRow
from relay.db.engine.database import Tx
from relay.domain.discussion import subject
from relay.domain.discussion.subject import Subject
from relay.domain.proposal import auto
from relay.node import Node


async def find(tx: Tx, view: View, number: str | int) -> ProposalRow:
    """The row of the proposal with this number. Raises NotFound."""
    n = subject.number_of(str(number))
    row = await tx.one(rows.ONE, of_repo=view.repo.id, of_number=n)
    if row is None:
        raise NotFound
    return rows.to_row(row)


def subject_of(row: ProposalRow) -> Subject:
    return Subject(row.number, rows.PROPOSAL, row.state, row.author_id, row.comments)


async def put(tx: Tx, view: View, number: int, state: State, kind: str, **data: Any) -> None:
    """Set the state of a proposal and write the event. `kind` and `data` are those of the event. The caller
    must have checked the rules."""
    await put_in(tx, view.node, view.repo.id, number, state, kind, **data)


async def put_in(tx: Tx, node: Node, repo_id: str, number: int, state: State, kind: str, **data: Any) -> None:
    """Set the state of a proposal of the repository with this id, and write the event. `kind` and `data` are
    those of the event. The caller must have checked the rules."""
    await auto.forget(tx, repo_id, number)
    now = now_ms()
    of = {"of_repo": repo_id, "of_number": number, "new_state": state}
    await tx.run(rows.SET_STATE, **of)
    await tx.run(rows.SUBJECT_STATE, **of, new_closed_at=None if state == "open" else now, now=now)
    await tx.run(rows.REVIEWER_STATE, **of)
    await subject.set_state(tx, repo_id, number, state)
    await node.hub.announce(tx, repo_id, kind, number=number, **data)
