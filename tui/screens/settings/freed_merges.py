"""What merges at once because a rule or the required checks ask for less: named in a question before the
change, and in the last line after it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from localstore.core.model.proposal import Proposal
from svc.flows.proposal.freed import Asked, Freed, Waiting, asks_less, find_freed, say_freed, say_merged
from tui import contents
from tui.screens.settings import reads

if TYPE_CHECKING:
    from localstore.core.model.repo import Repo
    from tui.screens.base import Base

LOOKS, PAUSE = 12, 1.0  # looks at whether merges have landed, and seconds between two of them
STAYS = "What has merged stays merged."
UNREAD = "Proposals that wait with auto merge may merge at once."


class FreedMerges:
    """The merges of a repository that are signed in advance. `on`: the screen that asks and says. `landed`:
    called after merges have landed."""

    def __init__(self, on: Base, repo: Repo, landed: Callable[[], None]) -> None:
        self._on, self._repo, self._landed = on, repo, landed
        self._waiting: list[Waiting] | None = None  # until they are read
        self._asked_at = 0.0  # in seconds since 1970
        self._expected: list[Freed] = []  # merges that a change has freed
        self.merged: list[Freed] = []  # those that have landed

    def load(self, seldom: float = 0.0) -> None:
        """Request the merges that wait, unless this was done within the last `seldom` seconds."""
        now = self._on.svc.clock()
        if now >= self._asked_at + seldom:
            self._asked_at = now
            self._on.svc.load(reads.waiting_merges(self._repo.id), self._take)

    def _take(self, waiting: list[Waiting], at: float) -> None:
        self._waiting = waiting

    def confirm(
        self, before: Asked, after: Asked, then: Callable[[], None], question: str = "", end: str = "Save it?"
    ) -> None:
        """Call `then` after the user has agreed to what merges at once. If nothing merges, call it at once
        unless there is a `question` of its own. Before the merges that wait are read, each change that asks
        for less may let some merge. `end`: what follows the names of what merges."""
        freed = find_freed(self._waiting or (), before, after)
        is_unknown = self._waiting is None and asks_less(before, after)
        names = UNREAD if is_unknown else say_freed(freed)

        def go() -> None:
            self._expected, self.merged = freed, []
            then()
            self._look_later(LOOKS)

        if question or names:
            stays = STAYS if names else ""
            words = " ".join(part for part in (question, names, stays, end) if part)
            self._on.confirm(words, go, destroys=bool(freed))
        else:
            go()

    def _look_later(self, looks: int) -> None:
        if self._expected and looks and self._on.is_attached:
            self._on.set_timer(PAUSE, partial(self._look, looks - 1))

    def _look(self, looks: int) -> None:
        for merge in self._expected:
            self._on.svc.load(
                contents.proposal(self._repo.id, merge.number), partial(self._take_proposal, merge)
            )
        self._look_later(looks)

    def _take_proposal(self, freed: Freed, proposal: Proposal, at: float) -> None:
        if freed not in self._expected or proposal.state != "merged":
            return
        self._expected.remove(freed)
        self.merged.append(freed)
        self._on.say(say_merged(self.merged, self.merged), "good")
        self._landed()
