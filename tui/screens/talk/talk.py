"""What the screens of issues and of proposals share: text, comments, labels, people, and the keys for
them."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.cells import cell_len

from localstore.core.endpoint import Endpoint
from localstore.core.model import issue as issues
from localstore.core.model.issue import (
    REACTIONS,
    Comment,
    CommentBody,
    Issue,
    Reactions,
)
from localstore.core.model.proposal import Proposal, TimelineItem
from localstore.core.model.repo import Repo
from localstore.core.model.thread import Thread
from localstore.core.words import count, first_line
from svc.flows.happened import Happened
from svc.flows.place.rights import refusal
from tui import contents
from tui.actions import Action
from tui.blocks import CARD, draw_card
from tui.drafts import name_draft
from tui.listed import ListedIssue, ListedProposal
from tui.screens.base import Base
from tui.screens.facts import WithFacts
from tui.screens.tab_keys import TAB_ACTIONS, LeadsToTabs
from tui.screens.talk.acts import DRAFTED, About, Acts, Noun, has_draft
from tui.screens.talk.mentions import Name, known_names
from tui.screens.talk.previews import Colours, colours_of, label_parts, people_facts
from tui.screens.talk.returning import LastRead
from tui.text import Part, ago, fold, safe
from tui.texts import Texts, first_words, item
from tui.widgets.lines import Item, Lines, sequence
from tui.wording import UNANSWERED, UNSEEN

if TYPE_CHECKING:
    from tui.markdown.words import Row

Listed = ListedIssue | ListedProposal
SINCE = ("since",)  # the key of the row before what is new
CARD_WIDTH = 100  # columns of a card at most
SUGGESTED_MAX = 6  # lines of a suggestion that the talk shows
LIGHT = 14  # columns of the light at the right of the title
_REACTED = {"heart": "♥ heart", "eyes": "◉ eyes", "rocket": "▲ rocket", "tada": "✶ tada"}
_COUNTED = ("plus", "minus", "tada", "heart", "rocket", "eyes")


class Timed(NamedTuple):
    """A part of the talk: a comment, a review, or something that happened. `at`: when. `is_line`: it is one
    line without a card. `who`: the handle of who did it."""

    at: str
    items: list[Item]
    is_line: bool = False
    who: str = ""


def no_timeline(error: BaseException) -> None:
    """Does nothing, because the talk says enough without what happened."""


class Talk(Acts, WithFacts, LeadsToTabs):
    """The screen of the issue or proposal `number`. Subclasses set `NOUN` (which of the two it is), and set
    `one` (its content) once that has arrived."""

    NOUN: ClassVar[Noun]
    texts: Texts

    def __init__(self, repo: Repo, number: int, row: Listed | None = None) -> None:
        """Makes the screen. `row`: what a list knows about the issue or proposal. It is shown until the issue
        or proposal itself has arrived."""
        super().__init__()
        self.repo, self.number, self._row = repo, number, row
        self._unread = ""  # why it is not shown, once the server was asked
        self.one: Issue | Proposal | None = None
        self.comments: list[Comment] = []
        self.timeline: list[TimelineItem] = []
        # How many comments there were when the user sent one, -1 once it is there, and the cursor's row.
        self._sent: tuple[int, Hashable | None] = -1, None
        self.texts = Texts(self, self.paint)
        self._last_read: LastRead | None = None
        self._opened_at, self._was_led = time.monotonic(), False

    def actions(self) -> tuple[Action, ...]:
        return (*self.ACTIONS, *TAB_ACTIONS)

    @property
    def front(self) -> Base:
        return self

    @property
    def chosen(self) -> About:
        return About(self.NOUN, self.repo, self.number, self.one or self._row)

    def command_of(self, action: Action) -> str:
        return self.act_command(action)

    def label_of(self, action: Action) -> str:
        if action.id in ("edit_comment", "write"):
            return self.label_of_comment(action)
        if action.id == "edit" and self.one is None:
            return ""
        return self.act_label(action) if super().label_of(action) else ""

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self.one is not None and self.mine(self.one)

    def mine(self, subject: Issue | Proposal) -> bool:
        """Whether the account is the author of the issue or proposal."""
        return bool(self.svc.client.account) and subject.author.handle == self.svc.client.account

    # --- rows

    def people_rows(self, subject: Issue | Proposal) -> list[Item]:
        """Returns rows for the column of facts: the author, labels and assignees, and the time of the last
        change."""
        return people_facts(subject, self._colours(), self.svc.clock())

    @property
    def known_title(self) -> str:
        """The title of the issue or proposal, "" while it is unknown."""
        talk = self.one or self._row
        return safe(talk.title) if talk is not None else ""

    def say_unread(self, text: str) -> None:
        super().say_unread(text)
        if self.one is None:
            self._unread = safe(text)
            self.paint()

    def unread_items(self, state: Part | None) -> list[Item]:
        """Returns what is shown of an issue or proposal that was never read on this machine: what a list
        knows about it, why its text is missing, and the account's own queued comments. `state`: its state,
        None if no list knows it."""
        listed, rows = self._row, []
        if listed is not None and state is not None:
            labels = label_parts([label.name for label in listed.labels], self._colours())
            people = [(f"  → @{safe(person.handle or '?')}", "person") for person in listed.assignees]
            chips = [state, (f"  @{safe(listed.author.handle or '?')}", "person"), *labels, *people]
            rows += [*self.title_rows(listed.title), *fold(chips, self.text_width), (("", "text"),)]
        why = self._unread or "asking the server"
        if self._unread not in ("", UNSEEN, UNANSWERED):
            why = f"Its text was not read on this machine: {self._unread}"
        rows += fold([(why, "dim")], self.text_width)
        return [item(("unread", place), row) for place, row in enumerate([*rows, *self.queued_rows()])]

    def text_rows(self, text: str) -> Sequence[Row | tuple[Part, ...]]:
        return self.texts.rows(text, self.text_width)

    def paint(self) -> None:
        """Paint what has arrived from the server so far."""
        raise NotImplementedError

    def reaction_rows(self, given: Reactions) -> list[tuple[Part, ...]]:
        counts = [(name, getattr(given, member)) for name, member in zip(REACTIONS, _COUNTED, strict=True)]
        listing = "  ".join(f"{_REACTED.get(name, name)} ×{count}" for name, count in counts if count)
        return [((listing, "accent"),)] if listing else []

    def comment_items(self, comment: Comment) -> list[Item]:
        """Returns a comment as rows of the list. The keys of the rows contain the id of the comment."""
        rows = self._comment_rows(comment)
        return [item(("comment", comment.id, place), row) for place, row in enumerate(rows)]

    def _comment_rows(self, comment: Comment) -> Sequence[Row | tuple[Part, ...]]:
        when = ago(comment.created_at, self.svc.clock())
        edited = " · edited" if comment.updated_at != comment.created_at else ""
        head = [(f"@{safe(comment.author.handle or '?')}", "person"), (f" · {when}{edited}", "dim")]
        return self.card_rows(head, comment.body, comment.reactions)

    def card_rows(
        self, head: Sequence[Part], text: str, reactions: Reactions | None = None
    ) -> list[Row | tuple[Part, ...]]:
        """Returns the rows of a card with a text that somebody wrote. `head`: the parts in the upper line of
        the card. If there is no text, that line is all."""
        width = min(CARD_WIDTH, self.text_width)
        rows: list[Row | tuple[Part, ...]] = []
        if text.strip():
            rows += self.texts.rows(text, width - CARD)
        rows += self.reaction_rows(reactions) if reactions is not None else []
        if not rows:
            return [(("", "text"),), (("── ", "line"), *head)]
        return [(("", "text"),), *draw_card(head, rows, width)]

    def page_title(self) -> str:
        return f"#{self.number}"

    def title_rows(self, title: str) -> list[tuple[Part, ...]]:
        """Returns the title in as many rows as it needs. Returns [] if the title line of the screen has room
        for all of it."""
        before = len(f" {self.repo.full_name} #{self.number}  ")
        if not self.has_frames and before + cell_len(safe(title)) + LIGHT < self.app.size.width:
            return []
        return fold([(safe(title), "title")], self.text_width)

    def label_parts(self, subject: Issue | Proposal) -> list[Part]:
        """Returns the labels as parts. A dot in its colour comes before the name of each label."""
        return label_parts([label.name for label in subject.labels], self._colours())

    def _colours(self) -> Colours:
        """Returns the colours of the repository's labels, by name. Returns {} while they are unknown."""
        cached = self.svc.client.read_cached(contents.labels(self.repo.id))
        return colours_of(cached[0]) if cached is not None else {}

    def queued_rows(self) -> list[Row | tuple[Part, ...]]:
        """Returns rows with the account's actions about this issue or proposal that wait in the outbox.
        Comments have their text."""
        below = f"/repos/{self.repo.id}"
        waiting = [
            (words, text)
            for kind in ("issues", "proposals")
            for words, text in self.svc.outbox.texts(f"{below}/{kind}/{self.number}")
        ]
        rows: list[Row | tuple[Part, ...]] = []
        for words, text in waiting:
            head: list[Part] = [(f"⋯ queued  {safe(words.partition(':')[0] if text else words)}", "warn")]
            rows += self.card_rows(head, text)
        svc, draft = self.svc, name_draft(self.repo.id, self.number)
        if svc.drafts is not None and has_draft(svc, self.repo.id, self.number):
            head = [DRAFTED, (" · c goes on writing it", "dim")]
            rows += self.card_rows(head, svc.drafts.read(draft))
        return rows

    def load_timeline(self) -> None:
        self.svc.load(contents.timeline(self.repo.id, self.number), self._take_timeline, no_timeline)

    def _take_timeline(self, timeline: list[TimelineItem], at: float) -> None:
        if timeline != self.timeline:
            self.timeline = timeline
            self.paint()

    def timed_lines(self, happened: Sequence[Happened]) -> list[Timed]:
        """Returns what happened as lines of the talk. Below a comment on lines of files stand the line that
        it is about, and its first words."""
        lines: list[Timed] = []
        for event in happened:
            words: list[Part] = [(f"{event.sign} ", event.tone), (safe(event.words), "text")]
            who: list[Part] = [(f"@{safe(event.who)} ", "person")] if event.who else []
            when: Part = (f" · {ago(event.at, self.svc.clock())}", "dim")
            key = "event", event.path, event.id
            quoted = self._quote(event)
            rows = [(("── ", "line"), *who, *words, when), *quoted]
            items = [
                Item((*key, place) if place else key, row, fixed=len(row) if place else 0)
                for place, row in enumerate(rows)
            ]
            lines.append(Timed(event.at, items, True, event.who))
        return lines

    def _quote(self, event: Happened) -> list[tuple[Part, ...]]:
        """Returns the rows below an event about a thread: the line of the file, if the thread began then, the
        first words of the comment, and the lines that it suggests."""
        thread, comment = event.thread, event.comment
        if thread is None or comment is None:
            return []
        indent: Part = ("   ", "text")
        code = self.line_of(thread) if comment is thread.comments[0] else ()
        rows: list[tuple[Part, ...]] = [(indent, *code)] if code else []
        first = first_words(comment.body)
        more = " …" if comment.body.strip() != first_line(comment.body).strip() else ""
        rows += [(indent, (safe(first), "text"), (more, "dim"))] if first else []
        if thread.suggestion is None or comment is not thread.comments[0]:
            return rows
        lines = thread.suggestion.text.split("\n") if thread.suggestion.text else []
        rows += [(indent, ("+ ", "add_mark"), (safe(line), "text")) for line in lines[:SUGGESTED_MAX]]
        unshown = len(lines) - SUGGESTED_MAX
        rest = count(unshown, "more line") if unshown > 0 else "" if lines else "nothing in their place"
        return [*rows, (indent, (rest, "dim"))] if rest else rows

    def line_of(self, thread: Thread) -> tuple[Part, ...]:
        """Returns the line of the file that a thread is about, as parts with its number. Returns () if it is
        unknown, as it is in this class. The screen of a proposal overrides this."""
        return ()

    def timed_comments(self) -> list[Timed]:
        return [
            Timed(comment.created_at, self.comment_items(comment), who=comment.author.handle or "")
            for comment in self.comments
        ]

    def find_new(self, talk: Sequence[Timed]) -> list[Timed]:
        """Returns what others did since the user has read the talk last. Remembers that all of it is read
        now. Returns [] if it was never read."""
        if self._last_read is None:
            self._last_read = LastRead(self.svc.client, self.repo.id, self.number)
        until, account = self._last_read.until, self.svc.client.account
        if talk and self.in_front:
            newest = max(timed.at for timed in talk)
            self._last_read.note(
                newest, lambda keep: self.svc.run_worker(keep, thread=True, exit_on_error=False)
            )
        return [timed for timed in talk if until and timed.at > until and timed.who != account]

    def lead_to(self, key: Hashable, is_new: bool) -> None:
        """Put the cursor on the row that names what is new, from which enter goes there. Does so once, and
        not after the user has pressed a key."""
        if is_new and not self._was_led and self.lines is not None:
            self._was_led = True
            if self.svc.key_at < self._opened_at:
                self.lines.go_to(key)
                self.lines.show_top()

    def new_words(self, new: Sequence[Timed]) -> str:
        """Returns how much is new, such as `2 comments and 1 event since you read it`. Returns "" if nothing
        is."""
        written = sum(not timed.is_line for timed in new)
        named = [
            *([count(written, "comment")] if written else []),
            *([count(len(new) - written, "event")] if len(new) > written else []),
        ]
        return f"{' and '.join(named)} since you read it last" if named else ""

    def in_order(self, talk: Sequence[Timed], new: Sequence[Timed] = ()) -> list[Item]:
        """Returns the rows of the talk in order of time. An empty row comes before a line, unless there is
        another line above it. `new`: what is new; a row before the first of it says so."""
        first_new = min((timed.at for timed in new), default="")
        items: list[Item] = []
        was_line = False
        for timed in sorted(talk, key=lambda timed: timed.at):
            if first_new and timed.at >= first_new:
                first_new = ""
                items += [
                    Item(("above", SINCE), (("", "text"),)),
                    item(SINCE, ((f"━━ new: {self.new_words(new)}", "accent"),)),
                ]
                was_line = False
            if timed.is_line and not was_line:
                items.append(Item(("above", timed.items[0].key), (("", "text"),)))
            items += timed.items
            was_line = timed.is_line
        return items

    def known_names(self) -> Sequence[Name]:
        return known_names(self.svc, self.repo, self.known_people(self.chosen))

    def _post(self, about: About, text: str) -> None:
        super()._post(about, text)
        self._sent = len(self.comments), None

    def show_talk(self, lines: Lines, items: Sequence[Item]) -> None:
        """Show these rows. A comment that the user has just sent is scrolled into view, unless the cursor was
        moved since."""
        before, key = self._sent
        follows = before >= 0 and key in (None, lines.key)
        has_queued = bool(self.svc.outbox.describe(f"/repos/{self.repo.id}/issues/{self.number}"))
        has_queued |= bool(self.svc.outbox.describe(f"/repos/{self.repo.id}/proposals/{self.number}"))
        lines.show(sequence(items))
        arrived = len(self.comments) > before
        if not follows:
            self._sent = -1, None
        elif arrived or has_queued:
            lines.go(len(items) - 1, -1)
            self._sent = -1 if arrived else before, lines.key
        elif key is not None:  # it was sent, and is not read again yet
            self._sent = before, lines.key

    def label_of_comment(self, action: Action) -> str:
        """Returns the label of an action on the comment under the cursor. Returns "" if the account may not
        change that comment."""
        comment = self.comment_here
        account = self.svc.client.account
        mine = comment is not None and bool(account) and comment.author.handle == account
        if comment is None or (action.id == "write" and not mine):
            return ""
        return "" if refusal("comment.edit", self.repo, mine) else action.label

    @property
    def comment_here(self) -> Comment | None:
        """The comment under the cursor, None if there is none."""
        key = self.lines.key if self.lines is not None else None
        comment_id = key[1] if isinstance(key, tuple) and key[0] == "comment" else ""
        return next((comment for comment in self.comments if comment.id == comment_id), None)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.has_widgets:
            self.paint()  # a draft was begun or discarded

    def known_people(self, about: About) -> list[str]:
        people = [comment.author.handle for comment in self.comments if comment.author.handle]
        return [*super().known_people(about), *people]

    # --- what one can do

    def do_edit(self) -> None:
        """Let the user change title and text in a form."""
        from tui.screens.talk.editing import Editing

        if self.one is not None:
            self.app.push_screen(Editing(self.repo, self.one, self.mine(self.one)))
        else:
            self.say(f"the text of #{self.number} was not read yet", "warn")

    def do_edit_comment(self) -> None:
        """Let the user change the text of the comment under the cursor."""
        comment = self.comment_here
        if comment is None:
            self.say("put the cursor on a comment", "warn")
        else:
            edit_comment(self, self.repo, self.number, comment)

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
        self.patch_one(self.chosen, **changes)

    def send(self, endpoint: Endpoint[Any], body: Any = None, **path: str) -> None:
        self.change(self.chosen, endpoint, body, **path)


def edit_comment(screen: Base, repo: Repo, number: int, comment: Comment) -> None:
    """Let the user change the text of a comment on issue or proposal `number`. If the account may not do
    that, show why."""
    account = screen.svc.client.account
    why = refusal("comment.edit", repo, bool(account) and comment.author.handle == account)
    if why:
        screen.say(why, "warn")
        return

    def send(text: str) -> None:
        body = text.strip()
        if body and body != comment.body:
            screen.svc.outbox.act(
                issues.EDIT_COMMENT,
                CommentBody(body=body),
                about=repo.full_name,
                id=repo.id,
                n=str(number),
                comment=comment.id,
            )

    screen.write(
        f"edit the comment on #{number}",
        send,
        name_draft(repo.id, number, "comment", comment.id),
        comment.body,
    )


def _mark(on: bool) -> str:
    return "✓ " if on else "  "
