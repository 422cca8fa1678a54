"""Parts that the screens of issues and proposals share: text, comments, labels, people, and their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

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
from localstore.core.model.collaboration.label import Label
from localstore.core.model.collaboration.proposal import Proposal, ProposalPatch
from localstore.core.model.repo import Repo
from tui import contents
from tui.drafts import named
from tui.screens.base import THREE_PANES, Base
from tui.screens.facts import FACTS, Facts, fact_rows
from tui.screens.talk.previews import colours_of, first_left, label_parts
from tui.text import Part, ago, safe
from tui.texts import Texts
from tui.widgets.lines import Item, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row

_COUNTED = ("plus", "minus", "tada", "heart", "rocket", "eyes")


class Talk(Base):
    """A screen about issue or proposal `number`. Subclasses set `one` and say which endpoints change it."""

    UPDATE: ClassVar[Endpoint[Any]]
    PATCH: ClassVar[type[IssuePatch] | type[ProposalPatch]]
    texts: Texts
    ADD_LABEL: ClassVar[Endpoint[Any]]
    REMOVE_LABEL: ClassVar[Endpoint[Any]]

    def __init__(self, repo: Repo, number: int) -> None:
        super().__init__()
        self.repo, self.number = repo, number
        self.one: Issue | Proposal | None = None
        self.comments: list[Comment] = []
        self.texts = Texts(self, self.paint)

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self.one is not None and self.mine(self.one)

    def mine(self, subject: Issue | Proposal) -> bool:
        """Whether the account is its author."""
        return bool(self.svc.client.account) and subject.author.handle == self.svc.client.account

    # --- rows

    @property
    def has_facts(self) -> bool:
        """Whether there is a column of facts."""
        return self.app.size.width >= THREE_PANES

    def show_facts(self, items: Sequence[Item]) -> None:
        """Show the column of facts, if there is room."""
        facts = self.query_one("#facts", Facts)
        facts.display = self.has_facts
        facts.show(sequence(items if self.has_facts else ()))

    def people_rows(self, subject: Issue | Proposal) -> list[Item]:
        """Its author, labels, assignees, and the time of its last change."""
        now = self.svc.clock()
        cached = self.svc.client.known(contents.labels(self.repo.id))
        colours = colours_of(cached[0]) if cached is not None else {}
        labels = first_left(label_parts([label.name for label in subject.labels], colours))
        people = "  ".join(f"@{safe(person.handle or '?')}" for person in subject.assignees)
        opened: tuple[Part, ...] = (
            (f"@{safe(subject.author.handle or '?')} ", "person"),
            (ago(subject.created_at, now), "text"),
        )
        return [
            *fact_rows("opened", opened),
            *fact_rows("labels", labels),
            *fact_rows("assigned", [(people, "person")]),
            *fact_rows("comments", [(str(subject.comments or ""), "text")]),
            *fact_rows("changed", [(ago(subject.updated_at, now), "text")]),
        ]

    def text_rows(self, text: str) -> Sequence[Row | tuple[Part, ...]]:
        beside = FACTS + 1 if self.has_facts else 0
        return self.texts.rows(text, max(20, self.size.width - 3 - beside))

    def paint(self) -> None:
        """Paint what is known."""
        raise NotImplementedError

    def reaction_rows(self, given: Reactions) -> list[tuple[Part, ...]]:
        counts = [(name, getattr(given, member)) for name, member in zip(REACTIONS, _COUNTED, strict=True)]
        listing = "  ".join(f"{name} {count}" for name, count in counts if count)
        return [((listing, "accent"),)] if listing else []

    def comment_rows(self, comment: Comment) -> Sequence[Row | tuple[Part, ...]]:
        who = f"@{safe(comment.author.handle or '?')}"
        when = ago(comment.created_at, self.svc.clock())
        edited = " · edited" if comment.updated_at != comment.created_at else ""
        return [
            (("", "text"),),
            ((f"── {who}", "person"), (f" {when}{edited}", "dim")),
            *self.text_rows(comment.body),
            *self.reaction_rows(comment.reactions),
        ]

    def queued_rows(self) -> list[tuple[Part, ...]]:
        below = f"/repos/{self.repo.id}"
        waiting = [
            words
            for kind in ("issues", "proposals")
            for words in self.svc.queued(f"{below}/{kind}/{self.number}")
        ]
        rows: list[tuple[Part, ...]] = []
        for words in waiting:
            rows += [(("", "text"),), ((f"⋯ queued  {safe(words)}", "warn"),)]
        return rows

    # --- what one can do

    def do_comment(self) -> None:
        draft = named(self.repo.id, self.number)
        self.write("comment; E opens your editor for a longer one", self._post, draft)

    def do_write(self) -> None:
        self.svc.compose_text(named(self.repo.id, self.number), self._post)

    def _post(self, text: str) -> None:
        if text.strip():
            self.send(issues.COMMENT, CommentBody(body=text.strip()))

    def do_close(self) -> None:
        if self.one is not None:
            self.patch(state="open" if self.one.state == "closed" else "closed")

    def do_title(self) -> None:
        if self.one is not None:
            self.ask("title", self._entitled, value=self.one.title)

    def _entitled(self, text: str) -> None:
        if text.strip():
            self.patch(title=text.strip())

    def do_assign(self) -> None:
        if self.one is None:
            return
        mine = any(person.handle == self.svc.client.account for person in self.one.assignees)
        self.patch(**{"remove_assignees" if mine else "add_assignees": ["@me"]})

    def do_label(self) -> None:
        from tui.screens.choose import Choose

        if self.one is None:
            return
        on = {label.name for label in self.one.labels}

        def toggle(name: str) -> None:
            self.send(self.REMOVE_LABEL if name in on else self.ADD_LABEL, name=name)

        def choose(labels: list[Label], at: float) -> None:
            if self.app.screen is self:
                items = [
                    Item(label.name, ((_mark(label.name in on), "good"), (safe(label.name), "text")))
                    for label in labels
                ]
                self.app.push_screen(Choose("labels", items, toggle))

        self.svc.load(contents.labels(self.repo.id), choose)

    def do_react(self) -> None:
        from tui.screens.choose import Choose

        if self.one is None:
            return
        given = set(self.one.reactions.viewer)
        items = [Item(name, ((_mark(name in given), "good"), (name, "text"))) for name in REACTIONS]

        def toggle(name: str) -> None:
            self.send(issues.UNREACT if name in given else issues.REACT, reaction=name)

        self.app.push_screen(Choose("reaction", items, toggle))

    def patch(self, **changes: Any) -> None:
        self.send(self.UPDATE, self.PATCH(**changes))

    def send(self, endpoint: Endpoint[Any], body: Any = None, **path: str) -> None:
        self.svc.act(endpoint, body, about=self.repo.full_name, id=self.repo.id, n=str(self.number), **path)


def _mark(on: bool) -> str:
    return "✓ " if on else "  "
