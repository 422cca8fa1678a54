"""The form that changes the title and the text of an issue or a proposal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from localstore.core.model import issue as issues
from localstore.core.model import proposal as proposals
from localstore.core.model.issue import Issue, IssuePatch
from localstore.core.model.proposal import Proposal, ProposalPatch
from localstore.core.model.repo import Repo
from tui.actions import Action
from tui.screens.proposal.words import state_of
from tui.screens.talk.composing import Composing
from tui.screens.talk.previews import SIGNS
from tui.text import Part, ago, safe

WAS = "was"  # begins the names of what title and text were when the change began


class Editing(Composing):
    """The form that changes an issue or proposal. `mine`: the account is its author. If others have changed
    it since the draft began, the form says so before it overwrites their change."""

    IS_NEW = False
    ACTIONS = (
        Action("open", ("enter",), "change", "", "signed_in", footer=True),
        Action("send", ("S", "ctrl+s"), "save", "svc issue edit {n} -t TITLE -b TEXT", "signed_in", True),
        Action("write", ("E",), "text in $EDITOR", "", "signed_in"),
        Action("discard", ("D",), "discard", footer=True),
    )
    FORM = "edit"

    def __init__(self, repo: Repo, item: Issue | Proposal, mine: bool) -> None:
        super().__init__(repo)
        self._item, self._mine = item, mine
        self.NOUN = "issue" if isinstance(item, Issue) else "proposal"
        self.MORE = str(item.number)

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self._mine

    def command_of(self, action: Action) -> str:
        command = super().command_of(action)
        return command if isinstance(self._item, Issue) else command.replace("svc issue ", "svc pr ")

    def facts(self) -> dict[str, str]:
        return {"issue" if isinstance(self._item, Issue) else "pr": str(self._item.number)}

    def make_title(self) -> tuple[Part, ...]:
        return ((f"Edit {self.NOUN} #{self._item.number}", "title"),)

    def title_parts(self) -> Sequence[Part]:
        return (*super().title_parts(), (f" · {self._state[0]}", "text"))

    def paint(self) -> None:
        super().paint()
        self.show_frame()  # the state is in its title

    def begin(self) -> None:
        """Fill the form with the draft of an earlier change. If there is none, fill it with the present title
        and text."""
        now = {self.TITLE: self._item.title, self.BODY: self._item.body}
        if not self._values:
            self._values = {**now, **{f"{WAS} {name}": text for name, text in now.items()}}

    def fields(self) -> list[tuple[str, tuple[Part, ...], Callable[[], None]]]:
        changed = self._find_changes()
        rows = zip((self.TITLE, self.BODY), (self.title_field(), self.text_field()), strict=True)
        return [
            (name, (*value, ("  ~ changed", "warn")) if member in changed else value, change)
            for member, (name, value, change) in rows
        ]

    def facts_of(self) -> list[Part]:
        item = self._item
        sign = SIGNS[item.state] if isinstance(item, Issue) else state_of(item)
        who: list[Part] = [(f" @{safe(item.author.handle or '?')}", "person")]
        return [sign, *who, (f" {ago(item.created_at, self.svc.clock())}", "dim")]

    @property
    def _state(self) -> Part:
        """What the user has changed, as a part."""
        changed = ["text" if name == self.BODY else name for name in self._find_changes()]
        return (f"changed: {' and '.join(changed)}", "warn") if changed else ("nothing is changed yet", "dim")

    def notes(self) -> Sequence[Part]:
        if self._have_others_changed():
            return [("others changed it since you began: D, then begin again", "bad")]
        return ()

    def _find_changes(self) -> dict[str, str]:
        """Returns the values (title, text) that the user has changed, by name."""
        now = {self.TITLE: self._item.title, self.BODY: self._item.body}
        return {
            name: self.value(name) for name, text in now.items() if self.value(name).strip() != text.strip()
        }

    def _have_others_changed(self) -> bool:
        return (self.value(f"{WAS} {self.TITLE}"), self.value(f"{WAS} {self.BODY}")) != (
            self._item.title,
            self._item.body,
        )

    def do_send(self) -> None:
        """Put the changes into the outbox. If others have changed the issue or proposal since the user began
        to edit it, ask first."""
        changes: dict[str, Any] = dict(self._find_changes())
        if not changes:
            self.say("nothing is changed", "dim")
        elif self._have_others_changed():
            self.confirm(
                "Others changed it since you began. Replace theirs?",
                lambda: self._queue(changes),
                destroys=True,
            )
        else:
            self._queue(changes)

    def _queue(self, changes: dict[str, Any]) -> None:
        of_issue = isinstance(self._item, Issue)
        endpoint, body = (issues.UPDATE, IssuePatch) if of_issue else (proposals.UPDATE, ProposalPatch)
        self.queue_new(endpoint, body, changes, n=str(self._item.number))
