"""The words and signs for states, such as those of a check: commands, the terminal app and web pages take
them from here. Also small forms of text that many messages have: a number with its noun, a first line."""

from __future__ import annotations

from collections.abc import Sequence

SIGNS = {
    "draft": "◌",
    "open": "○",
    "merged": "●",
    "closed": "⊘",
    "pass": "✓",
    "fail": "✗",
    "running": "◐",
    "queued": "◌",
    "skip": "–",
    "cancel": "⊘",
}
SIGNS_OF_ISSUES = {"open": "○", "closed": "✓"}
WAITS = {
    "draft": "it is a draft (svc pr ready)",
    "lock_writes": "its lock, which an owner takes away",
    "changes_requested": "a reviewer asked for changes and has to approve, or an admin dismisses the review",
    "checks_required": "its required checks have not passed (svc pr checks)",
    "unresolved_threads": "threads of its reviews are not resolved (svc pr threads)",
}
VERDICTS = {"approve": "approved", "request_changes": "asked for changes", "comment": "reviewed"}


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 file`, `3 files`. `plural`: the plural of the noun if it is irregular."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_line(message: str) -> str:
    """The first line of a message, such as a seal's. Empty lines at its start do not count."""
    return message.strip().partition("\n")[0]


def state_of_proposal(state: str, draft: bool) -> str:
    """The state of a proposal in one word: draft, open, merged or closed."""
    return "draft" if draft and state == "open" else state


def state_of_check(state: str, begun: bool) -> str:
    """The state of a check or run in one word. `state`: pass, fail, pending, skip or cancel. `begun`: whether
    the run has begun."""
    if state != "pending":
        return state
    return "running" if begun else "queued"


def reasons_to_wait(codes: Sequence[str], approvals: int = 0, missing: int = 0) -> list[str]:
    """The reasons why a proposal cannot be merged yet, in words. `codes`: the reasons as the relay names
    them. An unknown code (from a newer relay) is returned with spaces for underscores. `approvals`: how many
    approvals a merge needs; `missing`: how many of them the proposal lacks."""
    waits = WAITS | {"review_required": f"it needs {approvals_to_come(approvals, missing)}"}
    return [waits.get(code, code.replace("_", " ")) for code in codes]


def approvals_to_come(approvals: int, missing: int) -> str:
    """The approvals that a proposal waits for: `an approval`, `2 approvals`, `1 more approval (2 in all)`.
    With numbers of 0, which are unknown ones, `an approval`."""
    if approvals < 2:
        return "an approval"
    if 0 < missing < approvals:
        return f"{missing} more {'approval' if missing == 1 else 'approvals'} ({approvals} in all)"
    return count(approvals, "approval")
