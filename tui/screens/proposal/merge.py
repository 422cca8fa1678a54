"""The screen for merging a proposal: its checks and reviews, the possible strategies, and whether to delete
its branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from localstore.core.model.collaboration.check import SealChecks
from localstore.core.model.collaboration.proposal import Proposal
from tui.actions import Action
from tui.screens.base import Over
from tui.screens.proposal.words import BLOCKS, checks_of, sign_of_check, verdicts_of
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence

WAYS = (
    ("", "fast-forward", "move the base forward to the branch"),
    ("--squash", "squash", "one seal of the branch"),
    ("--rebase", "rebase", "its seals again, on the base"),
    ("--merge", "merge", "a seal with two parents"),
)
REPLACING = ("--squash", "--rebase")  # ways that make other seals: the base does not lead to the branch's
NAME = 14  # columns of the name of a fact or a way


class Merge(Over):
    """Calls `chosen` with the option of the strategy, and whether to delete the branch, after it has
    closed."""

    ACTIONS = (
        Action("open", ("enter",), "merge this way", "svc pr merge {n}", "signed_in", footer=True),
        Action("branch", ("d",), "delete or keep the branch", footer=True),
    )

    def __init__(
        self, proposal: Proposal, checks: SealChecks | None, chosen: Callable[[str, bool], None]
    ) -> None:
        super().__init__()
        self._proposal, self._checks, self._chosen = proposal, checks, chosen
        self._deletes = False

    def content(self) -> ComposeResult:
        yield Lines(id="merge")

    def title_parts(self) -> Sequence[Part]:
        return ((f" merge #{self._proposal.number}", "title"), (f"  {safe(self._proposal.title)}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()

    def news(self) -> None:
        """Does nothing: the merge must be of what was shown."""

    def paint(self) -> None:
        proposal, checks = self._proposal, self._checks
        check, verdict = (
            checks_of(proposal.checks, checks.items if checks is not None else ()),
            verdicts_of(proposal),
        )
        rows = [
            _fact("into", (safe(proposal.base), "accent"), ("  ←  ", "dim"), (safe(proposal.head), "accent")),
            _fact("checks", check if check[0] else ("none", "dim")),
        ]
        for it in checks.items if checks is not None else ():
            if it.state not in ("pass", "skip"):
                must: Part = ("  required" if it.required else "", "dim")
                rows.append(_fact("", sign_of_check(it), (f" {safe(it.name)}", "text"), must))
        rows += [
            _fact("reviews", verdict if verdict[0] else ("no verdict", "dim")),
            _fact("conflicts", *_conflicts(proposal)),
            Item(None, (("", "text"),)),
        ]
        behind = proposal.merge_state == "behind"
        rows += [_way(way, name, words, behind and not way) for way, name, words in WAYS]
        box = "☑" if self._deletes else "☐"
        rows += [
            Item(None, (("", "text"),)),
            Item(
                None,
                ((f"{box} delete the branch {safe(proposal.head)} afterwards", "text"), ("  d", "accent")),
            ),
        ]
        if self._deletes and not proposal.cross_repository:
            back = f"svc repo branch {safe(proposal.head)} --from {proposal.head_seal[:12]}"
            rows += [
                Item(None, (("  after squash or rebase no branch leads to its own seals;", "warn"),)),
                Item(None, ((f"  {back}", "text"), (" makes it again", "warn"))),
            ]
        self.query_one("#merge", Lines).show(sequence(rows))

    def do_branch(self) -> None:
        self._deletes = not self._deletes
        self.paint()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        self.app.pop_screen()
        self._chosen(str(event.key), self._deletes)

    def do_back(self) -> None:
        self.app.pop_screen()


def lost_with(proposal: Proposal) -> str:
    """What is lost with the branch when the base does not lead to its seals, as a question."""
    return f"delete {safe(proposal.head)} too? its own seals are then on no branch."


def _fact(name: str, *parts: Part) -> Item:
    return Item(None, ((f"{name:<{NAME}}", "dim"), *parts))


def _conflicts(proposal: Proposal) -> tuple[Part, ...]:
    if proposal.merge_state == "behind":
        return (("none; its base has moved on", "warn"),)
    return (("✓ none", "good"),) if proposal.merge_state == "clean" else ((proposal.merge_state, "warn"),)


def _way(way: str, name: str, words: str, refused: bool) -> Item:
    """A row for a strategy. One that the server refuses cannot be chosen, and says why."""
    if refused:
        return Item(None, ((f"{name:<{NAME}}", "dim"), (f"not possible: {BLOCKS['behind']}", "warn")))
    return Item(way, ((f"{name:<{NAME}}", "title"), (words, "text")))
