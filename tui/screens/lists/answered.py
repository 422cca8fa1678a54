"""The base of screens with rows of the inbox, which are answered in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tui.screens.split import SplitScreen

if TYPE_CHECKING:
    from localstore.core.model.inbox import InboxItem
    from tui.listed import ListedProposal
    from tui.text import Part

ASKED = 8  # repositories whose proposals are read for the rows of the inbox, those of the first rows
# For each answer: what is said until the server has it, and what the row says then.
ANSWERS: dict[str, tuple[str, Part]] = {
    "accept": ("accepting", ("accepted ✓", "good")),
    "grant": ("granting", ("granted ✓", "good")),
    "decline": ("declining", ("", "dim")),  # the row goes
}


def ignore(error: BaseException) -> None:
    """Does nothing, because the rows say enough without the answer."""


class Answered(SplitScreen):
    """A screen with rows of the inbox. A row that is accepted or granted says so, and stays until the screen
    is left, although the server lists it no longer. A row that is declined goes at once."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[str, Part] = {}  # what became of rows that are answered, by their ids
        self._leaves = ""  # the row that the cursor leaves as soon as there is one below it
        self._proposals: dict[str, dict[int, ListedProposal]] = {}  # open ones, by repository and number

    def rest(self) -> None:
        if self._leaves and self.listed.key == self._leaves:
            self.listed.move(1)
        if self.listed.key != self._leaves:
            self._leaves = ""
        super().rest()

    def read_proposals(self, items: Sequence[InboxItem]) -> None:
        """Read how the open proposals among these rows stand, with one request for each repository."""
        repo_ids = dict.fromkeys(
            item.repo.id
            for item in items
            if item.repo is not None and item.subject.kind == "proposal" and item.subject.state == "open"
        )
        if repo_ids:
            self.call_after_refresh(lambda: self._read_proposals(list(repo_ids)[:ASKED]))

    def _read_proposals(self, repo_ids: Sequence[str]) -> None:
        from tui import contents  # which the first screen does not need

        def learn(repo_id: str, listed: list[ListedProposal], at: float) -> None:
            by_number = {proposal.number: proposal for proposal in listed}
            if self.remains and self._proposals.get(repo_id) != by_number:
                self._proposals[repo_id] = by_number
                self.paint()

        for repo_id in repo_ids:
            self.svc.load(contents.newest_proposals(repo_id), partial(learn, repo_id), ignore)

    def find_proposals(self, items: Sequence[InboxItem]) -> Mapping[str, ListedProposal]:
        """Returns the open proposals that these rows are about, by the id of the row. Proposals that were not
        read yet are left out."""
        by_item: dict[str, ListedProposal] = {}
        for item in items:
            if item.repo is not None and item.subject.state == "open":
                proposal = self._proposals.get(item.repo.id, {}).get(item.subject.number or 0)
                if proposal is not None:
                    by_item[item.id] = proposal
        return by_item

    def keep_answered(self, now: list[InboxItem], before: list[InboxItem]) -> list[InboxItem]:
        """Returns the rows that the inbox shows: the rows that the server lists now, and the rows that the
        user has answered on this screen. The server does not list answered rows any more, but they keep their
        places here. Declined rows are left out, although the server still lists them for some moments.
        `before`: the rows that were shown until now."""
        listed = {item.id for item in now}
        items = list(now)
        for place, item in enumerate(before):
            if item.id in self.given and item.id not in listed:
                items.insert(place, item)
        return self.without_declined(items)

    def without_declined(self, items: list[InboxItem]) -> list[InboxItem]:
        """Returns these rows without those that were declined on this or another screen."""
        return [item for item in items if (item.id, item.updated_at) not in self.svc.declined]

    def drop_declined(self) -> None:
        """Called when a row was declined. Takes the declined rows out of the list, and paints it."""
        raise NotImplementedError

    def give(self, item: InboxItem, answer: str, words: list[str]) -> None:
        """Give an answer to a row, by a command of svc."""
        doing, done = ANSWERS[answer]
        self.given[item.id] = (f"◐ {doing}", "dim")
        self.paint()

        def mark_row(succeeded: bool) -> None:
            if succeeded and answer == "decline":
                del self.given[item.id]
                self.svc.declined.add((item.id, item.updated_at))
                if self.remains:
                    self.drop_declined()
                return
            if succeeded:
                self.given[item.id] = done
            else:
                self.given.pop(item.id, None)
            self._leaves = item.id if succeeded else ""
            if self.remains:
                self.paint()

        self.svc.run_here(words, doing, mark_row)
