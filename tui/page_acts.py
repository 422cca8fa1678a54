"""What a user of the line mode can do to the issue, proposal or thread of a page: comment, review, merge and
so on. Each is a command of svc, and the texts that it needs.

    for words, act in acts.of_issue(repo, issue): ...

An action that the role does not allow is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, get_args

from localstore.core.model.access import Granted
from localstore.core.model.check import Check
from localstore.core.model.history import ChangedFile
from localstore.core.model.inbox import InboxItem
from localstore.core.model.issue import Issue
from localstore.core.model.limits import APPROVALS as MOST
from localstore.core.model.proposal import Proposal
from localstore.core.model.protection import Protection, ProtectionSet
from localstore.core.model.repo import Repo
from localstore.core.model.run import Run
from localstore.core.model.thread import Thread
from localstore.core.model.webhook import Webhook
from svc.flows.place.rights import refusal
from tui.screens.proposal.words import WAYS, reasons_against
from tui.text import safe

Names = Callable[[], Sequence[str]]  # returns the names that exist, such as those of labels


def no_names() -> Sequence[str]:
    return ()


class Missing(NamedTuple):
    """A text that an action needs. `words`: the question. `option`: the option of the command that takes the
    text, "" if it is an argument. `several`: it may have several lines. Without a `required` text, the action
    is not done. `names`: returns what can be chosen; any other text is asked for again. If it returns
    nothing, every text is taken."""

    words: str
    option: str
    required: bool = True
    several: bool = False
    names: Names = no_names


class Act(NamedTuple):
    """An action: the words of a command line, and the texts to ask for. `leaves`: the page is left after the
    action, because what it is about is over. `undo`: the words of a command line that undoes it."""

    words: Sequence[str]
    missing: Sequence[Missing] = ()
    leaves: bool = False
    undo: Sequence[str] = ()


Offer = tuple[str, Act]  # what the action does, and the action
COMMENT = Missing("comment", "--body", several=True)
NOTE = Missing("a line that goes with it, or an empty line for none", "--body", required=False)
TITLE = Missing("new title", "--title")
DESCRIPTION = Missing("description", "--description")
NEW_NAME = Missing("new name; the old one leads to it for 90 days", "")
DEFAULT_BRANCH = Missing("branch", "--default-branch")
SOMEBODY = "handle, without @"
EDIT = ("repo", "edit")
ROLE = Missing("role", "--role", names=lambda: get_args(Granted)[::-1])  # the least first
APPROVALS = Missing(
    "how many approvals merges need",
    "--required-approvals",
    names=lambda: [str(approvals) for approvals in range(MOST + 1)],
)


class PageActs:
    """Makes the actions for the account that is signed in. `account`: its handle, "" if nobody is."""

    def __init__(self, account: str) -> None:
        self._account = account

    def of_issues(self, repo: Repo) -> list[Offer]:
        missing = (Missing("title", "--title"), Missing("text", "--body", required=False, several=True))
        return self._offer("issue.create", repo, "new issue", ["issue", "create"], missing)

    def of_issue(self, repo: Repo, issue: Issue, labels: Names) -> list[Offer]:
        """Returns the actions of an issue. `labels`: returns the names of the repository's labels."""
        number, mine = str(issue.number), self._is_mine(issue)
        close = "close" if issue.state == "open" else "reopen"
        offers = [
            *self._offer("comment.create", repo, "comment", ["issue", "comment", number], (COMMENT,)),
            *self._offer("issue.close", repo, close, ["issue", close, number], mine=mine),
        ]
        if issue.state == "open":
            words = ["issue", "close", number, "--reason=not_planned"]
            offers += self._offer("issue.close", repo, "close as not planned", words, mine=mine)
        return [*offers, *self._sorting("issue", repo, issue, labels)]

    def _sorting(self, noun: str, repo: Repo, item: Any, labels: Names) -> list[Offer]:
        """Returns the actions that change labels, people and the title of an issue or a proposal. `noun`:
        `issue` or `pr`, with which their commands begin."""
        edit, mine = [noun, "edit", str(item.number)], self._is_mine(item)
        on_it = [label.name for label in item.labels]
        assigned = [actor.handle or "" for actor in item.assignees]

        def others() -> Sequence[str]:
            return [name for name in labels() if name not in on_it]

        offers = self._offer(
            "issue.label", repo, "put a label on it", edit, (Missing("label", "--add-label", names=others),)
        )
        if on_it:
            missing = (Missing("label", "--remove-label", names=lambda: on_it),)
            offers += self._offer("issue.label", repo, "take a label off", edit, missing)
        if self._account in assigned:
            words = [*edit, "--remove-assignee=@me"]
            offers += self._offer("issue.assign", repo, "take me off it", words)
        else:
            offers += self._offer("issue.assign", repo, "assign me", [*edit, "--add-assignee=@me"])
        missing = (Missing(SOMEBODY, "--add-assignee"),)
        offers += self._offer("issue.assign", repo, "assign somebody", edit, missing)
        right = "issue.edit" if noun == "issue" else "proposal.edit"
        return [*offers, *self._offer(right, repo, "change the title", edit, (TITLE,), mine=mine)]

    def of_proposal(self, repo: Repo, proposal: Proposal, labels: Names) -> list[Offer]:
        """Returns the actions of a proposal. How it can be merged is said by `of_merge`. `labels`: returns
        the names of the repository's labels."""
        number, mine, state = str(proposal.number), self._is_mine(proposal), proposal.state
        review = ["pr", "review", number]
        offers = self._offer("comment.create", repo, "comment", ["pr", "comment", number], (COMMENT,))
        if state == "open" and not mine:
            why = Missing("what has to change", "--body", several=True)
            if not proposal.draft:
                offers += self._offer("review.create", repo, "approve", [*review, "--approve"], (NOTE,))
            words = [*review, "--request-changes"]
            offers += self._offer("review.create", repo, "request changes", words, (why,))
        if state == "open":
            text = Missing("text of the review", "--body", several=True)
            words = [*review, "--comment"]
            offers += self._offer("review.create", repo, "review without a verdict", words, (text,))
            missing = (Missing(SOMEBODY, "--add-reviewer"),)
            words = ["pr", "edit", number]
            offers += self._offer("proposal.reviewers", repo, "ask for a review", words, missing, mine=mine)
            words = ["pr", "ready", number, *([] if proposal.draft else ["--undo"])]
            name = "mark as ready" if proposal.draft else "make it a draft"
            offers += self._offer("proposal.ready", repo, name, words, mine=mine)
        if state != "merged":
            close = "close" if state == "open" else "reopen"
            offers += self._offer("proposal.close", repo, close, ["pr", close, number], mine=mine)
        return [*offers, *self._sorting("pr", repo, proposal, labels)]

    def may_merge(self, repo: Repo, proposal: Proposal) -> bool:
        return proposal.state == "open" and self._may("proposal.merge_prepare", repo)

    def of_merge(self, repo: Repo, proposal: Proposal) -> list[Offer]:
        """Returns the ways to merge a proposal or, if it cannot be merged yet, to sign the merge now. A merge
        is about the head that was shown: the server refuses it if the branch has moved since."""
        words = ["pr", "merge", str(proposal.number)]
        if proposal.auto_merge is not None:
            cancel = self._act(repo, [*words, "--disable-auto"])
            return _leaving([("cancel the merge that waits", cancel)])
        if proposal.merge_state == "conflicts":
            return []
        waits = bool(reasons_against(proposal))
        words += ["--head", proposal.head_seal, *(["--auto"] if waits else [])]
        return _leaving(
            [
                (
                    f"{'sign it now, ' if waits else ''}{name}: {meaning}",
                    self._act(repo, [*words, *way.split()]),
                )
                for way, name, meaning in WAYS
                if way or proposal.merge_state != "behind"
            ]
        )

    def of_changes(self, repo: Repo, proposal: Proposal, files: Sequence[ChangedFile]) -> list[Offer]:
        """Returns the action that comments on changed lines. `files`: the changed files. If there is only
        one, its path is not asked for."""
        words = ["pr", "comment", str(proposal.number)]
        if proposal.state != "open" or not files:
            return []
        if len(files) == 1:
            words, path = [*words, f"--path={files[0].path}"], []
        else:
            path = [Missing("path of the file", "--path", names=lambda: [file.path for file in files])]
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

    def of_run(self, repo: Repo, run: Run) -> list[Offer]:
        if run.status == "completed":
            return self._offer("run.rerun", repo, "run again", ["repo", "run", "rerun", run.id])
        return self._offer("run.cancel", repo, "cancel", ["repo", "run", "cancel", run.id])

    def of_inbox_item(self, item: InboxItem) -> list[Offer]:
        """Returns the actions of a row of the inbox."""
        offers: list[Offer] = []
        if item.reason == "invited" and item.repo is not None:
            for answer in ("accept", "decline"):
                words = ["repo", "invite", answer, item.repo.full_name]
                offers.append((f"{answer} the invitation", Act(words, leaves=True)))
        mark = "unread" if item.done else "done"
        name = "take it back into the inbox" if item.done else "done, which takes it out of the inbox"
        return [*offers, (name, Act(["inbox", mark, item.id], leaves=True))]

    def of_description(self, repo: Repo) -> list[Offer]:
        return self._offer("repo.update", repo, "change the description", EDIT, (DESCRIPTION,))

    def of_default_branch(self, repo: Repo, branches: Names) -> list[Offer]:
        """`branches`: returns the names of the branches."""
        missing = (DEFAULT_BRANCH._replace(names=branches),)
        return self._offer("repo.update", repo, "change the default branch", EDIT, missing)

    def of_name(self, repo: Repo) -> list[Offer]:
        return self._offer("repo.update", repo, "change the name", ["repo", "rename"], (NEW_NAME,))

    def of_visibility(self, repo: Repo) -> list[Offer]:
        public = repo.visibility == "public"
        name = "make it private" if public else "make it public"
        words = ["repo", "visibility", "private" if public else "public"]
        return _leaving(self._offer("repo.update", repo, name, words))

    def of_archive(self, repo: Repo) -> list[Offer]:
        name, verb = ("unarchive it", "unarchive") if repo.archived else ("archive it", "archive")
        return _leaving(self._offer("repo.update", repo, name, ["repo", verb]))

    def of_rules(self, repo: Repo) -> list[Offer]:
        set_rule = ["repo", "protect", "set"]
        pattern = Missing("branch, or a pattern such as release/**", "")
        return self._offer("protection.set", repo, "new rule for branches", set_rule, (APPROVALS, pattern))

    def of_check(self, repo: Repo, check: Check) -> list[Offer]:
        name, verb = (
            ("no longer required", "disable") if check.enabled else ("required from now on", "enable")
        )
        return _leaving(self._offer(f"check.{verb}", repo, name, ["repo", "checks", verb, check.name]))

    def of_access(self, repo: Repo) -> list[Offer]:
        missing = (ROLE, Missing(SOMEBODY, ""))
        return self._offer("invite.create", repo, "invite somebody", ["repo", "collaborator", "add"], missing)

    def of_person(self, repo: Repo, handle: str, what: str = "role") -> list[Offer]:
        """Returns the actions that change or take away what a person has: their role, or an invitation."""
        change = ["repo", "collaborator", "role", handle]
        remove = ["repo", "collaborator", "remove", handle]
        role = ROLE._replace(option="")
        return _leaving(
            [
                *self._offer("collaborator.role", repo, "change the role", change, (role,)),
                *self._offer("collaborator.remove", repo, f"take the {what} away", remove),
            ]
        )

    def of_invited(self, repo: Repo, handle: str) -> list[Offer]:
        return self.of_person(repo, handle, "invitation")

    def of_webhook(self, repo: Repo, webhook: Webhook) -> list[Offer]:
        name, flag = ("switch it off", "--inactive") if webhook.active else ("switch it on", "--active")
        edit = ["repo", "webhook", "edit", webhook.id, flag]
        return [
            *_leaving(self._offer("webhook.edit", repo, name, edit)),
            *self._offer("webhook.ping", repo, "send it a test", ["repo", "webhook", "ping", webhook.id]),
            *_leaving(
                self._offer("webhook.delete", repo, "delete it", ["repo", "webhook", "delete", webhook.id])
            ),
        ]

    def of_rule(self, repo: Repo, rule: Protection) -> list[Offer]:
        """Returns the actions that change the rule of a branch. A command that sets a rule replaces all of
        it, so each has the other flags of the rule."""
        set_rule = ["repo", "protect", "set", rule.pattern]
        words = [*set_rule, *_flags(rule, "required_approvals", "require_review")]
        offers = self._offer("protection.set", repo, "approvals that merges need", words, (APPROVALS,))
        for flag, name in TOGGLED.items():
            is_on = getattr(rule, flag)
            words = [*set_rule, *_flags(rule, flag), *([] if is_on else [_option(flag)])]
            turn = "no longer" if is_on else "from now on"
            offers += self._offer("protection.set", repo, f"{turn}: {name}", words)
        words = ["repo", "protect", "clear", rule.pattern]
        removal = _leaving(self._offer("protection.clear", repo, "remove the rule", words))
        undo = [*set_rule, *_flags(rule)]
        return offers + [(name, act._replace(undo=undo)) for name, act in removal]

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


