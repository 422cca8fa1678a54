"""The screen of one issue: its text and comments, and what can be done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.issue import Comment, Issue
from svc.flows.happened import list_happened
from tui import contents
from tui.actions import Action
from tui.screens.facts import beside_facts
from tui.screens.talk.acts import waiting_part
from tui.screens.talk.previews import SIGNS
from tui.screens.talk.talk import SINCE, Talk
from tui.text import Part, ago, fold, safe
from tui.texts import item
from tui.widgets.lines import Lines, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row


class IssueScreen(Talk):
    NOUN = "issue"
    ACTIONS = (
        Action(
            "comment",
            ("c",),
            "comment",
            "svc issue comment {n} -b TEXT",
            "signed_in",
            footer=True,
            right="comment.create",
        ),
        Action(
            "edit_comment",
            ("C",),
            "edit the comment",
            "svc issue comment {n} --edit-last -b TEXT",
            "signed_in",
            footer=True,
        ),
        Action(
            "close",
            ("z",),
            "close or reopen",
            "svc issue close {n}",
            "signed_in",
            footer=True,
            right="issue.close",
        ),
        Action(
            "title", ("t",), "change the title", "svc issue edit {n} -t TEXT", "signed_in", right="issue.edit"
        ),
        Action(
            "edit",
            ("T",),
            "edit the text",
            "svc issue edit {n} -b TEXT",
            "signed_in",
            footer=True,
            right="issue.edit",
        ),
        Action(
            "label",
            ("l",),
            "labels",
            "svc issue label add {n} NAME",
            "signed_in",
            footer=True,
            right="issue.label",
        ),
        Action(
            "assign",
            ("u",),
            "assign or unassign me",
            "svc issue edit {n} --add-assignee @me",
            "signed_in",
            footer=True,
            right="issue.assign",
        ),
        Action(
            "people",
            ("U",),
            "assign people",
            "svc issue edit {n} --add-assignee NAME",
            "signed_in",
            footer=True,
            right="issue.assign",
        ),
        Action(
            "write",
            ("E",),
            "comment in $EDITOR",
            "svc issue comment {n}",
            "signed_in",
            footer=True,
            right="comment.create",
        ),
        Action("react", ("e",), "react", "svc issue react {n} REACTION", "signed_in", right="reaction.add"),
    )
    one: Issue | None

    def facts(self) -> dict[str, str]:
        return {"issue": str(self.number)}

    def content(self) -> ComposeResult:
        yield from beside_facts(Lines(searches=True, linked=True, waiting="asking the server", id="issue"))

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self.repo.full_name)} #{self.number}", "title"), (f"  {self.known_title}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.do_refresh()

    def on_resize(self) -> None:
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(contents.issue(self.repo.id, self.number), self._paint_issue)
        self.svc.load(contents.comments(self.repo.id, self.number), self._paint_comments)
        self.load_timeline()

    def _paint_issue(self, issue: Issue, at: float) -> None:
        self.one = issue
        self.paint()
        self.show_frame()

    def _paint_comments(self, comments: list[Comment], at: float) -> None:
        self.comments = comments
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        issue = self.one
        if issue is None:
            self._paint_unread()
            return
        rows: list[Row | tuple[Part, ...]] = [*self.title_rows(issue.title), *self._state_of(issue)]
        talk = [*self.timed_comments(), *self.timed_lines(list_happened(self.timeline, issue))]
        new = self.find_new(talk)
        rows += fold([(self.new_words(new), "accent")], self.text_width) if new else []
        rows.append((("", "text"),))
        rows += self.text_rows(issue.body) if issue.body.strip() else [(("no text", "dim"),)]
        rows += self.reaction_rows(issue.reactions)
        items = [item(place, row) for place, row in enumerate(rows)]
        items += self.in_order(talk, new)
        items += [item(("queued", place), row) for place, row in enumerate(self.queued_rows())]
        self.show_talk(self.query_one("#issue", Lines), items)
        self.lead_to(SINCE, bool(new))
        self.show_facts(self.people_rows(issue))

    def _paint_unread(self) -> None:
        row = self._row
        if row is not None or self.queued_rows():
            items = self.unread_items(SIGNS[row.state] if row is not None else None)
            self.query_one("#issue", Lines).show(sequence(items))
            self.place_frames()

    def _state_of(self, issue: Issue) -> list[tuple[Part, ...]]:
        """Returns rows with the state, author and age of an issue. They also have its labels and people,
        unless the column of facts shows these."""
        waits = waiting_part(self.svc, self.repo.id, "issue", self.number)
        parts: list[Part] = [
            SIGNS[issue.state],
            *([waits] if waits[0] else []),
            (f"  @{safe(issue.author.handle or '?')}", "person"),
            (f" {ago(issue.created_at, self.svc.clock())}", "dim"),
        ]
        if not self.has_facts:
            parts += self.label_parts(issue)
            parts += [(f"  → @{safe(person.handle or '?')}", "person") for person in issue.assignees]
        return fold(parts, self.text_width)
