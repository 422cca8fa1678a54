"""Previews of issues and proposals for lists, and the parts for their labels."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from localstore.core.model.check import SealChecks
from localstore.core.model.issue import Comment, Issue
from localstore.core.model.label import Label
from localstore.core.model.proposal import Proposal, Reviewer
from localstore.core.words import SIGNS_OF_ISSUES, count
from tui import contents
from tui.reads import Read
from tui.screens.facts import fact_rows
from tui.screens.first_steps import missing
from tui.screens.proposal.words import (
    BLOCKS,
    checks_of,
    merges_when,
    must_pass,
    refuses_merge,
    sign_of_check,
    signed_merge,
    state_of,
    verdicts_of,
)
from tui.text import Part, ago, fold, safe
from tui.theme import label_role
from tui.widgets.lines import Item
from tui.wording import UNANSWERED

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.split import Panes

Line = tuple[Part, ...]
SIGNS: dict[str, Part] = {
    name: (f"{SIGNS_OF_ISSUES[name]} {name:6}", style)
    for name, style in (("open", "good"), ("closed", "dim"))
}


COMMENTS = 4  # that are previewed, the newest
COMMENT_LINES, COMMENT_SIZE = 30, 1024  # lines and characters of one
Colours = Mapping[str, str]  # label → its colour, six hex digits


def colours_of(labels: Sequence[Label]) -> Colours:
    return {label.name: label.color for label in labels}


def label_parts(names: Sequence[str], colours: Colours) -> list[Part]:
    """Returns labels as parts. A dot in its colour comes before the name of each label."""
    parts: list[Part] = []
    for name in names:
        parts += [("  ● ", label_role(colours.get(name, ""))), (safe(name), "text")]
    return parts


def first_left(parts: Sequence[Part]) -> list[Part]:
    """Returns the parts without the blanks at the beginning of the first part."""
    return [(parts[0][0].lstrip(), parts[0][1]), *parts[1:]] if parts else []


def preview_talk(
    panes: Panes, key: Hashable, repo_id: str, kind: str, number: int, head: Sequence[Part] = ()
) -> None:
    """Show the preview of an issue or a proposal, and add its comments as soon as they have arrived. `key`:
    the key of its row. `kind`: issue or proposal. `head`: what the list knows about it, which is shown if
    the rest cannot be read."""
    svc = panes.front.svc
    comments: list[Comment] = []
    loaded: list[Issue | Proposal] = []
    checks: list[SealChecks] = []

    def paint() -> None:
        cached = svc.client.read_cached(contents.labels(repo_id))
        colours = colours_of(cached[0]) if cached is not None else {}
        if loaded:
            width, now = panes.preview_width, svc.clock()
            rows = talk_rows(panes, loaded[-1], comments, colours, width, now)
            facts = facts_of(loaded[-1], checks[-1] if checks else None, colours, now)
            panes.show_preview(key, f"#{number}", rows, facts)

    def paint_one(item: Issue | Proposal, at: float) -> None:
        loaded.append(item)
        if item.comments and not comments:
            cached = svc.client.read_cached(contents.comments(repo_id, number))
            comments[:] = cached[0] if cached is not None else []
            svc.load(contents.comments(repo_id, number), paint_comments)
        if isinstance(item, Proposal) and panes.facts_shown and not checks:
            svc.load(contents.seal_checks(repo_id, item.head_seal), paint_checks)
        paint()

    def paint_checks(read: SealChecks, at: float) -> None:
        if [read] != checks:
            checks[:] = [read]
            paint()

    def paint_comments(fetched: list[Comment], at: float) -> None:
        if fetched != comments:
            comments[:] = fetched
            paint()

    def show_known(error: BaseException | None = None) -> None:
        if not loaded:
            panes.show_preview(key, f"#{number}", _unread_rows(head, error, panes.preview_width))

    is_issue = kind == "issue"
    read: Read[Any] = contents.issue(repo_id, number) if is_issue else contents.proposal(repo_id, number)
    svc.load(read, paint_one, show_known, show_known)


def _unread_rows(head: Sequence[Part], error: BaseException | None, width: int) -> list[Line]:
    """Returns what is shown of an issue or a proposal that was not read. `head`: what the list knows about
    it. `error`: why it was not read, None if the server has not answered yet."""
    above = [*fold(head, width), (("", "text"),)] if head else []
    return [*above, *(missing(error, width) if error is not None else fold([(UNANSWERED, "dim")], width))]


def facts_of(item: Issue | Proposal, checks: SealChecks | None, colours: Colours, now: float) -> list[Item]:
    """Returns the facts about an issue or a proposal as rows. `checks`: the checks of the proposal's head,
    None while they are unknown. `colours`: the colours of labels. `now`: the present time in seconds since
    1970."""
    facts = people_facts(item, colours, now)
    return facts if isinstance(item, Issue) else [*proposal_facts(item, checks), *facts]


def people_facts(item: Issue | Proposal, colours: Colours, now: float) -> list[Item]:
    """Returns rows with the author, labels, assignees and number of comments, and with the time of the last
    change."""
    labels = [first_left(label_parts([label.name], colours)) for label in item.labels]
    people: list[Line] = [((f"@{safe(person.handle or '?')}", "person"),) for person in item.assignees]
    opened: Line = (
        (f"@{safe(item.author.handle or '?')} ", "person"),
        (ago(item.created_at, now), "text"),
    )
    return [
        *fact_rows("opened", opened),
        *fact_rows("labels", *labels),
        *fact_rows("assigned", *people),
        *fact_rows("comments", [(str(item.comments or ""), "text")]),
        *fact_rows("changed", [(ago(item.updated_at, now), "text")]),
    ]


def proposal_facts(proposal: Proposal, checks: SealChecks | None) -> list[Item]:
    """Returns rows with the branches, checks and reviewers of a proposal. They say what its merge waits for
    if the head of the preview does not."""
    rollup: Line = (checks_of(proposal.checks, checks.items if checks is not None else ()),)
    each: list[Line] = [
        (
            sign_of_check(check),
            (f" {safe(check.name)}", "text"),
            must_pass(check, proposal),
        )
        for check in (checks.items if checks is not None else ())
    ]
    reason = merges_when(proposal) or refuses_merge(proposal)
    waits = "" if reason else BLOCKS.get(proposal.merge_state, "")
    return [
        *fact_rows("into", [(safe(proposal.base), "accent"), (f"  ← {safe(proposal.head)}", "accent")]),
        *fact_rows("merge", [(safe(waits) if proposal.state == "open" else "", "warn")]),
        *fact_rows("checks", *(each or [rollup])),
        *fact_rows("reviewers", *(reviewer_line(reviewer) for reviewer in proposal.reviewers)),
        *fact_rows("closes", [("  ".join(f"#{number}" for number in proposal.closes), "accent")]),
    ]


VERDICT_SIGNS: dict[str, Part] = {
    "approved": ("✓ ", "good"),
    "changes_requested": ("✗ ", "bad"),
    "requested": ("? ", "warn"),
}
"""What a reviewer said → its sign; others said something without a verdict."""


def reviewer_line(reviewer: Reviewer) -> Line:
    """Returns a reviewer and their verdict, as parts of a line."""
    sign = VERDICT_SIGNS.get(reviewer.state, ("· ", "dim"))
    words = f"  {reviewer.state.replace('_', ' ')}{', stale' if reviewer.stale else ''}"
    return sign, (f"@{safe(reviewer.who.handle or '?')}", "person"), (words, "dim")


def talk_rows(
    panes: Panes,
    item: Issue | Proposal,
    comments: Sequence[Comment],
    colours: Colours,
    width: int,
    now: float,
) -> list[Row | Line]:
    """Returns the rows of a preview: the head, the text and, if there is room for them, the newest
    comments."""
    rows: list[Row | Line] = []
    if isinstance(item, Issue):
        rows += head_of_issue(item, width, now, None if panes.facts_shown else colours)
    else:
        rows += head_of_proposal(item, width, now, None if panes.facts_shown else colours)
    rows += panes.text_rows(item.body) if item.body.strip() else [(("no text", "dim"),)]
    if panes.fills(rows):
        return rows
    earlier = len(comments) - COMMENTS
    if earlier > 0:
        words = f"{count(earlier, 'earlier comment')}: enter"
        rows += [(("", "text"),), ((words, "dim"),)]
    for comment in comments[-COMMENTS:]:
        rows += comment_preview(comment, panes.text_rows(comment.body, COMMENT_LINES, COMMENT_SIZE), now)
    return rows


def head_of_issue(issue: Issue, width: int, now: float, colours: Colours | None) -> list[Line]:
    """Returns rows about an issue: its title, state, author, labels and people. `colours`: the colours of
    labels. If it is None, the labels and people are left out, because a separate column shows them."""
    facts = [SIGNS[issue.state], *_say_opening(issue, now)]
    return [
        *_title(issue.title, width),
        *fold(facts, width),
        *(_labels(issue, width, colours) if colours is not None else ()),
        (("", "text"),),
    ]


def head_of_proposal(proposal: Proposal, width: int, now: float, colours: Colours | None) -> list[Line]:
    """Returns rows about a proposal: its title, state, branches, checks, verdicts, labels, and what hinders a
    merge. `colours`: the colours of labels. If it is None, the labels are left out, because a separate column
    shows them."""
    check, verdict = checks_of(proposal.checks), verdicts_of(proposal)
    facts = [
        state_of(proposal),
        (f"  {safe(proposal.base)} ← {safe(proposal.head)}", "accent"),
        *_say_opening(proposal, now),
        (f"  {check[0]}" if check[0] else "", check[1]),
        (f"  {verdict[0]}" if verdict[0] else "", verdict[1]),
    ]
    rows = [*_title(proposal.title, width), *fold(facts, width)]
    rows += _labels(proposal, width, colours) if colours is not None else []
    why = refuses_merge(proposal) if proposal.state == "open" else ""
    when = merges_when(proposal)
    if when:
        rows += fold([(f"{when}  ", "warn"), *signed_merge(proposal, now)], width)
    return [*rows, *(fold([(safe(why), "warn")], width) if why else []), (("", "text"),)]


def comment_preview(comment: Comment, rows: Sequence[Row], now: float) -> list[Row | Line]:
    """Returns the rows of a comment in a preview: its author and age, and below them the `rows` of its
    text."""
    who = f"@{safe(comment.author.handle or '?')}"
    head = (("── ", "line"), (who, "person"), (f" · {ago(comment.created_at, now)}", "dim"))
    return [(("", "text"),), head, *rows]


def _title(title: str, width: int) -> list[Line]:
    return fold([(safe(title), "title")], width)


def _say_opening(item: Issue | Proposal, now: float) -> list[Part]:
    return [(f"  @{safe(item.author.handle or '?')}", "person"), (f" {ago(item.created_at, now)}", "dim")]


def _labels(item: Issue | Proposal, width: int, colours: Colours) -> list[Line]:
    labels = first_left(label_parts([label.name for label in item.labels], colours))
    people = [
        (f"{'  ' if labels else ''}→ @{safe(person.handle or '?')}", "person") for person in item.assignees
    ]
    return fold([*labels, *people], width) if labels or people else []
