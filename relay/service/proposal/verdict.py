"""What keeps a proposal from being merged, as far as reviews say, and how it stands to its base."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from localstore.core.model.collaboration.proposal import MergeState
from localstore.core.model.collaboration.review import Review


@dataclass(slots=True, frozen=True)
class Rules:
    """What the base branch asks for. `fresh`: an approval counts while the change is the same."""

    approvals: int = 0
    fresh: bool = False


def blocked_by(rules: Rules, standing: Collection[Review]) -> list[str]:
    """Codes of what is missing, of verdicts that stand: those of people who may not write do nothing."""
    counted = [one for one in standing if one.counts]
    codes = []
    if any(one.verdict == "request_changes" for one in counted):
        codes.append("changes_requested")
    approvals = [one for one in counted if one.verdict == "approve" and not (rules.fresh and one.stale)]
    if len(approvals) < rules.approvals:
        codes.append("review_required")
    return codes


def merge_state(
    state: str, draft: bool, blocked: Collection[str], merge_base: str | None, base_now: str | None
) -> MergeState:
    """As far as it is known without comparing trees. `base_now`: head of the base branch."""
    if state != "open" or base_now is None:
        return "unknown"
    if draft:
        return "draft"
    if blocked:
        return "blocked"
    if merge_base is None:
        return "unknown"
    return "clean" if merge_base == base_now else "behind"
