"""Issues of a repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.collaboration import issue as issues
from localstore.core.model.collaboration.issue import Issue, IssueCreate
from tui import reads
from tui.actions import Action
from tui.screens.view import View
from tui.text import Part, ago, safe
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.screens.repo import RepoScreen

STATES = ("open", "closed", "all")
SIGNS: dict[str, Part] = {"open": ("○ open  ", "good"), "closed": ("✓ closed", "dim")}


class Issues(View):
    ACTIONS = (
        Action("open", ("enter",), "open", "svc issue view {n}", footer=True),
        Action("add", ("a",), "new issue", "svc issue create -t {title}", needs="signed_in", footer=True),
        Action("state", ("o",), "open, closed or all", "svc issue list --state {state}", footer=True),
    )

    def __init__(self, of: RepoScreen) -> None:
        super().__init__(of)
        self._state = STATES[0]
        self._issues: list[Issue] = []

    def compose(self) -> ComposeResult:
        yield Lines(id="issues")

    def shown(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(reads.issues(self.of.repo.id, self._state), self._paint)

    def _paint(self, found: list[Issue], at: float) -> None:
        self._issues = found
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        queued = self.svc.queued(f"/repos/{self.of.repo.id}/issues")
        heading = Item(None, ((f"Issues, {self._state} ", "title"), (str(len(self._issues)), "dim")))
        rows = [heading, *(self._row(issue) for issue in self._issues)]
        if not self._issues:
            rows.append(Item(None, (("no issues; a opens one", "dim"),)))
        rows += [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in queued]
        self.query_one("#issues", Lines).show(sequence(rows))

    def _row(self, issue: Issue) -> Item:
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
        assigned = " ".join(f"@{one.handle}" for one in issue.assignees)
        return Item(issue.number, left, right, f"#{issue.number} {issue.title} {labels} {who} {assigned}")

    def do_state(self) -> None:
        self._state = STATES[(STATES.index(self._state) + 1) % len(STATES)]
        self.do_refresh()

    def do_add(self) -> None:
        repo = self.of.repo

        def done(title: str) -> None:
            if title.strip():
                self.svc.act(
                    issues.CREATE, IssueCreate(title=title.strip()), about=repo.full_name, id=repo.id
                )

        self.of.ask("title of the issue", done)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        from tui.screens.issue import IssueScreen

        self.app.push_screen(IssueScreen(self.of.repo, int(str(event.key))))