TOGGLED = {
    "require_checks": "merges need their required checks",
    "require_resolution": "merges need resolved threads",
    "fresh_approvals": "only approvals of the newest change count",
    "lock_writes": "nothing is written",
}
"""The flags of a rule that a user turns on and off, each with what it means."""


def _leaving(offers: Sequence[Offer]) -> list[Offer]:
    """Returns the actions, after each of which the page is left."""
    return [(name, act._replace(leaves=True)) for name, act in offers]


def _option(flag: str) -> str:
    return f"--{flag.replace('_', '-')}"


def _flags(rule: ProtectionSet, *but: str) -> list[str]:
    """Returns the options that say what a rule requires. `but`: members of the rule that are left out."""
    names = ("require_review", "lock_deletions", *TOGGLED)
    words = [_option(name) for name in names if getattr(rule, name) and name not in but]
    if rule.required_approvals and "required_approvals" not in but:
        words.append(f"--required-approvals={rule.required_approvals}")
    return words


def says_merge(proposal: Proposal) -> list[str]:
    """Returns lines about a merge: what goes where, and what it waits for."""
    lines = [f"{safe(proposal.head)} at {proposal.head_seal[:12]} into {safe(proposal.base)}"]
    lines += [f"it cannot be merged now: {reason}" for reason in reasons_against(proposal)]
    if proposal.merge_state == "behind":
        lines.append("no fast-forward: its base has moved on")
    return lines
