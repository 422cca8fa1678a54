"""One issue: its text, what was said, and what one can do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from textual.app import ComposeResult

from localstore.core.endpoint import Endpoint
from localstore.core.model.collaboration import issue as issues
from localstore.core.model.collaboration.issue import (
    REACTIONS,
    Comment,
    CommentBody,
    Issue,
    IssuePatch,
    Reactions,
)
from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.issues import SIGNS
from tui.text import Part, ago, safe, wrapped
from tui.widgets.lines import Item, Lines

_COUNTED = ("plus", "minus", "tada", "heart", "rocket", "eyes")


class IssueScreen(Base):
    ACTIONS = (
        Action("comment", ("c",), "comment", "svc issue comment {n} -b TEXT", "signed_in", footer=True),
        Action("write", ("E",), "comment in $EDITOR", "svc issue comment {n}", "signed_in"),
        Action("close", ("z",), "close or reopen", "svc issue close {n}", "signed_in", footer=True),
        Action("title", ("t",), "change the title", "svc issue edit {n} -t TEXT", "signed_in"),
        Action("label", ("l",), "add or remove a label", "svc issue label add {n} {name}", "signed_in"),
        Action("assign", ("u",), "assign or unassign me", "svc issue edit {n}", "signed_in"),
        Action("react", ("e",), "react", "svc issue react {n} {reaction}", "signed_in"),
    )

    def __init__(self, repo: Repo, number: int) -> None:
        super().__init__()
        self.repo, self.number = repo, number
        self._issue: Issue | None = None
        self._comments: list[Comment] = []

    def content(self) -> ComposeResult:
        yield Lines(searches=True, empty="…", id="issue")

    def title_parts(self) -> Sequence[Part]:
        title = safe(self._issue.title) if self._issue else ""
        return ((f" {safe(self.repo.full_name)} #{self.number}", "title"), (f"  {title}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def on_resize(self) -> None:
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(reads.issue(self.repo.id, self.number), self._paint_issue)
        self.svc.load(reads.comments(self.repo.id, self.number), self._paint_comments)

    def _paint_issue(self, issue: Issue, at: float) -> None:
        self._issue = issue
        self.paint()
        self.show_frame()

    def _paint_comments(self, comments: list[Comment], at: float) -> None:
        self._comments = comments
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        issue = self._issue
        if issue is None:
            return
        rows: list[tuple[Part, ...]] = [self._state_of(issue), (("", "text"),)]
        rows += self._text(issue.body) if issue.body.strip() else [(("no text", "dim"),)]
        rows += self._reactions(issue.reactions)
        for comment in self._comments:
            who = f"@{safe(comment.author.handle or '?')}"
            when = ago(comment.created_at, self.svc.clock())
            edited = " · edited" if comment.updated_at != comment.created_at else ""
            rows += [(("", "text"),), ((f"── {who}", "person"), (f" {when}{edited}", "dim"))]
            rows += [*self._text(comment.body), *self._reactions(comment.reactions)]
        for words in self.svc.queued(f"/repos/{self.repo.id}/issues/{self.number}"):
            rows += [(("", "text"),), ((f"⋯ queued  {safe(words)}", "warn"),)]
        self.query_one("#issue", Lines).show([Item(place, parts) for place, parts in enumerate(rows)])

    def _state_of(self, issue: Issue) -> tuple[Part, ...]:
        labels = " ".join(safe(label.name) for label in issue.labels)
        people = " ".join(f"@{safe(one.handle or '?')}" for one in issue.assignees)
        opened = f"  @{safe(issue.author.handle or '?')} {ago(issue.created_at, self.svc.clock())}"
        return (
            SIGNS[issue.state],
            (opened, "dim"),
            (f"  {labels}" if labels else "", "name"),
            (f"  → {people}" if people else "", "person"),
        )

    def _text(self, text: str) -> list[tuple[Part, ...]]:
        width = max(20, self.size.width - 3)
        return [((line, "text"),) for line in wrapped(text, width)]

    def _reactions(self, given: Reactions) -> list[tuple[Part, ...]]:
        counts = [(name, getattr(given, member)) for name, member in zip(REACTIONS, _COUNTED, strict=True)]
        said = "  ".join(f"{name} {count}" for name, count in counts if count)
        return [((said, "accent"),)] if said else []

    # --- what one can do

    def do_comment(self) -> None:
        self.ask("comment; E opens your editor for a longer one", self._post)

    def do_write(self) -> None:
        self.svc.compose_text(f"{self.repo.id}-{self.number}", self._post)

    def _post(self, text: str) -> None:
        if text.strip():
            self._act(issues.COMMENT, CommentBody(body=text.strip()))

    def do_close(self) -> None:
        if self._issue is not None:
            closed = self._issue.state == "closed"
            self._act(issues.UPDATE, IssuePatch(state="open" if closed else "closed"))

    def do_title(self) -> None:
        if self._issue is not None:
            self.ask("title", self._entitled, value=self._issue.title)

    def _entitled(self, text: str) -> None:
        if text.strip():
            self._act(issues.UPDATE, IssuePatch(title=text.strip()))

    def do_assign(self) -> None:
        if self._issue is None:
            return
        mine = any(one.handle == self.svc.client.account for one in self._issue.assignees)
        patch = IssuePatch(remove_assignees=["@me"]) if mine else IssuePatch(add_assignees=["@me"])
        self._act(issues.UPDATE, patch)

    def do_label(self) -> None:
        from tui.screens.choose import Choose

        issue = self._issue
        if issue is None:
            return
        on = {label.name for label in issue.labels}

        def toggle(name: str) -> None:
            self._act(issues.REMOVE_LABEL if name in on else issues.ADD_LABEL, name=name)

        def choose(labels: list[Any], at: float) -> None:
            if self.app.screen is self:
                items = [
                    Item(one.name, ((_mark(one.name in on), "good"), (safe(one.name), "text")))
                    for one in labels
                ]
                self.app.push_screen(Choose("labels", items, toggle))

        self.svc.load(reads.labels(self.repo.id), choose)

    def do_react(self) -> None:
        from tui.screens.choose import Choose

        if self._issue is None:
            return
        given = set(self._issue.reactions.viewer)
        items = [Item(name, ((_mark(name in given), "good"), (name, "text"))) for name in REACTIONS]

        def toggle(name: str) -> None:
            self._act(issues.UNREACT if name in given else issues.REACT, reaction=name)

        self.app.push_screen(Choose("reaction", items, toggle))

    def _act(self, endpoint: Endpoint[Any], body: Any = None, **path: str) -> None:
        self.svc.act(endpoint, body, about=self.repo.full_name, id=self.repo.id, n=str(self.number), **path)


def _mark(on: bool) -> str:
    return "✓ " if on else "  "
