"""The form of a new proposal: branches, title, text, labels, people, reviewers, and whether it is a draft."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from localstore.core.model import proposal as proposals
from localstore.core.model.proposal import ProposalCreate
from localstore.core.model.repo import Repo
from tui.actions import Action
from tui.screens.split import SPLIT_ACTIONS
from tui.screens.talk.composing import Composing
from tui.text import Part, safe
from tui.widgets.lines import Item


class NewProposal(Composing):
    """The form of a new proposal. `head`: the branch to propose. `branches`: the branches that can be its
    base."""

    ACTIONS = (
        Action("open", ("enter",), "change", "svc pr create", "signed_in", footer=True),
        Action(
            "send", ("S", "ctrl+s"), "send", "svc pr create -t {title}", "signed_in", True, "proposal.create"
        ),
        Action("write", ("E",), "text in $EDITOR", "svc pr create", "signed_in"),
        Action("discard", ("D",), "discard", footer=True),
        *SPLIT_ACTIONS,
    )
    NOUN = FORM = "proposal"

    def __init__(
        self,
        repo: Repo,
        head: str,
        branches: Sequence[str],
        people: Sequence[str],
        begun: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(repo, people, begun)
        self.MORE = self._head = head
        self._branches = [name for name in branches if name != head]

    @property
    def _base(self) -> str:
        return self.value("base") or self.repo.default_branch

    def fields(self) -> list[tuple[str, tuple[Part, ...], Callable[[], None]]]:
        branches: tuple[Part, ...] = (
            (safe(self._base), "accent"),
            ("  ←  ", "dim"),
            (safe(self._head), "accent"),
        )
        draft: Part = ("✓ yes", "good") if self._values.get("draft") else ("no", "dim")
        return [
            self.title_field(),
            ("into", branches, self._choose_base),
            self.text_field(),
            self.people_field("reviewers", "reviewers", "proposal.create"),
            self.labels_field(),
            self.people_field("people", "assignees", "issue.assign"),
            ("draft", (draft,), lambda: self.put("draft", not self._values.get("draft"))),
        ]

    def facts_of(self) -> list[Part]:
        state: Part = ("◌ draft", "dim") if self._values.get("draft") else ("○ open", "good")
        reviewers = [(f"  ? @{safe(handle)}", "person") for handle in self.names("reviewers")]
        branches: Part = (f"  {safe(self._base)} ← {safe(self._head)}", "accent")
        return [state, branches, *self.author_parts(), *reviewers]

    def _choose_base(self) -> None:
        from tui.screens.choose import Choose

        items = [Item(name, ((safe(name), "text"),)) for name in self._branches]
        self.app.push_screen(Choose("branch that it is for", items, lambda name: self.put("base", name)))

    def do_send(self) -> None:
        """Put the new proposal into the outbox and send it."""
        values = {**self.written(), "head": self._head, "base": self._base}
        self.queue_new(proposals.CREATE, ProposalCreate, values)
