"""The state of a proposal as parts of a line: state, checks, approvals."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.model.collaboration.check import Rollup, SealCheck
from localstore.core.model.collaboration.proposal import Proposal
from localstore.core.model.collaboration.run import Run
from localstore.core.model.collaboration.run import state_of as run_state
from tui.listed import Counts, ListedProposal
from tui.text import Part, safe

STATES: dict[str, Part] = {
    "draft": ("◌ draft ", "dim"),
    "open": ("○ open  ", "good"),
    "merged": ("● merged", "agent"),
    "closed": ("⊘ closed", "bad"),
}
CHECKS: dict[str, Part] = {
    "pass": ("✓ pass   ", "good"),
    "fail": ("✗ fail   ", "bad"),
    "running": ("◐ running", "warn"),
    "queued": ("◌ queued ", "dim"),
    "skip": ("– skip   ", "dim"),
    "cancel": ("⊘ cancel ", "warn"),
}
BLOCKS = {"behind": "its base has moved on", "conflicts": "✗ conflicts with its base"}


def conflict_way_out(one: Proposal) -> str:
    """The commands that join conflicting versions."""
    return (
        f"to join them: svc pr checkout {one.number}, then svc merge {safe(one.base)}, svc resolve, svc push"
    )


def refuses_merge(one: Proposal) -> str:
    """Why the server or this machine refuses every way to merge it; "" if one may go."""
    if one.blocked_by:
        return f"it waits for {', '.join(one.blocked_by).replace('_', ' ')}"
    return f"it conflicts with {one.base}; {conflict_way_out(one)}" if one.merge_state == "conflicts" else ""


def state_of(one: Proposal | ListedProposal) -> Part:
    return STATES["draft" if one.draft and one.state == "open" else one.state]


def sign_of_run(run: Run) -> Part:
    """How a run stands, with a word."""
    state = run_state(run.status, run.conclusion)
    return CHECKS[state if state != "pending" else "queued" if run.status == "queued" else "running"]


def sign_of_check(check: SealCheck) -> Part:
    """How a check stands, with a word: queued until a run of it has begun."""
    state = check.state
    return CHECKS[state if state != "pending" else "running" if check.started_at else "queued"]


def checks_of(rollup: Rollup | Counts, items: Sequence[SealCheck] = ()) -> Part:
    """`✓ 4/4`, `✗ lint`, `◐ 1/3`; nothing without checks. `items` give the names of failed ones."""
    if not rollup.total:
        return ("", "text")
    if rollup.failed:
        named = [safe(item.name) for item in items if item.state in ("fail", "cancel")]
        said = named[0] if named else f"{rollup.failed} failed"
        return (f"✗ {said}{f' +{len(named) - 1}' if len(named) > 1 else ''}", "bad")
    count = f"{rollup.passed}/{rollup.total}"
    return (f"◐ {count}", "warn") if rollup.pending else (f"✓ {count}", "good")


def verdicts_of(one: Proposal | ListedProposal) -> Part:
    """The verdict of the reviewers: a request for changes outweighs approvals."""
    standing = [reviewer for reviewer in one.reviewers if not reviewer.stale]
    if any(reviewer.state == "changes_requested" for reviewer in standing):
        return ("✗ changes", "bad")
    approved = sum(reviewer.state == "approved" for reviewer in standing)
    return (f"✓ {approved} approval{'' if approved == 1 else 's'}", "good") if approved else ("", "text")
