"""Issues and proposals of a repository."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from localstore.core.endpoint import Endpoint
from localstore.core.errors import UsageError
from localstore.core.model.collaboration import issue as issues
from localstore.core.model.collaboration import proposal as proposals
from localstore.core.model.collaboration.issue import Comment, Issue, IssueCreate, IssueQuery
from localstore.core.model.collaboration.proposal import Proposal, ProposalCreate
from tui import contents
from tui.actions import Action
from tui.drafts import named
from tui.filters import STATES, Kind, complete, parse
from tui.listed import ListedIssue, ListedProposal
from tui.screens.proposal.words import checks_of, state_of, verdicts_of
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.screens.talk.previews import SIGNS, head_of_issue, head_of_proposal, said
from tui.text import Part, ago, safe
from tui.widgets.lines import Item, Lines
from tui.widgets.made import Made

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo import RepoScreen

CANDIDATES = 12  # that are named while a word is typed
NARROW = 60  # columns below which a row has its sign, its number, its title and its time only


def text(one: ListedIssue | ListedProposal) -> str:
    """What a filter looks in."""
    labels = " ".join([label.name for label in one.labels])
    if isinstance(one, ListedProposal):
        more = f"{one.head} {one.base}"
    else:
        more = " ".join([f"@{person.handle}" for person in one.assignees])
    return f"#{one.number} {one.title} {labels} @{one.author.handle or '?'} {more}"


class Issues(Split):
    LIST = "issues"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc issue view {n}", footer=True),
        Action("kind", ("p",), "issues or proposals", "svc pr list", footer=True),
        Action("add", ("a",), "new", "svc issue create -t {title}", "signed_in", True, "issue.create"),
        Action("state", ("o",), "open, closed or all", "svc issue list --state {state}", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoScreen) -> None:
        super().__init__(of)
        self._kind: Kind = "issues"
        self._filter = parse("issues", "")
        self._found: Sequence[ListedIssue] | Sequence[ListedProposal] = ()

    def facts(self) -> dict[str, str]:
        number = self.query_one("#issues", Lines).key
        kind = "issue" if self._kind == "issues" else "pr"
        return {kind: str(number)} if number is not None else {}

    def shown(self) -> None:
        self.do_refresh()
        self.svc.load(contents.labels(self.of.repo.id), lambda labels, at: None)  # for the filter

    def do_refresh(self) -> None:
        repo_id, asked = self.of.repo.id, self._filter

        def paint(found: list[ListedIssue] | list[ListedProposal], at: float) -> None:
            if asked is self._filter:
                self._found = found
                self.paint()

        if isinstance(asked.query, IssueQuery):
            self.svc.load(contents.issues(repo_id, asked.query), paint)
        else:
            self.svc.load(contents.proposals(repo_id, asked.query), paint)

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        if not self.is_mounted:
            return
        found = self._found
        queued = self.svc.queued(f"/repos/{self.of.repo.id}/{self._kind}")
        words = self._filter.said
        first = [] if self.previews else [Item(None, self.titled())]  # else it is in the frame
        if not found:
            narrowed = words or self._filter.query.state != "open"
            none = f"no open {self._kind}; a opens one"
            none = f"no {self._kind} match; change it with /" if narrowed else none
            first.append(Item(None, ((none, "dim"),)))
        last = [Item(None, ((f"⋯ queued  {safe(one)}", "warn"),)) for one in queued]
        rows = Made[ListedIssue | ListedProposal](found, self._row, lambda one: one.number, text, first, last)
        self.query_one("#issues", Lines).show(rows)
        self.rest()

    def titled(self) -> tuple[Part, ...]:
        words = self._filter.said
        title = f"{self._kind.capitalize()}, {self._filter.query.state} {f'{safe(words)} ' if words else ''}"
        other = "proposals" if self._kind == "issues" else "issues"
        return (title, "title"), (f"{len(self._found)}", "dim"), (f"   p {other}", "dim")

    def count(self) -> str:
        """The number of open ones."""
        counts = self._kind == "issues" and self._filter.query.state == "open" and not self._filter.said
        return str(len(self._found)) if counts and self._found else ""

    def position(self) -> str:
        lines = self.listed
        return f"{lines.cursor + 1} of {len(lines.rows)}" if lines.key is not None else ""

    def preview_of(self, key: Hashable) -> None:
        repo_id, number = self.of.repo.id, int(str(key))
        comments: list[Comment] = []
        shown: list[Issue | Proposal] = []

        def paint() -> None:
            if shown:
                self.show_preview(key, f"#{number}", self._preview_rows(shown[-1], comments))

        def paint_one(one: Issue | Proposal, at: float) -> None:
            shown.append(one)
            paint()
            if one.comments and not comments:
                self.svc.load(contents.comments(repo_id, number), paint_comments)

        def paint_comments(found: list[Comment], at: float) -> None:
            comments[:] = found
            paint()

        if self._kind == "issues":
            self.svc.load(contents.issue(repo_id, number), paint_one)
        else:
            self.svc.load(contents.proposal(repo_id, number), paint_one)

    def _preview_rows(
        self, one: Issue | Proposal, comments: Sequence[Comment]
    ) -> list[Row | tuple[Part, ...]]:
        width, now = max(20, self.preview.size.width), self.svc.clock()
        head = head_of_issue if isinstance(one, Issue) else head_of_proposal
        rows: list[Row | tuple[Part, ...]] = [*head(one, width, now)]  # type: ignore[arg-type]
        rows += self.text_rows(one.body) if one.body.strip() else [(("no text", "dim"),)]
        for comment in comments:
            rows += said(comment, self.text_rows(comment.body), now)
        return rows

    def _row(self, one: ListedIssue | ListedProposal) -> Item:
        return self._proposal_row(one) if isinstance(one, ListedProposal) else self._issue_row(one)

    def _proposal_row(self, one: ListedProposal) -> Item:
        if self._narrow:
            return self._narrow_row(one, state_of(one))
        labels = " ".join(label.name for label in one.labels)
        who = f"@{safe(one.author.handle or '?')}"
        check, verdict = checks_of(one.checks), verdicts_of(one)
        left: tuple[Part, ...] = (
            state_of(one),
            (f" #{one.number:<5}", "accent"),
            (safe(one.title), "text"),
            (f"  {safe(labels)}" if labels else "", "name"),
            (f"  {who}", "dim"),
        )
        right: tuple[Part, ...] = (
            (f"{verdict[0]}  " if verdict[0] else "", verdict[1]),
            (f"{check[0]}  " if check[0] else "", check[1]),
            (f"{ago(one.updated_at, self.svc.clock())} ", "dim"),
        )
        return Item(one.number, left, right)

    def _issue_row(self, issue: ListedIssue) -> Item:
        if self._narrow:
            return self._narrow_row(issue, SIGNS[issue.state])
        labels = " ".join(label.name for label in issue.labels)
        who = f"@{safe(issue.author.handle or '?')}"
        left: tuple[Part, ...] = (
            SIGNS[issue.state],
            (f" #{issue.number:<5}", "accent"),
            (safe(issue.title), "text"),
            (f"  {safe(labels)}" if labels else "", "name"),
            (f"  {who}", "dim"),
        )
        talk = f"{issue.comments} said  " if issue.comments else ""
        right = ((f"{talk}{ago(issue.updated_at, self.svc.clock())} ", "dim"),)
        return Item(issue.number, left, right)

    @property
    def _narrow(self) -> bool:
        """Whether there is room for little more than titles."""
        return self.listed.size.width < NARROW

    def _narrow_row(self, one: ListedIssue | ListedProposal, state: Part) -> Item:
        """Its state as a sign, which the preview says in words; of checks what is bad."""
        sign = state[0].strip()[:1]
        left: tuple[Part, ...] = (
            (f"{sign} ", state[1]),
            (f"#{one.number} ", "accent"),
            (safe(one.title), "text"),
        )
        check = checks_of(one.checks) if isinstance(one, ListedProposal) else ("", "text")
        when = ago(one.updated_at, self.svc.clock()).removesuffix(" ago")
        return Item(
            one.number, left, ((f"{check[0][:1]} " if check[0] else "", check[1]), (f"{when} ", "dim"))
        )

    def do_kind(self) -> None:
        self._kind = "proposals" if self._kind == "issues" else "issues"
        self._filter, self._found = parse(self._kind, ""), ()
        self.query_one("#issues", Lines).filter("")
        self.paint()
        self.do_refresh()

    def do_state(self) -> None:
        states = STATES[self._kind]
        state = states[(states.index(self._filter.query.state) + 1) % len(states)]
        self._filter = parse(self._kind, f"{self._filter.typed} state:{state}")
        self.do_refresh()

    # --- the filter

    def do_filter(self, typed: str | None = None) -> None:
        """Ask for words and free text: the free text counts at each key, the words at enter.
        `typed`: what the prompt begins with, instead of the filter."""
        lines, before = self.query_one("#issues", Lines), self._filter

        def changed(text: str) -> None:
            if text == typed:  # what was refused, with the reason below it
                return
            with suppress(UsageError):  # a word that is being typed
                lines.filter(parse(self._kind, text).free)
            candidates = complete(self._kind, text, self._values)[1]
            self.of.say("  ".join(candidates[:CANDIDATES]), "dim")

        def done(text: str) -> None:
            try:
                self._filter = parse(self._kind, text)
            except UsageError as error:
                lines.filter(before.free)
                self.do_filter(text)  # to be corrected
                self.of.say(error.detail, "warn")
                return
            self.of.say("")
            lines.filter(self._filter.free)
            self.do_refresh()

        self.of.ask(
            "filter",
            done,
            changed,
            before.typed if typed is None else typed,
            lambda text: complete(self._kind, text, self._values)[0],
            lambda: lines.filter(before.free),
            filtered=lines,
        )

    def leave_filter(self) -> bool:
        if self.svc.pressed != "escape" or not (self._filter.said or self._filter.free):
            return False
        self._filter = parse(self._kind, "", self._filter.query.state)
        self.query_one("#issues", Lines).filter("")
        self.do_refresh()
        return True

    def _values(self, word: str) -> list[str]:
        """The values of a word that are known here."""
        if word in ("base", "head"):
            return [ref.name for ref in self.of.refs if ref.type == "branch"]
        found = self._found
        if word == "label":
            known = self.svc.client.known(contents.labels(self.of.repo.id))
            names = [label.name for label in known[0]] if known is not None else []
            return [*names, *(label.name for one in found for label in one.labels)]
        people = [actor for one in found for actor in (one.author, *one.assignees)]
        return [actor.handle for actor in people if actor.handle]

    def do_add(self) -> None:
        if self._kind == "proposals":
            self._propose()
            return

        def done(title: str) -> None:
            if title.strip():
                self._act(issues.CREATE, IssueCreate(title=title.strip()))

        self.of.write("title of the issue", done, named(self.of.repo.id, 0, "issue"))

    def _propose(self) -> None:
        """Choose a branch and give a title."""
        from tui.screens.choose import Choose

        base = self.of.repo.default_branch
        branches = [ref.name for ref in self.of.refs if ref.type == "branch" and ref.name != base]
        if not branches:
            self.of.say(f"there is no branch besides {base}; make one: svc repo branch NAME", "warn")
            return

        def chosen(head: str) -> None:
            def done(title: str) -> None:
                if title.strip():
                    self._act(proposals.CREATE, ProposalCreate(head=head, base=base, title=title.strip()))

            words = f"title of the proposal of {head} for {base}"
            self.of.write(words, done, named(self.of.repo.id, 0, "proposal", head))

        items = [Item(name, ((safe(name), "text"),)) for name in branches]
        self.app.push_screen(Choose("branch to propose", items, chosen))

    def _act(self, endpoint: Endpoint[Any], body: Any) -> None:
        repo = self.of.repo
        self.svc.act(endpoint, body, about=repo.full_name, id=repo.id)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        from tui.screens.proposal.screen import ProposalScreen
        from tui.screens.talk.issue import IssueScreen

        number = self.listed.key if event.lines.id == "preview" else event.key
        if number is None:
            return
        kind = IssueScreen if self._kind == "issues" else ProposalScreen
        self.app.push_screen(kind(self.of.repo, int(str(number))))
