"""Computes the obstacles to a proposal's merge, and whether the proposal would conflict with its base."""

from __future__ import annotations

from collections.abc import Collection

from localstore.core.model.proposal import MergeState
from localstore.core.model.protection import Protection
from localstore.core.model.review import Review
from relay.domain.protection.protection import Standing, find_blockers


def count_verdicts(stand: Collection[Review], checks: bool, open_threads: int = 0) -> Standing:
    """Count the verdicts in `stand`, the valid reviews of a proposal. Reviews by accounts that may not write
    are not counted. `checks`: whether the required checks of the head seal have passed. `open_threads`:
    number of unresolved threads on lines."""
    counted = [review for review in stand if review.counts]
    approvals = [review for review in counted if review.verdict == "approve"]
    return Standing(
        approvals=len(approvals),
        fresh=sum(not review.stale for review in approvals),
        refused=sum(review.verdict == "request_changes" for review in counted),
        open_threads=open_threads,
        checks=checks,
    )


def find_obstacles(rules: list[Protection], come_to: Standing) -> list[str]:
    """Find the obstacles to a merge. Returns their codes. `come_to`: the state of reviews, checks and
    threads. Requested changes block the merge even on a branch without rules."""
    codes = find_blockers(rules, come_to)
    if come_to.refused and "changes_requested" not in codes:
        codes.insert(0, "changes_requested")
    return codes


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
