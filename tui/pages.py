"""Pages of the line mode (the app as plain lines of text) about people's work on a repository.

    Pages(read, now).proposals(repo)

The pages use the same data as the screens. Every state is a word, because screen readers skip signs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from localstore.core.errors import NotFound, ServerUnreachable, SvcError
from localstore.core.model.history import Blob, Compare
from localstore.core.model.inbox import InboxItem
from localstore.core.model.issue import Comment, Issue, IssueQuery
from localstore.core.model.proposal import Proposal, ProposalQuery
from localstore.core.model.release import Release
from localstore.core.model.repo import Repo
from localstore.core.model.run import Run, state_of
from localstore.core.model.thread import Thread
from localstore.core.words import VERDICTS, count, first_line, state_of_proposal
from svc.flows.happened import Happened, list_happened, name_place
from svc.flows.inbox_words import describe, describe_event
from tui import contents, reads
from tui.filters import WORDS, Filter, parse
from tui.listed import ListedIssue, ListedProposal
from tui.page import Choice, Page, choices_of, page_of
from tui.page_acts import PageActs, says_merge
from tui.reads import Read
from tui.screens.lists.inbox import SECTIONS, section_of
from tui.screens.lists.signature import signature
from tui.screens.proposal.words import (
    WAITS,
    conflict_way_out,
    merges_when,
    must_pass,
    reasons,
    standing_of,
)
from tui.settings_pages import SettingsPages
from tui.text import ago, lines_of, safe

OF_ISSUE = (
    "issue edit --add-label NAME",
    "issue edit --add-assignee @me",
    "issue edit --title TITLE",
    "issue close --reason not_planned",
    "issue comment --edit-last",
)
OF_PROPOSAL = ("pr checks", "pr checkout", "pr edit --add-reviewer HANDLE", "pr edit --title TITLE")
OF_REPO = ("issue create", "pr create", "log", "grep TEXT", "repo edit --description TEXT")
OF_INBOX = ("inbox done --all", "inbox --all")
QUOTED = 12  # lines of code that a thread shows


class Pages:
    """Makes the pages of the line mode. `read`: makes a request and returns its answer. `now`: returns the
    time in seconds since 1970. `account`: the handle of who is signed in, "" if nobody is."""

    def __init__(self, read: Callable[[Read[Any]], Any], now: Callable[[], float], account: str = "") -> None:
        self._read, self._now, self._acts = read, now, PageActs(account)
        self._settings = SettingsPages(read, self._acts)

    def of(self, repo: Repo, seal: str | None) -> list[Choice]:
        """Returns the choices for the parts of a repository other than its files."""
        return [
            Choice("issues", lambda: self.issues(repo)),
            Choice("proposals", lambda: self.proposals(repo)),
            Choice("workflows", lambda: self.workflows(repo, seal)),
            Choice("releases", lambda: self.releases(repo)),
            Choice("security", lambda: self.security(repo)),
            Choice("insights", lambda: self.insights(repo, seal)),
            Choice("settings", lambda: self._settings.settings(repo)),
        ]

    # --- issues and proposals

    def issues(self, repo: Repo, text: str = "") -> Page:
        filters = parse("issues", text, "all")
        listed: list[ListedIssue] = self._read(contents.issues(repo.id, cast("IssueQuery", filters.query)))
        issues = _open_first(listed)
        choices = [
            Choice(
                f"#{issue.number} {issue.state}  {safe(issue.title)}  {_labels(issue)}{_who(issue)} "
                f"{self._ago(issue.updated_at)}",
                partial(self.issue, repo, issue.number),
            )
            for issue in issues
        ]
        return _filter_page(
            "Issues",
            repo,
            filters,
            choices,
            partial(self.issues, repo),
            choices_of(self._acts.of_issues(repo)),
            open_of=_count_open(issues),
        )

    def issue(self, repo: Repo, number: int) -> Page:
        issue: Issue = self._read(contents.issue(repo.id, number))
        lines = [
            f"{issue.state}, written by {_who(issue)} {self._ago(issue.created_at)}",
            *_list_names("labels", (label.name for label in issue.labels)),
            *_list_names("assigned", (_handle(actor) for actor in issue.assignees)),
            *_text(issue.body),
            *self._talk_of_issue(repo, issue),
        ]
        offers = self._acts.of_issue(repo, issue, partial(self._label_names, repo))
        return page_of(
            repo,
            f"#{number} {safe(issue.title)}",
            lines,
            choices_of(offers),
            text=True,
            issue=str(number),
            commands=OF_ISSUE if offers else (),
        )

    def _label_names(self, repo: Repo) -> list[str]:
        return [label.name for label in self._read(contents.labels(repo.id))]

    def open_number(self, repo: Repo, number: int) -> Page:
        """Returns the page of the issue or proposal with this number."""
        try:
            return self.issue(repo, number)
        except (NotFound, ServerUnreachable):  # what was read of a proposal can be shown offline
            return self.proposal(repo, number)

    def _talk_of_issue(self, repo: Repo, issue: Issue) -> list[str]:
        """Returns the comments on an issue and what else happened to it, in order of time."""
        talk = self._events(list_happened(self._read(contents.timeline(repo.id, issue.number)), issue))
        for comment in self._read(contents.comments(repo.id, issue.number)):
            talk.append((comment.created_at, self._comments([comment])))
        return _in_order(talk)

    def proposals(self, repo: Repo, text: str = "") -> Page:
        filters = parse("proposals", text, "all")
        read = contents.proposals(repo.id, cast("ProposalQuery", filters.query))
        listed: list[ListedProposal] = self._read(read)
        proposals = _open_first(listed)
        choices = [
            Choice(
                f"#{proposal.number} {state_of_proposal(proposal.state, proposal.draft)}  "
                f"{safe(proposal.title)}  {_standing(proposal)}  "
                f"{_who(proposal)} {self._ago(proposal.updated_at)}",
                partial(self.proposal, repo, proposal.number),
            )
            for proposal in proposals
        ]
        return _filter_page(
            "Proposals",
            repo,
            filters,
            choices,
            partial(self.proposals, repo),
            open_of=_count_open(proposals),
        )

    def proposal(self, repo: Repo, number: int) -> Page:
        proposal: Proposal = self._read(contents.proposal(repo.id, number))
        checks = self._read(contents.seal_checks(repo.id, proposal.head_seal)).items
        threads: list[Thread] = self._read(contents.threads(repo.id, number))
        state = state_of_proposal(proposal.state, proposal.draft)
        lines = [
            f"{state}, proposed by {_who(proposal)} {self._ago(proposal.created_at)}",
            f"{safe(proposal.head)} into {safe(proposal.base)}",
            *_list_names("labels", (label.name for label in proposal.labels)),
            *_list_names("assigned", (_handle(actor) for actor in proposal.assignees)),
            *([merges_when(proposal).removeprefix(WAITS).strip()] if proposal.auto_merge else []),
            *_says_whether_it_merges(proposal),
            *_list_names("conflicts in", proposal.conflicts),
            *([conflict_way_out(proposal)] if proposal.conflicts else []),
            *_text(proposal.body),
            *(
                f"check {safe(check.name)}: {check.state}"
                + (", required" if must_pass(check, proposal)[0] else "")
                + (f", {safe(check.summary)}" if check.summary else "")
                for check in checks
            ),
            *self._talk(repo, proposal, threads),
        ]
        choices = [Choice("changed lines", partial(self._changes, repo, proposal))]
        choices += [
            Choice(
                f"thread on {safe(name_place(thread))}, {_state(thread)}, {_comments(thread)}, "
                f"{_who(thread)}: {safe(first_line(thread.comments[0].body)) if thread.comments else ''}",
                partial(self._thread, repo, proposal, thread.id),
            )
            for thread in threads
        ]
        offers = self._acts.of_proposal(repo, proposal, partial(self._label_names, repo))
        choices += choices_of(offers)
        if self._acts.may_merge(repo, proposal):
            choices.append(Choice("merge", partial(self._merge, repo, number)))
        return page_of(
            repo,
            f"#{number} {safe(proposal.title)}",
            lines,
            choices,
            text=True,
            pr=str(number),
            commands=OF_PROPOSAL if offers else (),
        )

    def _merge(self, repo: Repo, number: int) -> Page:
        """Returns the page with the ways to merge a proposal. Once it is merged, or closed, the page says
        so."""
        proposal: Proposal = self._read(contents.proposal(repo.id, number))
        if not self._acts.may_merge(repo, proposal):
            state = state_of_proposal(proposal.state, proposal.draft)
            return page_of(repo, f"merge of #{number}", [f"#{number} is {state}"], pr=str(number))
        offers = choices_of(self._acts.of_merge(repo, proposal))
        way_out = [conflict_way_out(proposal)] if proposal.merge_state == "conflicts" else []
        lines = [*says_merge(proposal), *way_out]
        return page_of(
            repo, f"merge of #{number} {safe(proposal.title)}", lines, offers, text=True, pr=str(number)
        )

    def _talk(self, repo: Repo, proposal: Proposal, threads: Sequence[Thread]) -> list[str]:
        """Returns the comments, the reviews, and what else happened to a proposal, in order of time."""
        timeline = self._read(contents.timeline(repo.id, proposal.number))
        talk = self._events(list_happened(timeline, proposal, threads))
        for review in self._read(contents.reviews(repo.id, proposal.number)):
            verdict = VERDICTS.get(review.verdict, review.verdict.replace("_", " "))
            head = f"{_handle(review.reviewer)} {verdict} {self._ago(review.created_at)}"
            text = _text(review.body)
            talk.append((review.created_at, [f"{head}:" if text else head, *text]))
        for comment in self._read(contents.comments(repo.id, proposal.number)):
            talk.append((comment.created_at, self._comments([comment])))
        return _in_order(talk)

    def _events(self, happened: Sequence[Happened]) -> list[tuple[str, list[str]]]:
        """Returns what happened, as (time, lines). A comment on lines has its first words."""
        events: list[tuple[str, list[str]]] = []
        for event in happened:
            who = f"@{safe(event.who)} " if event.who else ""
            text = f": {safe(first_line(event.comment.body))}" if event.comment is not None else ""
            events.append((event.at, [f"{who}{safe(event.words)} {self._ago(event.at)}{text}"]))
        return events

    def _changes(self, repo: Repo, proposal: Proposal) -> Page:
        base = proposal.merge_base or proposal.base_seal
        compare: Compare = self._read(contents.changes(repo.id, base, proposal.head_seal))
        return page_of(
            repo,
            f"#{proposal.number}, {count(len(compare.files), 'file')}",
            changed_lines(compare),
            choices_of(self._acts.of_changes(repo, proposal, compare.files)),
            text=True,
            pr=str(proposal.number),
        )

    def _thread(self, repo: Repo, proposal: Proposal, id: str) -> Page:
        threads: list[Thread] = self._read(contents.threads(repo.id, proposal.number))
        thread = next((thread for thread in threads if thread.id == id), None)
        if thread is None:
            return page_of(repo, "thread", ["it is no longer there"], pr=str(proposal.number))
        suggestion = thread.suggestion
        lines = [
            f"{_state(thread)}, on {_lines_in_words(thread)}",
            *self._lines_of(repo, thread),
            *self._comments(thread.comments),
            *(["suggested lines:", *_code(suggestion.text)] if suggestion is not None else []),
        ]
        return page_of(
            repo,
            f"thread by {_who(thread)}",
            lines,
            choices_of(self._acts.of_thread(repo, proposal, thread)),
            text=True,
            pr=str(proposal.number),
            commands=[f"pr apply {proposal.number} {safe(id)}"] if suggestion is not None else (),
        )

    def _lines_of(self, repo: Repo, thread: Thread) -> list[str]:
        """Returns the first lines of the code that a thread is about, with their numbers."""
        at = thread.place or thread
        try:
            blob: Blob = self._read(contents.file(repo.id, at.seal_id, at.path))
        except SvcError:  # no longer readable; what was said about it still is
            return []
        lines = lines_of(blob.content or "") if blob.encoding == "utf-8" else []
        numbered = [*enumerate(lines, 1)][at.start - 1 : min(at.end, at.start + QUOTED - 1)]
        return [f"line {number}:  {safe(line)}" for number, line in numbered]

    # --- runs and releases

    def workflows(self, repo: Repo, seal: str | None) -> Page:
        lines = []
        if seal is not None:
            checks = self._read(contents.seal_checks(repo.id, seal))
            lines = [f"check {safe(check.name)} on the head: {check.state}" for check in checks.items]
        choices = [
            Choice(
                f"{safe(run.name)} {_outcome(run)}  on {safe(run.branch)} {run.seal_id[:8]}, attempt "
                f"{run.attempt}  {self._ago(run.created_at)}",
                partial(self.run, repo, run),
            )
            for run in self._read(contents.runs(repo.id))
        ]
        return page_of(repo, f"Runs of {safe(repo.full_name)}, {len(choices)}", lines, choices)

    def run(self, repo: Repo, listed: Run) -> Page:
        run: Run = self._read(contents.run(repo.id, listed.id))
        lines = [
            f"{_outcome(run)}, attempt {run.attempt} on {run.seal_id[:8]} of {safe(run.branch)}",
            f"recorded by {_handle(run.reported_by)} {self._ago(run.created_at)}",
            *_text(run.summary or ""),
            *([safe(run.details_url)] if run.details_url else []),
        ]
        return page_of(
            repo,
            f"run of {safe(run.name)}",
            lines,
            choices_of(self._acts.of_run(repo, run)),
            text=True,
            run=run.id,
        )

    def releases(self, repo: Repo) -> Page:
        releases: list[Release] = self._read(contents.releases(repo.id))
        choices = [
            Choice(
                f"{safe(release.version)}  {safe(first_line(release.notes))}  "
                f"{count(len(release.assets), 'file')}  {self._ago(release.created_at)}",
                partial(self.release, repo, release),
            )
            for release in releases
        ]
        return page_of(repo, f"Releases of {safe(repo.full_name)}, {len(releases)}", (), choices)

    def release(self, repo: Repo, release: Release) -> Page:
        lines = [
            f"seal {release.seal_id[:8]}, by {_who(release)} {self._ago(release.created_at)}",
            signature(repo.id, release)[0],
            *_text(release.notes),
            *(f"file {safe(asset.name)}, {asset.size:,} bytes" for asset in release.assets),
        ]
        return page_of(repo, f"release {safe(release.version)}", lines, text=True)

    # --- what concerns the repository

    def security(self, repo: Repo) -> Page:
        advisories = self._read(contents.advisories(repo.full_name))
        rules = self._read(contents.protections(repo.id))
        lines = [f"advisory {safe(advisory.id)}: {safe(advisory.summary)}" for advisory in advisories]
        lines.append("franking evidence: not in this version of svc")
        lines += [f"rule for branches {safe(rule.pattern)}" for rule in rules]
        title = f"Security: {count(len(advisories), 'advisory', 'advisories')}, {count(len(rules), 'rule')}"
        return page_of(repo, title, lines)

    def insights(self, repo: Repo, seal: str | None) -> Page:
        dependencies = self._read(contents.dependencies(repo.id, seal)).items if seal is not None else []
        dependents = self._read(contents.dependents(repo.id))
        lines = [
            f"depends on {safe(dependency.name)} {safe(dependency.requirement)} "
            f"({dependency.ecosystem}, {safe(dependency.path)})"
            + "".join(f", advisory {safe(matched.id)}" for matched in dependency.advisories)
            for dependency in dependencies
        ]
        lines += [f"needed by {safe(dependent.full_name)}" for dependent in dependents]
        return page_of(
            repo, f"Insights: {len(dependencies)} dependencies, {len(dependents)} dependents", lines
        )

    def name_inbox(self) -> str:
        """Returns the text of the choice that opens the inbox: how much is in it, and needs the account."""
        try:
            return _count_inbox(self._read(reads.inbox())).lower()
        except SvcError:
            return "inbox"

    def inbox(self, full_names: Mapping[str, Repo]) -> Page:
        """Returns the page of the inbox, with what needs the account first. `full_names`: the repositories
        that can be opened, by OWNER/NAME."""
        items: list[InboxItem] = self._read(reads.inbox())
        items = sorted(items, key=lambda item: SECTIONS.index(section_of(item)))
        choices = self._choices_of_inbox(full_names, items)
        choices.append(Choice("what is done", partial(self._done, full_names)))
        lines = [] if items else ["nothing waits for you"]
        return Page(_count_inbox(items), lines, choices, commands=OF_INBOX)

    def _done(self, full_names: Mapping[str, Repo]) -> Page:
        """Returns the page of what is done, so that it can be taken back into the inbox."""
        items: list[InboxItem] = [item for item in self._read(reads.whole_inbox()) if item.done]
        choices = self._choices_of_inbox(full_names, items)
        lines = [] if items else ["nothing is done yet"]
        return Page(f"Done, {len(items)}", lines, choices, commands=OF_INBOX)

    def _choices_of_inbox(self, full_names: Mapping[str, Repo], items: Sequence[InboxItem]) -> list[Choice]:
        return [Choice(self._inbox_row(item), partial(self._inbox_item, full_names, item)) for item in items]

    def _inbox_row(self, item: InboxItem) -> str:
        subject, full_name = item.subject, item.repo.full_name if item.repo is not None else ""
        number = f" #{subject.number}" if subject.number is not None else ""
        where = f"{safe(full_name or subject.title)}{number}"
        words = f"{item.reason.replace('_', ' ')}: {where} {safe(describe(item))}"
        event = describe_event(item)
        happened = f", {safe(event)}" if event else ""
        return f"{words}{happened}  {self._ago(item.updated_at)}"

    def _inbox_item(self, full_names: Mapping[str, Repo], item: InboxItem) -> Page:
        """Returns the page that a row of the inbox is about, with what can be done to the row."""
        subject = item.subject
        repo = full_names.get(item.repo.full_name if item.repo is not None else "")
        offers = choices_of(self._acts.of_inbox_item(item))
        if repo is None or subject.number is None:
            lines = [self._inbox_row(item)]
            return Page(safe(describe(item)), lines, offers, text=True, commands=OF_INBOX)
        open_page = self.proposal if subject.kind == "proposal" else self.issue
        page = open_page(repo, subject.number)
        return page._replace(choices=[*page.choices, *offers])

    # --- words

    def _ago(self, moment: str) -> str:
        return ago(moment, self._now())

    def _comments(self, comments: Iterable[Comment]) -> list[str]:
        lines: list[str] = []
        for comment in comments:
            lines += [f"comment by {_who(comment)} {self._ago(comment.created_at)}:", *_text(comment.body)]
        return lines


def _count_inbox(items: Sequence[InboxItem]) -> str:
    needs = sum(section_of(item) == SECTIONS[0] for item in items)
    if not items:
        return "Inbox, nothing"
    return f"Inbox, {count(len(items), 'row')}, {needs or 'none'} need{'s' if needs == 1 else ''} you"


def _filter_page(
    what: str,
    repo: Repo,
    filters: Filter,
    choices: list[Choice],
    search: Callable[[str], Page],
    offers: Sequence[Choice] = (),
    *,
    open_of: int,
) -> Page:
    """Returns the page of a list. It has only the choices that contain the free text of the filter. `offers`:
    actions, which follow the list. `open_of`: how many of all `choices` are open."""
    free = filters.free.casefold().split()
    matching = [choice for choice in choices if all(word in choice.text.casefold() for word in free)]
    typed = safe(filters.typed)
    words = [f"{name}:" for name in WORDS[what.lower()]]
    lines = [f"filter: {typed}"] if typed else []
    if not matching:
        lines.append(f"no {what.lower()} match; / lists all" if typed else f"no {what.lower()}")
    how_many = f"{len(matching)} match" if typed else f"{open_of} open of {len(matching)}"
    return page_of(
        repo,
        f"{what} of {safe(repo.full_name)}, {how_many}",
        lines,
        [*matching, *offers],
        search,
        words=words,
    )


def _in_order(talk: Sequence[tuple[str, list[str]]]) -> list[str]:
    """Returns the lines of a talk, given as (time, lines), in order of time."""
    return [line for _, lines in sorted(talk, key=lambda entry: entry[0]) for line in lines]


L = TypeVar("L", ListedIssue, ListedProposal)


def _open_first(items: Sequence[L]) -> list[L]:
    """Returns the open ones first, then the others, each with the newest change first."""
    newest = sorted(items, key=lambda item: item.updated_at, reverse=True)
    return sorted(newest, key=lambda item: item.state != "open")


def _count_open(items: Sequence[ListedIssue] | Sequence[ListedProposal]) -> int:
    return sum(item.state == "open" for item in items)


def changed_lines(compare: Compare) -> list[str]:
    """Returns the changed files of a comparison as lines of text."""
    from tui.widgets.patch import Patches

    return ["".join(_plain(*part) for part in item.left) for item in Patches(compare.files)]


def _plain(text: str, role: str) -> str:
    """Returns the text of a part. The number of deleted lines has a hyphen for its sign; code stays as it
    is."""
    return text.replace("−", "-") if role == "bad" else text


def _who(written: Any) -> str:
    return _handle(written.author)


def _comments(thread: Thread) -> str:
    return count(len(thread.comments), "comment")


def _says_whether_it_merges(proposal: Proposal) -> list[str]:
    if proposal.state != "open" or proposal.draft:
        return []
    why = reasons(proposal)
    if not why and not proposal.conflicts and proposal.auto_merge is None:
        return ["it can be merged"]
    return [f"it cannot be merged yet: {reason}" for reason in why]


def _state(thread: Thread) -> str:
    """Returns the state of a thread in words, and what happened to its lines since."""
    at = thread.place
    since = "no longer in the newest version" if at is None else {"same": "", "moved": ""}.get(at.how, at.how)
    drafted = "waits for your review" if thread.draft else ""
    return ", ".join(filter(None, (thread.state, since, drafted)))


def _lines_in_words(thread: Thread) -> str:
    """Returns the lines that a thread is about in words, such as `lines 3 to 7 of src/main.py`."""
    at = thread.place or thread
    lines = f"line {at.start}" if at.start == at.end else f"lines {at.start} to {at.end}"
    old = ", before the change" if thread.side == "old" else ""
    return f"{lines} of {safe(at.path)}{old}"


def _handle(actor: Any) -> str:
    return f"@{safe(actor.handle or '?')}"


def _labels(issue: ListedIssue) -> str:
    names = ", ".join(safe(label.name) for label in issue.labels)
    return f"labels {names}  " if names else ""


def _standing(proposal: ListedProposal) -> str:
    """Returns what a proposal waits for, and how its checks are."""
    standing = standing_of(proposal, "") if not proposal.draft else None
    waits = standing.words.partition(" ")[2] if standing is not None else ""
    rollup = proposal.checks
    checks = f"{rollup.passed} of {rollup.total} checks passed" if rollup.total else "no checks"
    if rollup.failed and "failed" not in waits:
        checks += f", {rollup.failed} failed"
    return f"{waits}, {checks}" if waits else checks


def _outcome(run: Run) -> str:
    return state_of(run.status, run.conclusion)


def _code(text: str) -> list[str]:
    return [f"  {safe(line)}" for line in text.split("\n")]


def _list_names(what: str, names: Iterable[str]) -> list[str]:
    listing = ", ".join(safe(name) for name in names)
    return [f"{what}: {listing}"] if listing else []


def _text(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    return [f"  {safe(line)}" for line in lines] if text.strip() else []
