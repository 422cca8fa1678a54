"""Predicts from the table of rights whether the server would refuse an operation, before anything is sent."""

from __future__ import annotations

from localstore.core.model.repo import Repo
from localstore.core.model.rights import OPERATIONS, RANK


def refusal(operation: str, repo: Repo, mine: bool = False) -> str:
    """Return why the user may not do the operation in this repository; "" if they may, or if it is not known.
    `mine` says that the user wrote the issue or proposal that the operation is about."""
    row, viewer = OPERATIONS[operation], repo.viewer
    if repo.archived and not row.archived:
        return f"{repo.full_name} is archived; svc repo unarchive opens it again"
    if viewer is None or row.least is None or RANK[viewer.role] >= RANK[row.least]:
        return ""
    if (row.author and mine) or (row.stranger and viewer.role is None):
        return ""
    return f"this needs the role {row.least} in {repo.full_name}; you have {viewer.role or 'none'}"
