"""Verdicts on a proposal, and the comments that are published with a verdict. The screens of the proposal and
of its files use this."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from localstore.core.model import review as reviews
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.review import ReviewCreate, Verdict
from localstore.core.model.thread import Thread
from localstore.core.words import count
from tui.actions import Action
from tui.drafts import name_draft
from tui.screens.base import Base


def _action(id: str, key: str, label: str, command: str, footer: bool = False) -> Action:
    return Action(
        id, tuple(key.split()), label, f"svc pr review {{n}} {command}", "signed_in", footer, "review.create"
    )


VERDICTS = (
    _action("approve", "A", "approve", "--approve", True),
    _action("changes", "X R", "request changes", "--request-changes -b TEXT"),
    _action("remark", "S", "review without a verdict", "--comment -b TEXT"),
)


def waiting(threads: Sequence[Thread]) -> int:
    """Returns how many comments of the account are unpublished. They are published with its review."""
    return sum(comment.draft for thread in threads for comment in thread.comments)


class Reviewing(Base):
    """A screen about a proposal of the repository `repo`. The user can give a verdict on it."""

    repo: Repo

    def actions(self) -> tuple[Action, ...]:
        """Returns the actions. Approving is left out on the user's own proposals, because nobody may approve
        their own."""
        actions = super().actions()
        if not self.subject()[1]:
            return actions
        return tuple(
            msgspec.structs.replace(action, footer=False) if action.id == "approve" else action
            for action in actions
        )

    def get_proposal(self) -> Proposal | None:
        """The proposal on the screen, None until it is loaded."""
        raise NotImplementedError

    def do_merge(self) -> None:
        """Open the card that merges the proposal. If the proposal cannot be merged, say why."""
        raise NotImplementedError

    def pending(self) -> int:
        """The number of comments that are published with the next review."""
        raise NotImplementedError

    def do_approve(self) -> None:
        self._ask_verdict("approve", "approve #{}, with or without words")

    def do_changes(self) -> None:
        self._ask_verdict("request_changes", "changes on #{}: what is to change")

    def do_remark(self) -> None:
        self._ask_verdict("comment", "review #{} without a verdict: what to say")

    def _ask_verdict(self, verdict: Verdict, words: str) -> None:
        """Ask for the text of a verdict, and send the verdict. `words`: the question, in which the number of
        the proposal is filled in."""
        proposal = self.get_proposal()
        why = _why_not(
            proposal, verdict, proposal is not None and proposal.author.handle == self.svc.client.account
        )
        if proposal is None or why:
            self.say(why, "warn")
            return
        pending = self.pending()
        with_it = f" ({count(pending, 'comment')} with it)" if pending else ""

        def done(text: str) -> None:
            self._review(proposal, verdict, text)

        self.write(
            words.format(proposal.number) + with_it,
            done,
            name_draft(self.repo.id, proposal.number, "verdict"),
            blank=True,
        )

    def _review(self, proposal: Proposal, verdict: Verdict, text: str) -> None:
        if not text.strip() and (
            verdict == "request_changes" or (verdict == "comment" and not self.pending())
        ):
            self.say("say what is to change" if verdict == "request_changes" else "say something", "warn")
            return
        body = ReviewCreate(verdict=verdict, body=text.strip(), seal_id=proposal.head_seal)
        self.svc.outbox.act(
            reviews.CREATE, body, about=self.repo.full_name, id=self.repo.id, n=str(proposal.number)
        )


def _why_not(proposal: Proposal | None, verdict: Verdict, mine: bool) -> str:
    if proposal is None:
        return "it is not here yet"
    if proposal.state != "open":
        return f"#{proposal.number} is {proposal.state}"
    if verdict == "comment":
        return ""
    if mine:
        return "nobody gives a verdict on a proposal of their own; c comments"
    return "it is a draft; its author says when it is ready" if proposal.draft else ""
