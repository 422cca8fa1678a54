"""What a user of the line mode can do to the issue, proposal or thread of a page: comment, review, merge and
so on. Each is a command of svc, and the texts that it needs.

    for words, act in acts.of_issue(repo, issue): ...

An action that the role does not allow is left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from localstore.core.model.history import ChangedFile
from localstore.core.model.issue import Issue
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.thread import Thread
from svc.flows.place.rights import refusal
from tui.screens.proposal.words import WAYS, reasons_against
from tui.text import safe


class Missing(NamedTuple):
    """A text that an action needs. `words`: the question. `option`: the option of the command that takes the
    text. `several`: it may have several lines. Without a `required` text, the action is not done."""

    words: str
    option: str
    required: bool = True
    several: bool = False


class Act(NamedTuple):
    """An action: the words of a command line, and the texts to ask for."""

    words: Sequence[str]
    missing: Sequence[Missing] = ()


Offer = tuple[str, Act]  # what the action does, and the action
COMMENT = Missing("comment", "--body", several=True)
NOTE = Missing("a line with it, or nothing", "--body", required=False)


class PageActs:
    """Makes the actions for the account that is signed in. `account`: its handle, "" if nobody is."""

    def __init__(self, account: str) -> None:
        self._account = account

    def of_issues(self, repo: Repo) -> list[Offer]:
        missing = (Missing("title", "--title"), Missing("text", "--body", required=False, several=True))
        return self._offer("issue.create", repo, "new issue", ["issue", "create"], missing)

    def of_issue(self, repo: Repo, issue: Issue) -> list[Offer]:
        number, mine = str(issue.number), self._is_mine(issue)
        close = "close" if issue.state == "open" else "reopen"
        return [
            *self._offer("comment.create", repo, "comment", ["issue", "comment", number], (COMMENT,)),
            *self._offer("issue.close", repo, close, ["issue", close, number], mine=mine),
        ]

    def of_proposal(self, repo: Repo, proposal: Proposal) -> list[Offer]:
        """Returns the actions of a proposal. How it can be merged is said by `of_merge`."""
        number, mine, state = str(proposal.number), self._is_mine(proposal), proposal.state
        review = ["pr", "review", number]
        offers = self._offer("comment.create", repo, "comment", ["pr", "comment", number], (COMMENT,))
        if state == "open" and not mine:
            why = Missing("what has to change", "--body", several=True)
            if not proposal.draft:
                offers += self._offer("review.create", repo, "approve", [*review, "--approve"], (NOTE,))
            words = [*review, "--request-changes"]
            offers += self._offer("review.create", repo, "request changes", words, (why,))
        if state == "open" and proposal.draft:
            words = ["pr", "ready", number]
            offers += self._offer("proposal.ready", repo, "mark as ready", words, mine=mine)
        if state != "merged":
            close = "close" if state == "open" else "reopen"
            offers += self._offer("proposal.close", repo, close, ["pr", close, number], mine=mine)
        return offers

    def may_merge(self, repo: Repo, proposal: Proposal) -> bool:
        return proposal.state == "open" and self._may("proposal.merge_prepare", repo)

    def of_merge(self, repo: Repo, proposal: Proposal) -> list[Offer]:
        """Returns the ways to merge a proposal or, if it cannot be merged yet, to sign the merge now. A merge
        is about the head that was shown: the server refuses it if the branch has moved since."""
        words = ["pr", "merge", str(proposal.number)]
        if proposal.auto_merge is not None:
            return [("cancel the merge that waits", self._act(repo, [*words, "--disable-auto"]))]
        if proposal.merge_state == "conflicts":
            return []
        waits = bool(reasons_against(proposal))
        words += ["--head", proposal.head_seal, *(["--auto"] if waits else [])]
        return [
            (f"{'sign it now, ' if waits else ''}{name}: {meaning}", self._act(repo, [*words, *way.split()]))
            for way, name, meaning in WAYS
            if way or proposal.merge_state != "behind"
        ]

    def of_changes(self, repo: Repo, proposal: Proposal, files: Sequence[ChangedFile]) -> list[Offer]:
        """Returns the action that comments on changed lines. `files`: the changed files. If there is only
        one, its path is not asked for."""
        words = ["pr", "comment", str(proposal.number)]
        if proposal.state != "open" or not files:
            return []
        if len(files) == 1:
            words, path = [*words, f"--path={files[0].path}"], []
        else:
            path = [Missing("path of the file", "--path")]
        missing = (*path, Missing("number of the line, or lines such as 3-5", "--line"), COMMENT)
        return self._offer("thread.create", repo, "comment on lines", words, missing)

    def of_thread(self, repo: Repo, proposal: Proposal, thread: Thread) -> list[Offer]:
        number = str(proposal.number)
        mine = self._is_mine(thread) or self._is_mine(proposal)
        resolve = ["pr", "resolve", number, thread.id, *(["--reopen"] if thread.state != "open" else [])]
        name = "resolve" if thread.state == "open" else "reopen"
        answer = ["pr", "comment", number, "--thread", thread.id]
        return [
            *self._offer("thread.comment", repo, "answer", answer, (COMMENT,)),
            *self._offer("thread.resolve", repo, name, resolve, mine=mine),
        ]

    def _is_mine(self, written: Any) -> bool:
        return bool(self._account) and written.author.handle == self._account

    def _may(self, operation: str, repo: Repo, *, mine: bool = False) -> bool:
        return bool(self._account) and not refusal(operation, repo, mine)

    def _offer(
        self,
        operation: str,
        repo: Repo,
        name: str,
        words: Sequence[str],
        missing: Sequence[Missing] = (),
        *,
        mine: bool = False,
    ) -> list[Offer]:
        """Returns the action, or nothing if the role does not allow it. `mine`: the user wrote what it is
        about."""
        return [(name, self._act(repo, words, missing))] if self._may(operation, repo, mine=mine) else []

    def _act(self, repo: Repo, words: Sequence[str], missing: Sequence[Missing] = ()) -> Act:
        return Act([*words, "--repo", repo.full_name], missing)


def says_merge(proposal: Proposal) -> list[str]:
    """Returns lines about a merge: what goes where, and what it waits for."""
    lines = [f"{safe(proposal.head)} at {proposal.head_seal[:12]} into {safe(proposal.base)}"]
    lines += [f"it cannot be merged now: {reason}" for reason in reasons_against(proposal)]
    if proposal.merge_state == "behind":
        lines.append("no fast-forward: its base has moved on")
    return lines
