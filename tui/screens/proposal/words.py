"""The state of a proposal in words: whether it is open, its checks and approvals, and what hinders a
merge."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.model.check import Rollup, SealCheck
from localstore.core.model.proposal import Proposal
from localstore.core.model.run import Run
from localstore.core.model.run import state_of as run_state
from localstore.core.words import SIGNS, reasons_to_wait, state_of_check, state_of_proposal
from tui.listed import Counts, ListedProposal
from tui.text import Part, safe

STATES: dict[str, Part] = {
    name: (f"{SIGNS[name]} {name:6}", style)
    for name, style in (("draft", "dim"), ("open", "good"), ("merged", "agent"), ("closed", "bad"))
}
CHECKS: dict[str, Part] = {
    name: (f"{SIGNS.get(name, '·')} {name:7}", style)
    for name, style in (
        ("pass", "good"),
        ("fail", "bad"),
        ("running", "warn"),
        ("queued", "dim"),
        ("waited", "dim"),
        ("skip", "dim"),
        ("cancel", "warn"),
    )
}
BLOCKS = {"behind": "its base has moved on", "conflicts": "✗ conflicts with its base"}


def conflict_way_out(proposal: Proposal) -> str:
    """Returns a text with the commands that resolve the conflicts of a proposal."""
    return (
        f"to join them: svc pr checkout {proposal.number}, then svc merge {safe(proposal.base)}, "
        "svc resolve, svc push"
    )


def reasons_against(proposal: Proposal) -> list[str]:
    """Returns the reasons why no strategy can merge the proposal now, each as a sentence. Returns [] if a
    strategy can."""
    conflicts = [f"it conflicts with {safe(proposal.base)}"] if proposal.merge_state == "conflicts" else []
    return [*conflicts, *reasons_to_wait(proposal.blocked_by)]


def refuses_merge(proposal: Proposal) -> str:
    """Returns the reason why no strategy can merge the proposal, on the server or on this machine. Returns ""
    if a strategy can."""
    waits = f"it waits: {'; '.join(reasons_to_wait(proposal.blocked_by))}" if proposal.blocked_by else ""
    if proposal.merge_state != "conflicts":
        return waits
    return f"it conflicts with {proposal.base}; {conflict_way_out(proposal)}{f'. {waits}' if waits else ''}"


def waits_for(proposal: ListedProposal, account: str) -> list[Part]:
    """Returns parts that say what a proposal waits for: a review of the account, or the resolution of
    conflicts. A row of a list says no more than that."""
    if proposal.state != "open":
        return []
    is_reviewer = any(
        reviewer.who.handle == account and (reviewer.state == "requested" or reviewer.stale)
        for reviewer in proposal.reviewers
    )
    parts: list[Part] = [("◆ your review", "accent")] if is_reviewer and account else []
    return [*parts, ("✗ conflicts", "bad")] if proposal.merge_state == "conflicts" else parts


def state_of(proposal: Proposal | ListedProposal) -> Part:
    return STATES[state_of_proposal(proposal.state, proposal.draft)]


def sign_of_run(run: Run) -> Part:
    """Returns the state of a run as a part with a sign and a word."""
    return CHECKS[state_of_check(run_state(run.status, run.conclusion), run.status != "queued")]


def sign_of_check(check: SealCheck) -> Part:
    """Returns the state of a check as a part with a sign and a word. It is `queued` until a run of the check
    begins, and `waited` if no run was reported."""
    if check.state == "pending" and check.run_id is None:
        return CHECKS["waited"]
    return CHECKS[state_of_check(check.state, check.started_at is not None)]


def checks_of(rollup: Rollup | Counts, items: Sequence[SealCheck] = ()) -> Part:
    """Returns the state of all checks as a part, such as `✓ 4/4`, `✗ lint` or `◐ 1/3`. Its text is "" if
    there are no checks. `items`: the checks, from which the names of failed ones are taken."""
    if not rollup.total:
        return ("", "text")
    if rollup.failed:
        named = [safe(item.name) for item in items if item.state in ("fail", "cancel")]
        words = named[0] if named else f"{rollup.failed} failed"
        return (f"✗ {words}{f' +{len(named) - 1}' if len(named) > 1 else ''}", "bad")
    count = f"{rollup.passed}/{rollup.total}"
    return (f"◐ {count}", "warn") if rollup.pending else (f"✓ {count}", "good")


def verdicts_of(proposal: Proposal | ListedProposal) -> Part:
    """Returns the verdict of all reviewers together, as a part. A request for changes outweighs approvals."""
    standing = [reviewer for reviewer in proposal.reviewers if not reviewer.stale]
    if any(reviewer.state == "changes_requested" for reviewer in standing):
        return ("✗ changes", "bad")
    approved = sum(reviewer.state == "approved" for reviewer in standing)
    return (f"✓ {approved} approval{'' if approved == 1 else 's'}", "good") if approved else ("", "text")
