"""What the protection rules of a branch demand of a proposal, and what of it a proposal lacks. The relay
decides by it whether a proposal may be merged. Clients work out with it what a change of a rule would let
merge."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from localstore.core.model.protection import Protection
from localstore.core.model.review import Review


class Standing(msgspec.Struct, frozen=True):
    """The state of a proposal's reviews and checks. `approvals`: number of reviewers whose last verdict
    approves. `fresh`: how many of these reviewers approved the current change. `refused`: number of reviewers
    whose last verdict requests changes. `checks`: whether every required check of the head seal has
    passed."""

    approvals: int = 0
    fresh: int = 0
    refused: int = 0
    open_threads: int = 0
    checks: bool = False


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


def count_approvals(rules: Sequence[Protection], standing: Standing) -> tuple[int, int]:
    """Returns how many approvals the rules demand of a merge, and how many of them are missing."""
    needed = max((rule.required_approvals or int(rule.require_review) for rule in rules), default=0)
    fresh = any(rule.fresh_approvals for rule in rules)
    return needed, max(0, needed - (standing.fresh if fresh else standing.approvals))


def find_blockers(rules: Sequence[Protection], standing: Standing) -> list[str]:
    """Find everything that blocks a merge into a branch with these rules. Returns some of `lock_writes`,
    `changes_requested`, `review_required`, `checks_required`, `unresolved_threads`."""
    needed, missing = count_approvals(rules, standing)
    blocked = {
        "lock_writes": any(rule.lock_writes for rule in rules),
        "changes_requested": needed > 0 and standing.refused > 0,
        "review_required": missing > 0,
        "checks_required": any(rule.require_checks for rule in rules) and not standing.checks,
        "unresolved_threads": any(rule.require_resolution for rule in rules) and standing.open_threads > 0,
    }
    return [code for code, blocks in blocked.items() if blocks]


def find_obstacles(rules: Sequence[Protection], standing: Standing) -> list[str]:
    """Find the obstacles to a merge of a proposal. Returns their codes. Requested changes block the merge
    even on a branch without rules."""
    codes = find_blockers(rules, standing)
    if standing.refused and "changes_requested" not in codes:
        codes.insert(0, "changes_requested")
    return codes
