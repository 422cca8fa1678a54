"""The state of a proposal in words: whether it is open, its checks and approvals, and what hinders a
merge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from localstore.core.model.check import Check, Rollup, SealCheck
from localstore.core.model.proposal import Proposal
from localstore.core.model.run import Run
from localstore.core.model.run import state_of as run_state
from localstore.core.words import (
    SIGNS,
    approvals_to_come,
    count,
    reasons_to_wait,
    state_of_check,
    state_of_proposal,
)
from tui.listed import Counts, ListedProposal
from tui.text import Part, ago, brief, safe
from tui.wording import in_app

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
        ("missing", "warn"),
        ("skip", "dim"),
        ("cancel", "warn"),
    )
}
WHEN = {
    "draft": "it is ready",
    "lock_writes": "its lock is taken away",
    "changes_requested": "the changes asked for are approved",
    "review_required": "it is approved",
    "checks_required": "checks pass",
    "unresolved_threads": "its threads are resolved",
}
"""What a merge that is signed in advance waits for, by the code of the relay."""
WAITS = "◷"  # the sign of such a merge
WAYS = (
    ("", "fast-forward", "move the base forward to the branch"),
    ("--squash", "squash", "one seal of the branch"),
    ("--rebase", "rebase", "its seals again, on the base"),
    ("--merge", "merge", "a seal with two parents"),
)
"""Strategies of a merge: option of the command, name, and what it does."""
BLOCKS = {"behind": "its base has moved on", "conflicts": "✗ conflicts with its base"}


def conflict_way_out(proposal: Proposal) -> str:
    """Returns a text with the commands that resolve the conflicts of a proposal."""
    return (
        f"to join them: :pr checkout {proposal.number}, then :merge {safe(proposal.base)}, :resolve and :push"
    )


def reasons(proposal: Proposal) -> list[str]:
    """Returns what a merge of the proposal waits for, each as a sentence."""
    needs = proposal.needs
    return [in_app(why) for why in reasons_to_wait(proposal.blocked_by, needs.approvals, needs.missing)]


def merges_when(proposal: Proposal) -> str:
    """Returns when the proposal merges by itself, such as `◷ merges when checks pass`. Returns "" if no merge
    is signed in advance."""
    if proposal.auto_merge is None or proposal.state != "open":
        return ""
    needs = proposal.needs
    when = WHEN
    if needs.approvals > 1:
        when = WHEN | {"review_required": f"it has {approvals_to_come(needs.approvals, needs.missing)}"}
    *others, last = [when[code] for code in proposal.blocked_by if code in when] or [""]
    if not last or len(others) + 1 < len(proposal.blocked_by):
        return f"{WAITS} merges as soon as nothing blocks it"
    return f"{WAITS} merges when {', '.join(others)}{' and ' if others else ''}{last}"


def says_all_reasons(proposal: Proposal) -> bool:
    """Returns whether a merge that is signed in advance names everything that it waits for, so that the
    reasons need not be said again."""
    return bool(merges_when(proposal)) and all(code in WHEN for code in proposal.blocked_by)


def signed_merge(proposal: Proposal, now: float) -> list[Part]:
    """Returns parts that say with which strategy a merge is signed in advance, by whom, and when. Returns []
    if none is. `now`: seconds since 1970."""
    waiting = proposal.auto_merge
    if waiting is None:
        return []
    return [
        (f"{waiting.strategy.replace('_', '-')}, signed by ", "text"),
        (f"@{safe(waiting.by.handle or '?')}", "person"),
        (f" {ago(waiting.created_at, now)}", "dim"),
    ]


def reasons_against(proposal: Proposal) -> list[str]:
    """Returns the reasons why no strategy can merge the proposal now, each as a sentence. Returns [] if a
    strategy can."""
    conflicts = [f"it conflicts with {safe(proposal.base)}"] if proposal.merge_state == "conflicts" else []
    return [*conflicts, *reasons(proposal)]


def is_behind(proposal: Proposal) -> bool:
    """Returns whether the base has seals that the branch lacks, so that it cannot be moved forward to the
    branch. This is also known of a proposal that something else blocks."""
    base = proposal.merge_base
    return proposal.merge_state == "behind" or (base is not None and base != proposal.base_seal)


def refuses_merge(proposal: Proposal) -> str:
    """Returns the reason why no strategy can merge the proposal, on the server or on this machine. Returns ""
    if a strategy can, or if a merge that is signed in advance says what it waits for."""
    unsaid = proposal.blocked_by and not says_all_reasons(proposal)
    waits = f"it waits: {'; '.join(reasons(proposal))}" if unsaid else ""
    if proposal.merge_state != "conflicts":
        return waits
    return f"it conflicts with {proposal.base}; {conflict_way_out(proposal)}{f'. {waits}' if waits else ''}"


class NextStep(NamedTuple):
    """What an open proposal waits for, in one or two words with a sign. `short`: the same for a row with
    little room. `tells`: which of its counts need not be shown beside it, because these words have them:
    checks or verdicts."""

    words: str
    role: str
    short: str
    tells: Literal["", "checks", "verdicts"] = ""


def _standing(
    sign: str, words: str, role: str, short: str = "", tells: Literal["", "checks", "verdicts"] = ""
) -> NextStep:
    return NextStep(f"{sign} {words}", role, f"{sign} {short or words}", tells)


def standing_of(proposal: ListedProposal, account: str) -> NextStep | None:
    """Returns what an open proposal waits for: the first thing that somebody has to do. Returns None if it is
    not open, or if nothing is known that it waits for. `account`: the handle of the user."""
    if proposal.state != "open":
        return None
    if proposal.draft:
        return _standing(SIGNS["draft"], "draft", "dim")
    if proposal.merge_state == "conflicts":
        return _standing("✗", "conflicts", "bad")
    handles = _find_asked(proposal)
    if account in handles:
        return _standing("◆", "your review", "accent", "review")
    codes = proposal.blocked_by or ()
    refuses = any(
        verdict.state == "changes_requested" and not verdict.stale for verdict in proposal.reviewers
    )
    if refuses or "changes_requested" in codes:
        return _standing("✗", "changes asked", "bad", "changes", "verdicts")
    if proposal.checks.failed:
        failed = proposal.checks.failed
        return _standing("✗", f"{count(failed, 'check')} failed", "bad", f"{failed} failed", "checks")
    if handles:
        more = f" +{len(handles) - 1}" if len(handles) > 1 else ""
        return _standing("◇", f"review @{safe(handles[0])}{more}", "warn", f"@{safe(handles[0])}{more}")
    if "review_required" in codes:
        return _standing("◇", "needs review", "warn", "review")
    return _standing_of_codes(proposal)


def asks_for(proposal: ListedProposal, account: str) -> bool:
    """Returns whether an open proposal waits for a review of the account."""
    return proposal.state == "open" and not proposal.draft and account in _find_asked(proposal)


def _find_asked(proposal: ListedProposal) -> list[str]:
    """Returns the handles of those whose review a proposal waits for."""
    return [
        reviewer.who.handle or "?"
        for reviewer in proposal.reviewers
        if reviewer.state == "requested" or reviewer.stale
    ]


def _standing_of_codes(proposal: ListedProposal) -> NextStep | None:
    """Returns what a proposal waits for beside people: its checks, its threads or a lock. Returns that it is
    ready if nothing blocks it, and None if that is unknown."""
    codes, checks = proposal.blocked_by or (), proposal.checks
    if "checks_required" in codes or checks.pending:
        begun = f"{checks.passed}/{checks.total}" if checks.total else ""
        return _standing("◐", f"checks {begun}".rstrip(), "warn", begun or "checks", "checks")
    if "unresolved_threads" in codes:
        open_threads = proposal.threads.open
        words = count(open_threads, "open thread") if open_threads else "open threads"
        return _standing("◇", words, "warn", "threads")
    if "lock_writes" in codes:
        return _standing("⊘", "locked", "warn")
    if codes:
        return _standing("◇", codes[0].replace("_", " "), "warn", "waits")
    is_free = proposal.blocked_by is not None and proposal.merge_state in ("clean", "behind")
    return _standing("✓", "ready", "good") if is_free else None


def waits_for(proposal: ListedProposal, account: str, short: bool = False) -> list[Part]:
    """Returns parts for a row of a list: what a proposal waits for, and whether it then merges by itself,
    because its merge is signed in advance. `short`: the row has little room."""
    standing = standing_of(proposal, account)
    parts: list[Part] = [(standing.short if short else standing.words, standing.role)] if standing else []
    if standing is not None and standing.role == "bad" and account in _find_asked(proposal):
        parts.append(("◆ review" if short else "◆ your review", "accent"))
    if proposal.auto_merge is not None and proposal.state == "open":
        words = f"{WAITS} then merges" if parts else f"{WAITS} merges by itself"
        parts.append((WAITS if short else words, "warn"))
    return parts


def counts_beside(proposal: ListedProposal, account: str) -> list[Part]:
    """Returns the state of checks and the verdicts of reviewers, as parts. What `waits_for` says already is
    left out."""
    standing = standing_of(proposal, account)
    left_out = standing.tells if standing is not None else ""
    counts = [("checks", checks_of(proposal.checks)), ("verdicts", verdicts_of(proposal))]
    return [part for name, part in counts if part[0] and name != left_out]


def state_of(proposal: Proposal | ListedProposal) -> Part:
    return STATES[state_of_proposal(proposal.state, proposal.draft)]


def sign_of_run(run: Run) -> Part:
    """Returns the state of a run as a part with a sign and a word."""
    return CHECKS[state_of_check(run_state(run.status, run.conclusion), run.status != "queued")]


def last_run(check: Check, now: float) -> list[Part]:
    """Returns parts that say how the last run of a check ended, and when. `now`: seconds since 1970."""
    if check.last is None:
        return [("· never ran", "dim")]
    word, role = sign_of_run(check.last)
    when = brief(check.last.completed_at or check.last.created_at, now)
    return [(word.rstrip(), role), (f" {when}", "dim")]


def sign_of_check(check: SealCheck) -> Part:
    """Returns the state of a check as a part with a sign and a word. If no run of the check was reported yet,
    the word is `missing`. If one was reported and has not begun, it is `queued`."""
    if check.state == "pending" and check.run_id is None:
        return CHECKS["missing"]
    return CHECKS[state_of_check(check.state, check.started_at is not None)]


def must_pass(check: SealCheck, proposal: Proposal) -> Part:
    """Returns `required` as a part, if the rules of the base branch of a proposal ask for this check. Its
    text is "" if they do not, although the check is among the required ones of the repository."""
    is_asked = check.required and proposal.needs.checks
    return ("  required" if is_asked else "", "dim" if check.state == "pass" else "warn")


def checks_of(rollup: Rollup | Counts, items: Sequence[SealCheck] = ()) -> Part:
    """Returns the state of all checks as a part, such as `✓ 4/4`, `✗ lint` or `◐ 1/3`. Its text is "" if
    there are no checks. `items`: the checks, from which the names of failed ones are taken, and whether they
    were only cancelled, which the counts do not tell apart."""
    if not rollup.total:
        return ("", "text")
    if rollup.failed:
        for state, sign, role in (("fail", "✗", "bad"), ("cancel", SIGNS["cancel"], "warn")):
            named = [safe(item.name) for item in items if item.state == state]
            if named:
                return (f"{sign} {named[0]}{f' +{len(named) - 1}' if len(named) > 1 else ''}", role)
        return (f"✗ {rollup.failed} failed", "bad")
    count = f"{rollup.passed}/{rollup.total}"
    return (f"◐ {count}", "warn") if rollup.pending else (f"✓ {count}", "good")


def verdicts_of(proposal: Proposal | ListedProposal) -> Part:
    """Returns the verdict of all reviewers together, as a part. A request for changes outweighs approvals."""
    standing = [reviewer for reviewer in proposal.reviewers if not reviewer.stale]
    if any(reviewer.state == "changes_requested" for reviewer in standing):
        return ("✗ changes", "bad")
    approved = sum(reviewer.state == "approved" for reviewer in standing)
    return (f"✓ {count(approved, 'approval')}", "good") if approved else ("", "text")
