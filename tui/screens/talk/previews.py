"""What the list of issues and proposals previews of a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from localstore.core.model.collaboration.issue import Comment, Issue
from localstore.core.model.collaboration.proposal import Proposal
from tui.screens.proposal.words import checks_of, refuses_merge, state_of, verdicts_of
from tui.text import Part, ago, folded, safe

if TYPE_CHECKING:
    from tui.markdown.words import Row

Line = tuple[Part, ...]
SIGNS: dict[str, Part] = {"open": ("○ open  ", "good"), "closed": ("✓ closed", "dim")}


def head_of_issue(issue: Issue, width: int, now: float) -> list[Line]:
    """Title, state, author, labels and people."""
    facts = [SIGNS[issue.state], *_opened(issue, now)]
    return [*_title(issue.title, width), *folded(facts, width), *_labels(issue, width), (("", "text"),)]


def head_of_proposal(one: Proposal, width: int, now: float) -> list[Line]:
    """Title, state, branches, checks, verdicts, labels, and what keeps it from being merged."""
    check, verdict = checks_of(one.checks), verdicts_of(one)
    facts = [
        state_of(one),
        (f"  {safe(one.base)} ← {safe(one.head)}", "accent"),
        *_opened(one, now),
        (f"  {check[0]}" if check[0] else "", check[1]),
        (f"  {verdict[0]}" if verdict[0] else "", verdict[1]),
    ]
    rows = [*_title(one.title, width), *folded(facts, width), *_labels(one, width)]
    why = refuses_merge(one) if one.state == "open" else ""
    return [*rows, *(folded([(safe(why), "warn")], width) if why else []), (("", "text"),)]


def said(comment: Comment, rows: Sequence[Row], now: float) -> list[Row | Line]:
    """A comment."""
    who = f"@{safe(comment.author.handle or '?')}"
    return [(("", "text"),), ((f"── {who}", "person"), (f" {ago(comment.created_at, now)}", "dim")), *rows]


def _title(title: str, width: int) -> list[Line]:
    return folded([(safe(title), "title")], width)


def _opened(one: Issue | Proposal, now: float) -> list[Part]:
    return [(f"  @{safe(one.author.handle or '?')}", "person"), (f" {ago(one.created_at, now)}", "dim")]


def _labels(one: Issue | Proposal, width: int) -> list[Line]:
    labels = [(f"● {safe(label.name)}  ", "name") for label in one.labels]
    people = [(f"→ @{safe(person.handle or '?')} ", "person") for person in one.assignees]
    return folded([*labels, *people], width) if labels or people else []
