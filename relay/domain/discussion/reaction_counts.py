"""Counts of reactions to issues and comments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from localstore.core.model.issue import REACTIONS, Reaction, Reactions
from relay.caller import View
from relay.db.engine.database import Row, Tx
from relay.domain.discussion.rows import comment as rows

K = TypeVar("K", int, str)
_MEMBER: dict[str, str] = {"+1": "plus", "-1": "minus"}


async def on_issues(tx: Tx, view: View, numbers: Sequence[int]) -> dict[int, Reactions]:
    """The reactions to each of these issues, by issue number."""
    count_rows = await tx.all(rows.ON_ISSUES, of_repo=view.repo.id, numbers=list(numbers), me=_me(view))
    return _group_by_subject(count_rows, numbers)


async def on_comments(tx: Tx, view: View, number: int, ids: Sequence[str]) -> dict[str, Reactions]:
    """The reactions to each of these comments on one issue, by comment id."""
    if not ids:
        return {}
    count_rows = await tx.all(
        rows.ON_COMMENTS, of_repo=view.repo.id, of_number=number, comments=list(ids), me=_me(view)
    )
    return _group_by_subject(count_rows, ids)


def _group_by_subject(count_rows: Iterable[Row], subjects: Sequence[K]) -> dict[K, Reactions]:
    counts: dict[K, dict[str, int]] = {key: {} for key in subjects}
    mine: dict[K, list[Reaction]] = {key: [] for key in subjects}
    for subject, name, count, is_mine in sorted(count_rows, key=lambda row: REACTIONS.index(row[1])):
        counts[subject][_MEMBER.get(name, str(name))] = count
        if is_mine:
            mine[subject].append(name)
    return {key: Reactions(**counts[key], viewer=mine[key]) for key in subjects}


def _me(view: View) -> str:
    return view.principal.account_id if view.principal else ""
