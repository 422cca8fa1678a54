"""The card for merging a proposal. It shows the checks and reviews, the possible strategies, and whether the
branch will be deleted. If the proposal cannot be merged now, it shows why and what can be done."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from localstore.core.model.check import SealChecks
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from tui import contents
from tui.actions import Action
from tui.asked import DONE
from tui.screens.card import Card
from tui.screens.proposal.words import (
    BLOCKS,
    WAYS,
    checks_of,
    conflict_way_out,
    is_behind,
    merges_when,
    must_pass,
    reasons_against,
    says_all_reasons,
    sign_of_check,
    signed_merge,
    verdicts_of,
)
from tui.text import Part, hang, safe
from tui.widgets.lines import Item, Lines, sequence
from tui.wording import in_app

REPLACING = ("--squash", "--rebase")  # ways that make other seals: the base does not lead to the branch's
CHECKOUT, STOP = "checkout", "--disable-auto"  # what enter does where no way can go
NAME = 14  # columns of the name of a fact or a way
BACK = 2  # rows that say how a deleted branch is made again; the card keeps room for them, so that it stays
BLANK = Item(None, (("", "text"),))


class Merge(Card):
    """The card that merges a proposal with the head that it had when the card opened. If the head has moved
    since, the server refuses the merge. The card stays open and shows the result. If a condition of the merge
    is not met yet, the user can sign the merge now, and it happens by itself later."""

    SHARE = 80
    ACTIONS = (
        Action("open", ("enter",), "merge this way", "svc pr merge {n}", "signed_in", footer=True),
        Action("branch", ("d",), "delete or keep the branch", footer=True),
    )

    def __init__(self, proposal: Proposal, checks: SealChecks | None, repo: Repo) -> None:
        super().__init__()
        self._proposal, self._checks, self._repo = proposal, checks, repo
        self._deletes = False
        self._moved_to = ""  # the head by now, if it is another one
        self._result: list[Item] = []  # how the merge went, instead of the ways

    def label_of(self, action: Action) -> str:
        """Returns what the key of an action does for the row under the cursor. Returns "" once the merge was
        carried out."""
        if action.id not in ("open", "branch"):
            return super().label_of(action)
        against = reasons_against(self._proposal)
        if (
            self._result
            or self.lines is None
            or self.lines.key is None
            or (against and action.id == "branch")
        ):
            return ""
        if action.id == "branch":
            return "keep the branch" if self._deletes else "delete the branch"
        by_itself = {CHECKOUT: "check it out", STOP: "cancel the merge that waits"}
        return by_itself.get(str(self.lines.key), "sign it now" if against else action.label)

    def content(self) -> ComposeResult:
        yield Lines(id="merge")

    def title_parts(self) -> Sequence[Part]:
        return ((f" merge #{self._proposal.number}", "title"), (f"  {safe(self._proposal.title)}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.news()  # the screen below may not know yet what its user has just approved

    def news(self) -> None:
        """Called when something may have changed on the server. If the head has moved, the card says so. It
        remains about the head that it shows."""
        self.svc.load(contents.proposal(self._repo.id, self._proposal.number), self._compare)

    def _compare(self, proposal: Proposal, at: float) -> None:
        moved = proposal.head_seal != self._proposal.head_seal and proposal.state == "open"
        self._moved_to = proposal.head_seal if moved else ""
        if proposal.head_seal == self._proposal.head_seal and proposal.state == "open":
            self._proposal = proposal  # what blocks it may be gone
        self.paint()

    def paint(self) -> None:
        proposal = self._proposal
        threads = proposal.threads.open
        rows = [
            _fact("into", (safe(proposal.base), "accent"), ("  ←  ", "dim"), (safe(proposal.head), "accent")),
            _fact("head", (proposal.head_seal[:12], "accent")),
            *self._check_rows(),
            *self._verdict_rows(),
            *([_fact("threads", (f"{threads} open", "warn"))] if threads else []),
            BLANK,
            *(self._result or self._refused_rows() or self._way_rows()),
        ]
        self.query_one("#merge", Lines).show(sequence(rows))
        offers_branch = not self._result and not reasons_against(proposal)
        self.fit(len(rows) + (BACK if offers_branch and not self._deletes else 0))
        self.show_keys()

    def _check_rows(self) -> list[Item]:
        items = self._checks.items if self._checks is not None else ()
        check = checks_of(self._proposal.checks, items)
        rows = [_fact("checks", check if check[0] else ("none", "dim"))]
        for it in items:
            if it.state not in ("pass", "skip"):
                must = must_pass(it, self._proposal)
                rows.append(_fact("", sign_of_check(it), (f" {safe(it.name)}", "text"), must))
        return rows

    def _verdict_rows(self) -> list[Item]:
        verdict = verdicts_of(self._proposal)
        rows = [
            _fact("reviews", verdict if verdict[0] else ("no verdict", "dim")),
            _fact("conflicts", *_conflicts(self._proposal)),
        ]
        if self._moved_to:
            words = f"somebody pushed {self._moved_to[:12]} since; esc, and look at it again"
            rows.append(_fact("moved", (words, "bad")))
        return rows

    def _refused_rows(self) -> list[Item]:
        """Returns rows that say why the proposal cannot be merged now, and what can be done. Returns [] if it
        can be merged."""
        proposal = self._proposal
        against = reasons_against(proposal)
        if not against:
            return []
        when = merges_when(proposal) if proposal.merge_state != "conflicts" else ""
        sign: Part = ("◌ ", "dim") if when else ("✗ ", "bad")
        rows = [Item(None, (("It cannot be merged now", "bad"),))]
        if when:
            rows = [Item(None, ((row, "warn"),)) for row in hang(when, self._room)]
            rows.append(Item(None, (("  ", "text"), *signed_merge(proposal, self.svc.clock()))))
        for reason in () if says_all_reasons(proposal) else against:
            first, *rest = hang(reason, self._room - 2)
            rows.append(Item(None, (sign, (first, "text"))))
            rows += [Item(None, (("  ", "text"), (row, "text"))) for row in rest]
        return [*rows, BLANK, *self._ways_on()]

    def _ways_on(self) -> list[Item]:
        """Returns the rows of what can be done about a proposal that cannot be merged now."""
        proposal = self._proposal
        if proposal.merge_state == "conflicts":
            helps = hang(conflict_way_out(proposal), self._room)
            rows = [_way(CHECKOUT, "check out", "its branch, into this folder", False)]
            return [*rows, *(Item(None, ((row, "dim"),)) for row in helps)]
        if proposal.auto_merge is not None:
            return [_way(STOP, "cancel it", "it then merges only when somebody does it", False)]
        rows = [Item(None, (("Sign the merge now; it lands as soon as nothing blocks it:", "dim"),))]
        return [*rows, *self._strategies()]

    @property
    def _room(self) -> int:
        """The number of columns of a row. It is known even before the card has been laid out."""
        return max(20, min(self.WIDTH, self.app.size.width - 4) - 5)

    def _strategies(self) -> list[Item]:
        behind = is_behind(self._proposal)
        return [_way(way, name, words, behind and not way) for way, name, words in WAYS]

    def _way_rows(self) -> list[Item]:
        proposal = self._proposal
        rows = self._strategies()
        box = "☑" if self._deletes else "☐"
        branch = f"{box} delete the branch {safe(proposal.head)} afterwards"
        rows += [Item(None, (("", "text"),)), Item(None, ((branch, "text"), ("  d", "accent")))]
        if self._deletes and not proposal.cross_repository:
            back = f":repo branch {safe(proposal.head)} --from {proposal.head_seal[:12]}"
            rows += [
                Item(None, (("  after squash or rebase no branch leads to its own seals;", "warn"),)),
                Item(None, ((f"  {back}", "text"), (" makes it again", "warn"))),
            ]
        return rows

    def do_branch(self) -> None:
        if not self._result and not reasons_against(self._proposal):
            self._deletes = not self._deletes
            self.paint()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        proposal, way = self._proposal, str(event.key)
        if way == CHECKOUT:
            self._leave_for(CHECKOUT)
            return
        number = str(proposal.number)
        if way == STOP:
            self._merge(["pr", "merge", number, STOP, "-R", self._repo.full_name])
            return
        words = ["pr", "merge", number, "--head", proposal.head_seal, *([way] if way else [])]
        words += ["--auto"] if reasons_against(proposal) else []
        words += ["--delete-branch", "--yes"] if self._deletes else []
        words += ["-R", self._repo.full_name]
        if self._deletes and way in REPLACING and not proposal.cross_repository:
            # the command would ask, and it has no terminal to ask on
            self.confirm(lost_with(proposal), lambda: self._merge(words), destroys=True)
        else:
            self._merge(words)

    def _leave_for(self, action: str) -> None:
        """Close the card, and run an action of the screen below it."""
        below = self.below
        self.app.pop_screen()
        act = getattr(below, f"do_{action}", None)
        if act is not None:
            act()

    def _merge(self, words: list[str]) -> None:
        """Run the command that merges, and show its output in the card. `words`: the command line."""
        self.query_one("#merge", Lines).filter("")  # else it would hide how the merge goes
        self._result = [Item(None, (("◐ asking …" if STOP in words else "◐ merging …", "warn"),))]
        self.paint()
        self.svc.run_beside(words, self._show)

    def _show(self, text: str, state: Part) -> None:
        """Show the output of the command in the card. `state`: how the command has ended."""
        if not self.is_attached:
            return
        card = self.query_one("#merge", Lines)
        failed = state[0] != DONE
        text = in_app(text) if failed else text
        rows = [row for line in text.splitlines() for row in hang(line, max(20, card.size.width - 4))]
        sign: Part = ("✗ ", "bad") if failed else ("✓ ", "good")
        self._result = [
            Item(None, (sign if place == 0 else ("  ", "text"), (row, "text")))
            for place, row in enumerate(rows or [state[0]])
        ]
        self._result.append(Item(None, (("  esc leaves", "dim"),)))
        self.paint()
        self.below.do_refresh()  # the page behind says at once what it is now


def lost_with(proposal: Proposal) -> str:
    """Returns the question whether to delete the branch of the proposal too. It warns that the branch's own
    seals are then on no branch. It is asked for merge strategies that do not put these seals on the base."""
    return f"Delete {proposal.head} too? Its own seals are then on no branch."


def _fact(name: str, *parts: Part) -> Item:
    return Item(None, ((f"{name:<{NAME}}", "dim"), *parts))


def _conflicts(proposal: Proposal) -> tuple[Part, ...]:
    if proposal.merge_state == "behind" or (is_behind(proposal) and proposal.mergeable):
        return (("none; its base has moved on", "warn"),)
    if proposal.merge_state == "blocked" and not proposal.mergeable:
        return (("none known", "dim"),)
    if proposal.merge_state == "blocked":
        return (("✓ none", "good"),)
    return (("✓ none", "good"),) if proposal.merge_state == "clean" else ((proposal.merge_state, "warn"),)


def _way(way: str, name: str, words: str, refused: bool) -> Item:
    """Returns the row of a merge strategy. `way`: the strategy. `refused`: the server refuses it. In that
    case the row cannot be chosen, and says why."""
    if refused:
        return Item(None, ((f"{name:<{NAME}}", "dim"), (f"not possible: {BLOCKS['behind']}", "warn")))
    return Item(way, ((f"{name:<{NAME}}", "title"), (words, "text")))
