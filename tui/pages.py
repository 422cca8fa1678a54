"""Pages of the line mode about what people do together: lines to read, and choices by number.

    Pages(read, now).proposals(repo)

They read what the drawn screens read. Every state is a word, because a screen reader skips signs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from localstore.core.model.collaboration.inbox import InboxItem
from localstore.core.model.collaboration.issue import Comment, Issue, IssueQuery
from localstore.core.model.collaboration.proposal import Proposal, ProposalQuery
from localstore.core.model.collaboration.run import Run, state_of
from localstore.core.model.collaboration.thread import Thread
from localstore.core.model.release import Release
from localstore.core.model.repo import Repo
from localstore.core.words import reasons_to_wait
from svc.flows.inbox_words import said
from svc.flows.place.rights import refusal
from tui import contents, reads
from tui.filters import WORDS, Filter, parse
from tui.listed import ListedIssue, ListedProposal
from tui.reads import Read
from tui.screens.lists.signature import signature
from tui.screens.proposal.words import conflict_way_out
from tui.screens.settings import reads as settings_reads
from tui.text import ago, safe

WIDTH = 100  # columns of a text that somebody wrote


class Choice(NamedTuple):
    """One numbered line, and the page that it opens."""

    text: str
    page: Callable[[], Page] | None = None


class Page(NamedTuple):
    """A title, lines to read, and what can be chosen. `search`: the page for what is typed behind `/`, where
    it is more than a text that choices contain."""

    title: str
    lines: Sequence[str] = ()
    choices: Sequence[Choice] = ()
    search: Callable[[str], Page] | None = None


class Pages:
    """`read`: gives the answer to a read. `now`: seconds since 1970."""

    def __init__(self, read: Callable[[Read[Any]], Any], now: Callable[[], float]) -> None:
        self._read, self._now = read, now

    def of(self, repo: Repo, seal: str | None) -> list[Choice]:
        """What a repository has beside its files."""
        return [
            Choice("issues", lambda: self.issues(repo)),
            Choice("proposals", lambda: self.proposals(repo)),
            Choice("workflows", lambda: self.workflows(repo, seal)),
            Choice("releases", lambda: self.releases(repo)),
            Choice("security", lambda: self.security(repo)),
            Choice("insights", lambda: self.insights(repo, seal)),
            Choice("settings", lambda: self.settings(repo)),
        ]

    # --- issues and proposals

    def issues(self, repo: Repo, text: str = "") -> Page:
        asked = parse("issues", text, "all")
        found: list[ListedIssue] = self._read(contents.issues(repo.id, cast("IssueQuery", asked.query)))
        choices = [
            Choice(
                f"#{one.number} {one.state}  {safe(one.title)}  {_who(one)} {self._ago(one.updated_at)}",
                partial(self.issue, repo, one.number),
            )
            for one in found
        ]
        return _filtered("Issues", repo, asked, choices, partial(self.issues, repo))

    def issue(self, repo: Repo, number: int) -> Page:
        one: Issue = self._read(contents.issue(repo.id, number))
        lines = [
            f"{one.state}, by {_who(one)} {self._ago(one.created_at)}",
            *_named("labels", (label.name for label in one.labels)),
            *_named("assigned", (_handle(actor) for actor in one.assignees)),
            *_text(one.body),
            *self._comments(self._read(contents.comments(repo.id, number))),
        ]
        return Page(f"#{number} {safe(one.title)}", lines)

    def proposals(self, repo: Repo, text: str = "") -> Page:
        asked = parse("proposals", text, "all")
        read = contents.proposals(repo.id, cast("ProposalQuery", asked.query))
        found: list[ListedProposal] = self._read(read)
        choices = [
            Choice(
                f"#{one.number} {_state(one)}  {safe(one.title)}  {_checks(one)}  {_who(one)} "
                f"{self._ago(one.updated_at)}",
                partial(self.proposal, repo, one.number),
            )
            for one in found
        ]
        return _filtered("Proposals", repo, asked, choices, partial(self.proposals, repo))

    def proposal(self, repo: Repo, number: int) -> Page:
        one: Proposal = self._read(contents.proposal(repo.id, number))
        checks = self._read(contents.seal_checks(repo.id, one.head_seal)).items
        threads: list[Thread] = self._read(contents.threads(repo.id, number))
        lines = [
            f"{_state(one)}, by {_who(one)} {self._ago(one.created_at)}",
            f"{safe(one.head)} into {safe(one.base)}",
            *_named("labels", (label.name for label in one.labels)),
            *_named("blocked by", reasons_to_wait(one.blocked_by)),
            *_named("conflicts in", one.conflicts),
            *([conflict_way_out(one)] if one.conflicts else []),
            *_text(one.body),
            *(
                f"check {safe(check.name)}: {check.state}{', required' if check.required else ''}"
                + (f", {safe(check.summary)}" if check.summary else "")
                for check in checks
            ),
            *(
                f"review by {_handle(review.reviewer)}: {review.verdict.replace('_', ' ')}"
                + (f": {safe(review.body)}" if review.body else "")
                for review in self._read(contents.reviews(repo.id, number))
            ),
            *self._comments(self._read(contents.comments(repo.id, number))),
        ]
        choices = [Choice("changed lines", partial(self._changes, repo, one))]
        choices += [
            Choice(
                f"thread on {safe(thread.path)}:{thread.start}, {thread.state}, {len(thread.comments)} said",
                partial(self._thread, thread),
            )
            for thread in threads
        ]
        return Page(f"#{number} {safe(one.title)}", lines, choices)

    def _changes(self, repo: Repo, one: Proposal) -> Page:
        from tui.widgets.patch import Patches

        compare = self._read(contents.changes(repo.id, one.merge_base or one.base_seal, one.head_seal))
        lines = ["".join(text for text, _ in item.left) for item in Patches(compare.files)]
        return Page(f"#{one.number}, {len(compare.files)} files", [line.replace("−", "-") for line in lines])

    def _thread(self, thread: Thread) -> Page:
        suggestion = thread.suggestion
        lines = [
            f"{thread.state}, on {safe(thread.path)}, lines {thread.start}-{thread.end}, {thread.side} side",
            *self._comments(thread.comments),
            *(["suggested lines:", *_code(suggestion.text)] if suggestion is not None else []),
        ]
        return Page(f"thread by {_who(thread)}", lines)

    # --- runs and releases

    def workflows(self, repo: Repo, seal: str | None) -> Page:
        lines = []
        if seal is not None:
            found = self._read(contents.seal_checks(repo.id, seal))
            lines = [f"check {safe(one.name)} on the head: {one.state}" for one in found.items]
        choices = [
            Choice(
                f"{safe(run.name)} {_outcome(run)}  on {safe(run.branch)} {run.seal_id[:8]}, attempt "
                f"{run.attempt}  {self._ago(run.created_at)}",
                partial(self.run, run),
            )
            for run in self._read(contents.runs(repo.id))
        ]
        return Page(f"Runs of {safe(repo.full_name)}, {len(choices)}", lines, choices)

    def run(self, run: Run) -> Page:
        lines = [
            f"{_outcome(run)}, attempt {run.attempt} on {run.seal_id[:8]} of {safe(run.branch)}",
            f"recorded by {_handle(run.reported_by)} {self._ago(run.created_at)}",
            *_text(run.summary or ""),
            *([safe(run.details_url)] if run.details_url else []),
        ]
        return Page(f"run of {safe(run.name)}", lines)

    def releases(self, repo: Repo) -> Page:
        found: list[Release] = self._read(contents.releases(repo.id))
        choices = [
            Choice(
                f"{safe(one.version)}  {safe(one.notes.partition(chr(10))[0])}  {len(one.assets)} files  "
                f"{self._ago(one.created_at)}",
                partial(self.release, repo, one),
            )
            for one in found
        ]
        return Page(f"Releases of {safe(repo.full_name)}, {len(found)}", (), choices)

    def release(self, repo: Repo, one: Release) -> Page:
        lines = [
            f"seal {one.seal_id[:8]}, by {_who(one)} {self._ago(one.created_at)}",
            signature(repo.id, one)[0],
            *_text(one.notes),
            *(f"file {safe(asset.name)}, {asset.size:,} bytes" for asset in one.assets),
        ]
        return Page(f"release {safe(one.version)}", lines)

    # --- what concerns the repository

    def security(self, repo: Repo) -> Page:
        advisories = self._read(contents.advisories(repo.full_name))
        rules = self._read(contents.protections(repo.id))
        lines = [f"advisory {safe(one.id)}: {safe(one.summary)}" for one in advisories]
        lines.append("franking evidence: not in this version of svc")
        lines += [f"rule for branches {safe(one.pattern)}" for one in rules]
        return Page(f"Security: {len(advisories)} advisories, {len(rules)} rules", lines)

    def insights(self, repo: Repo, seal: str | None) -> Page:
        found = self._read(contents.dependencies(repo.id, seal)).items if seal is not None else []
        dependents = self._read(contents.dependents(repo.id))
        lines = [
            f"depends on {safe(one.name)} {safe(one.requirement)} ({one.ecosystem}, {safe(one.path)})"
            + "".join(f", advisory {safe(matched.id)}" for matched in one.advisories)
            for one in found
        ]
        lines += [f"needed by {safe(one.full_name)}" for one in dependents]
        return Page(f"Insights: {len(found)} dependencies, {len(dependents)} dependents", lines)

    def settings(self, repo: Repo) -> Page:
        """The settings to read; `:` changes them with commands."""
        now: Repo = self._read(reads.repo(repo.id))
        lines = [
            "General",
            f"  description: {safe(now.description) or 'none'}",
            f"  default branch: {safe(now.default_branch)}",
            f"  name: {safe(now.name)}",
            "Listing",
            *(
                f"  {safe(one.name)}, {safe(one.category or 'no category')}, {len(one.screenshots)} pictures"
                for one in self._read(contents.listing(now.id))
            ),
            "Access",
            *self._access(now),
            "Automation",
            *(
                f"  webhook {safe(one.url)}: {'active' if one.active else 'off'}, {', '.join(one.events)}"
                for one in self._allowed(now, "webhook.list", settings_reads.webhooks(now.id))
            ),
            "Checks",
            *(
                f"  {safe(one.name)}: {'has to pass' if one.enabled else 'not asked for'}"
                for one in self._read(contents.checks(now.id))
            ),
            "Lifecycle",
            f"  visibility: {now.visibility}",
            f"  archived: {'yes' if now.archived else 'no'}",
            "change them with commands, such as :repo edit --description TEXT",
        ]
        return Page(f"Settings of {safe(now.full_name)}", lines)

    def _access(self, repo: Repo) -> list[str]:
        people = self._allowed(repo, "collaborator.list", contents.collaborators(repo.id))
        invited = self._allowed(repo, "invite.list", contents.invites(repo.id))
        lines = [f"  {_handle(one.account)}: {one.role}" for one in people]
        return lines + [
            f"  {_handle(one.account)}: invited as {one.role}" for one in invited if one.state == "pending"
        ]

    def _allowed(self, repo: Repo, operation: str, read: Read[Any]) -> Any:
        return [] if refusal(operation, repo) else self._read(read)

    def inbox(self, full_names: dict[str, Repo]) -> Page:
        """What is new; `full_names`: the repositories that can be opened."""
        found: list[InboxItem] = self._read(reads.inbox())
        choices = []
        for one in found:
            subject, full_name = one.subject, one.repo.full_name if one.repo is not None else ""
            repo = full_names.get(full_name)
            page = None
            if repo is not None and subject.number is not None:
                page = partial(
                    self.proposal if subject.kind == "proposal" else self.issue, repo, subject.number
                )
            number = f" #{subject.number}" if subject.number is not None else ""
            where = f"{safe(full_name or subject.title)}{number} "
            words = f"{one.reason.replace('_', ' ')}: {where}{safe(said(one))}"
            choices.append(Choice(f"{words}  {self._ago(one.updated_at)}", page))
        return Page(f"Inbox {len(found)}", (), choices)

    # --- words

    def _ago(self, moment: str) -> str:
        return ago(moment, self._now())

    def _comments(self, comments: Iterable[Comment]) -> list[str]:
        lines: list[str] = []
        for one in comments:
            lines += [f"comment by {_who(one)} {self._ago(one.created_at)}:", *_text(one.body)]
        return lines


def _filtered(
    what: str,
    repo: Repo,
    asked: Filter,
    choices: list[Choice],
    search: Callable[[str], Page],
) -> Page:
    """The page of a list with what its filter leaves."""
    wanted = asked.free.casefold().split()
    left = [one for one in choices if all(word in one.text.casefold() for word in wanted)]
    typed = safe(asked.typed)
    lines = [
        f"filter: {typed}" if typed else f"/ takes {' '.join(f'{name}:' for name in WORDS[what.lower()])}"
    ]
    if not left:
        lines.append(f"no {what.lower()} match; / changes the filter" if typed else f"no open {what.lower()}")
    return Page(f"{what} of {safe(repo.full_name)}, {len(left)}", lines, left, search)


def _who(one: Any) -> str:
    return _handle(one.author)


def _handle(actor: Any) -> str:
    return f"@{safe(actor.handle or '?')}"


def _state(one: Proposal | ListedProposal) -> str:
    return "draft" if one.draft and one.state == "open" else one.state


def _checks(one: ListedProposal) -> str:
    rollup = one.checks
    if not rollup.total:
        return "no checks"
    return f"{rollup.passed} of {rollup.total} checks passed" + (
        f", {rollup.failed} failed" if rollup.failed else ""
    )


def _outcome(run: Run) -> str:
    return state_of(run.status, run.conclusion)


def _code(text: str) -> list[str]:
    return [f"  {safe(line)}" for line in text.split("\n")]


def _named(what: str, names: Iterable[str]) -> list[str]:
    said = ", ".join(safe(name) for name in names)
    return [f"{what}: {said}"] if said else []


def _text(text: str) -> list[str]:
    from tui.text import wrapped

    return [f"  {line}" for line in wrapped(text, WIDTH)] if text.strip() else []
