"""Computes the obstacles to a proposal's merge, and whether the proposal would conflict with its base."""

from __future__ import annotations

from collections.abc import Collection

from localstore.core.model.proposal import MergeState


def is_mergeable(merge_base: str | None, base_now: str | None, trial: Collection[str] | None) -> bool | None:
    """Whether a merge would have no conflict, regardless of other obstacles. None if this is unknown.
    `merge_base`: merge base of the proposal. `base_now`: head of the base branch. `trial`: files in which the
    merge would conflict, or None if it was not tried."""
    if base_now is None:
        return None
    if merge_base == base_now:
        return True
    return None if trial is None else not trial


def merge_state(
    state: str,
    draft: bool,
    blocked: Collection[str],
    merge_base: str | None,
    base_now: str | None,
    trial: Collection[str] | None,
) -> MergeState:
    """Find the merge state to show. It is the first obstacle that exists: conflicts, then the draft flag,
    then the other obstacles (`blocked`). `base_now`: head of the base branch. `trial`: files in which the
    merge would conflict, or None if it was not tried."""
    if state != "open" or base_now is None:
        return "unknown"
    if trial:
        return "conflicts"
    if draft:
        return "draft"
    if blocked:
        return "blocked"
    if merge_base == base_now:
        return "clean"
    return "unknown" if trial is None else "behind"
