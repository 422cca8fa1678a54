"""Forms for new texts: issues, proposals, releases. A form is a card with a row for each field. Below or
beside the rows it shows what others will see.

Typed text is stored as a draft at once. The draft is deleted when the text is sent or discarded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from textual.app import ComposeResult
from textual.containers import Horizontal

from localstore.core.endpoint import Endpoint
from localstore.core.model.access import Collaborator
from localstore.core.model.label import Label
from localstore.core.model.repo import Repo
from localstore.core.words import count
from svc.flows.place.rights import refusal
from tui import contents
from tui.actions import Action
from tui.drafts import name_draft
from tui.screens.base import THREE_PANES, Base
from tui.screens.card import MARGIN, Card
from tui.screens.card_panes import CardPanes
from tui.screens.settings.form import FormDrafts, fault_of
from tui.screens.split import Preview
from tui.screens.talk.previews import colours_of, first_left, label_parts
from tui.screens.talk.reviewers import roles_of
from tui.text import Part, fold, safe
from tui.texts import Texts, item
from tui.widgets.frame import Prompt
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.choose import ChooseSeveral

HEAD = 4  # rows above the text in the preview
NAME = 10  # columns of the name of a field
NONE: Part = ("none", "dim")


class Composing(CardPanes, Card):
    """The form for a new text. Enter changes the row under the cursor, S sends the text, and esc leaves it as
    a draft. The value of a field of one line is typed in its row.

    `people`: handles to choose from, besides the people with a role in the repository. Subclasses define
    `NOUN` (what is made, such as "issue"), `FORM` (the name of its draft), `TITLE` and `BODY` (the names of
    the values for title and text), and the methods `fields`, `facts_of` and `do_send`."""

    WIDTH, SHARE, LEAST = 140, 80, 16
    LIST = "form"
    NOUN = FORM = ""
    TITLE, BODY = "title", "body"
    IS_NEW = True  # whether title and text are typed one after the other when the form opens
    MORE = ""  # behind the names of drafts: what they are about
    TEXT = "text"  # the name of the row of the text

    def __init__(
        self, repo: Repo, people: Sequence[str] = (), begun: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__()
        self.repo, self._people, self._begun = repo, people, begun or {}
        self._roles: dict[str, str] = {}  # of the people with a role in the repository, by handle
        self._values: dict[str, Any] = {}
        self._kept = FormDrafts()
        self._labels: list[Label] = []
        self._page = Texts(self, self.paint)  # the text below the form, where there is no preview
        self._typed = ""  # the field whose value is typed in its row
        self._is_untitled = False  # whether a message says that the title is missing

    # --- what a subclass gives

    def fields(self) -> list[tuple[str, tuple[Part, ...], Callable[[], None]]]:
        """Returns (name, value as parts, function that lets the user change the value) for each row of the
        form."""
        raise NotImplementedError

    def facts_of(self) -> list[Part]:
        """Returns the parts of the line below the title, for the preview."""
        raise NotImplementedError

    def notes(self) -> Sequence[Part]:
        """Returns the parts of a line below the fields. Returns () if the form has no such line."""
        return ()

    def contents_of(self, width: int) -> Sequence[tuple[Part, ...]]:
        """Returns rows about what the new thing contains, to be shown below its text, for `width` columns.
        Returns () if nothing is known about that."""
        return ()

    def begin(self) -> None:
        """Called after the draft was read, and before the prompt for the title opens."""

    def ask_first(self) -> None:
        """Let the user type the title, unless the draft has one. Called when the form opens."""
        if not self.value(self.TITLE):
            self.open_prompt(self.ask_title)

    # --- the screen

    @property
    def front(self) -> Base:
        return self

    @property
    def previews(self) -> bool:
        """Whether the text is shown beside the form, and not below it."""
        return self.app.size.width >= THREE_PANES

    def content(self) -> ComposeResult:
        self.texts = Texts(self, self._again)
        with Horizontal(classes="row"):
            yield Lines(id=self.LIST)
            yield Preview(marked=False, linked=True, id="preview")

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def facts(self) -> dict[str, str]:
        return {}

    def make_title(self) -> tuple[Part, ...]:
        return ((f"New {self.NOUN}", "title"),)

    def title_parts(self) -> Sequence[Part]:
        return (*self.make_title(), (f" · {safe(self.repo.full_name)}", "text"))

    def _say_where(self) -> None:
        self._say_position()

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.has_widgets:
            self.rest()

    def on_resize(self) -> None:
        if self._typed:
            self.call_after_refresh(self._place_typed)

    def do_back(self) -> None:
        if not self.leave_preview():
            super().do_back()

    @property
    def texts_shown(self) -> Texts | None:
        return self.texts if self.previews else self._page

    def on_mount(self) -> None:
        super().on_mount()
        self._kept = FormDrafts(self.svc.drafts, f"{self._draft()}-form")
        self._values = {**self._kept.of(self.FORM), **self._begun}
        self.begin()
        self.paint()
        self.svc.load(contents.labels(self.repo.id), self._paint_labels)
        if not refusal("collaborator.list", self.repo):
            self.svc.load(contents.collaborators(self.repo.id), self._take_collaborators)
        self.ask_first()

    def _draft(self, *words: str) -> str:
        """Returns the name of a draft of this form. `words`: what the draft is for, if the form has
        several."""
        return name_draft(self.repo.id, 0, self.FORM, *([self.MORE] if self.MORE else []), *words)

    def _take_collaborators(self, collaborators: list[Collaborator], at: float) -> None:
        """Store the roles of the people in the repository."""
        self._roles = roles_of(collaborators)

    def _paint_labels(self, labels: list[Label], at: float) -> None:
        self._labels = labels
        self.paint()

    def paint(self) -> None:
        rows = [Item(name, ((f"{name:<{NAME}}", "dim"), *value)) for name, value, _ in self.fields()]
        body = self.value(self.BODY)
        if self.notes():
            rows += [Item(None, (("", "text"),)), Item(None, tuple(self.notes()))]
        if not self.previews and body:
            width = self._width
            rule = f"── as others will see it {'─' * width}"[:width]
            rows += [Item(None, (("", "text"),)), Item(None, ((rule, "line"),))]
            page = self._page.rows(body, width)
            rows += [item(("page", place), row) for place, row in enumerate(page)]
        if not self.previews:
            rows += [Item(None, row) for row in self.contents_of(self._width)]
        self.listed.linked = not self.previews
        self.listed.show(sequence(rows))
        beside = self.contents_of(self._width)
        self.fit(max(len(rows), len(body.splitlines()) + len(beside) + HEAD) + 1)
        self.renew()
        if self._typed:
            self.call_after_refresh(self._place_typed)

    @property
    def _width(self) -> int:
        """The columns inside the card."""
        return max(20, min(self.WIDTH, self.app.size.width - 2 * MARGIN) - 5)

    def preview_of(self, key: Hashable) -> None:
        """Show the new text in the preview, as others will see it once it is sent."""
        title, body, width = self.value(self.TITLE), self.value(self.BODY), self.preview_width
        rows: list[Row | tuple[Part, ...]] = []
        rows += fold([(safe(title), "title") if title else (f"no {self.TITLE} yet", "dim")], width)
        rows += [*fold(self.facts_of(), width), (("", "text"),)]
        rows += self.text_rows(body) if body.strip() else [(("no text", "dim"),)]
        rows += self.contents_of(width)
        self.show_preview(key, "as others will see it", rows)

    # --- values

    def value(self, name: str) -> str:
        return str(self._values.get(name, ""))

    def names(self, name: str) -> list[str]:
        return [str(value) for value in self._values.get(name, [])]

    def put(self, name: str, value: Any) -> None:
        """Set a value of the new text, such as its title, and store it in the draft."""
        self._values = {**self._values, name: value}
        self._kept.put(self.FORM, self.written())
        self.paint()

    def written(self) -> dict[str, Any]:
        """Returns the values of the form's fields that are not empty, by the name of the field."""
        return {name: value for name, value in self._values.items() if value}

    def forget(self) -> None:
        """Delete the drafts, because the text was sent or discarded."""
        self._kept.put(self.FORM, {})
        if self.svc.drafts is not None:
            self.svc.drafts.keep(self._draft("body"), "")

    def queue_new(
        self, endpoint: Endpoint[Any], body: type[msgspec.Struct], values: Mapping[str, Any], **path: str
    ) -> None:
        """Send the new issue, proposal or release: put its request into the outbox, leave the form, and
        delete the draft. If a value is wrong, the form stays open and says so. `path`: the parameters of the
        endpoint's path other than the repository."""
        if not self.value(self.TITLE).strip():
            self._say_untitled()
            return
        why = fault_of(body, values)
        if why:
            self.say(why, "bad")
            return
        svc, repo = self.svc, self.repo
        self.below.expect_new(self.NOUN, self.value(self.TITLE).strip())
        self.app.pop_screen()
        svc.outbox.queue(
            lambda sending: sending.put(
                endpoint, body(**values), None, about=repo.full_name, id=repo.id, **path
            ),
            self.forget,
        )

    # --- rows that several forms have

    def title_field(self) -> tuple[str, tuple[Part, ...], Callable[[], None]]:
        title = self.value(self.TITLE)
        value: Part = (safe(title), "title") if title else ("needed", "warn")
        return self.TITLE, (value,), self.ask_title

    def text_field(self) -> tuple[str, tuple[Part, ...], Callable[[], None]]:
        lines = len(self.value(self.BODY).splitlines())
        written: Part = (count(lines, "line"), "text")
        return (
            self.TEXT,
            (written if lines else ("none; enter writes it, E in your editor", "dim"),),
            self._write,
        )

    def labels_field(self) -> tuple[str, tuple[Part, ...], Callable[[], None]]:
        return "labels", tuple(self.label_dots() or [NONE]), self._choose_labels

    def people_field(
        self, name: str, member: str, operation: str
    ) -> tuple[str, tuple[Part, ...], Callable[[], None]]:
        """Returns a row of the form whose value is a list of handles. `name`: the text at its beginning.
        `member`: the name of the value, such as assignees. `operation`: the operation in the table of rights
        that is needed to set it."""
        handles = "  ".join(f"@{safe(handle)}" for handle in self.names(member))
        value: Part = (handles, "person") if handles else NONE
        return name, (value,), lambda: self._choose_people(member, operation)

    def label_dots(self) -> list[Part]:
        return first_left(label_parts(self.names("labels"), colours_of(self._labels)))

    def author_parts(self) -> list[Part]:
        """Returns the author, the labels and the assignees of the new text, as parts."""
        dots = self.label_dots()
        labels: list[Part] = [("  ", "text"), *dots] if dots else []
        people: list[Part] = [(f"  → @{safe(handle)}", "person") for handle in self.names("assignees")]
        return [(f"  @{safe(self.svc.client.account or '?')}", "person"), *labels, *people]

    # --- what one can do

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if isinstance(event.key, tuple):  # a row of the text below the form
            self._write()
        for name, _, change in self.fields():
            if name == event.key:
                change()

    def ask_title(self, *, selected: bool = False) -> None:
        """Let the user type the title. `selected`: what is typed replaces the title that is there."""

        def done(text: str) -> None:
            self.put(self.TITLE, text.strip())
            if self._is_untitled:
                self._is_untitled = False
                self.say("")
            if not text.strip():
                self.ask_title()
                self._say_untitled()
                return
            self.listed.go_to(self.TEXT)
            if self.IS_NEW:
                self._write()

        words = f"{self.TITLE} of the {self.NOUN}"
        self.ask_in_row(
            self.TITLE, words, done, lambda text: self.put(self.TITLE, text), self.value(self.TITLE)
        )
        for prompt in self.query(Prompt) if selected else ():
            prompt.action_select_all()

    def _say_untitled(self) -> None:
        self._is_untitled = True
        article = "an" if self.NOUN[:1] in "aeiou" else "a"
        self.say(f"{article} {self.NOUN} needs a {self.TITLE}", "warn")

    def ask_in_row(
        self,
        name: str,
        words: str,
        done: Callable[[str], None],
        changed: Callable[[str], None] | None = None,
        value: str = "",
    ) -> None:
        """Let the user type the value of the field `name` in its row. `words`: shown as long as nothing is
        typed. The other parameters are those of `ask`."""

        def finish(text: str) -> None:
            self._typed = ""
            done(text)

        def send(text: str) -> None:
            self._typed = ""
            self.put(name, text.strip())
            self._send_all()

        self.listed.go_to(name)
        self._typed = name
        self.ask(words, finish, changed, value, enter="next", label=f"{name:<{NAME - 1}}", send=send)

    def prompt_left(self) -> None:
        self._typed = ""

    def place_prompt(self, prompt: Prompt) -> None:
        if not self._typed:
            super().place_prompt(prompt)
            return
        prompt.styles.layer, prompt.styles.position = "over", "absolute"
        self.mount(prompt)
        self._place_typed()

    def _place_typed(self) -> None:
        """Place the prompt over the row of the field whose value is being typed."""
        if not self._typed or not self.remains:
            return
        region, names = self.listed.content_region, [name for name, _, _ in self.fields()]
        for prompt in self.query(Prompt):
            prompt.styles.offset = (region.x, region.y + names.index(self._typed) - self.listed.top)
            prompt.styles.width = region.width

    def _write(self) -> None:
        def written(text: str) -> None:
            self.put(self.BODY, text)

        def send(text: str) -> None:
            written(text)
            self._send_all()

        what, sends = f"{self.TEXT} of the {self.NOUN}", f"{self._sending.label} the {self.NOUN}"
        self.svc.write_text(what, self.value(self.BODY), send, written, sends=sends)

    @property
    def _sending(self) -> Action:
        return next(action for action in self.actions() if action.id == "send")

    def _send_all(self) -> None:
        self.svc.carry_out(self._sending)

    def do_write(self) -> None:
        draft, drafts = self._draft("body"), self.svc.drafts

        def written(text: str) -> None:
            self.put(self.BODY, text)
            if drafts is not None:
                drafts.keep(draft, "")  # the form's own draft has it

        if drafts is not None and not drafts.read(draft):  # else what an editor wrote before it failed
            drafts.keep(draft, self.value(self.BODY))
        self.svc.compose_text(draft, written)

    def _choose_labels(self) -> None:
        colours = colours_of(self._labels)
        offered = {label.name: first_left(label_parts([label.name], colours)) for label in self._labels}
        self._choose_several("labels", offered, "issue.label")

    def _choose_people(self, member: str, operation: str) -> None:
        offered = {
            handle: [(f"@{safe(handle)}", "person"), (f"  {self._roles.get(handle, '')}", "dim")]
            for handle in self._people_for(member)
        }
        self._choose_several(member, offered, operation)

    def _people_for(self, member: str) -> list[str]:
        """Returns the handles of those who can be chosen: the user, the people with a role, and others that
        are known."""
        mine = self.svc.client.account
        handles = dict.fromkeys([*([mine] if mine else []), *self._roles, *self._people])
        if member == "reviewers":  # nobody reviews a proposal of their own
            handles.pop(mine, None)
        return list(handles)

    def _choose_several(
        self, name: str, offered: Mapping[str, Sequence[Part]], operation: str
    ) -> ChooseSeveral | None:
        """Let the user mark names in a list. The marked names become a value of the new text. `name`: the
        name of the value, such as labels. `offered`: the names that can be marked. Names that the value has
        already can be marked too. `operation`: the operation in the table of rights that is needed. Returns
        the card, None if the account has no right to it."""
        from tui.screens.choose import ChooseSeveral

        why = refusal(operation, self.repo)
        if why:
            self.say(why, "warn")
            return None

        def apply(added: list[str], removed: list[str]) -> None:
            self.put(name, [*(other for other in self.names(name) if other not in removed), *added])

        card = ChooseSeveral(name, offered, self.names(name), apply)
        self.app.push_screen(card)
        return card

    def do_discard(self) -> None:
        def discard() -> None:
            self._values = {}
            self.forget()
            self.app.pop_screen()

        self.confirm("Discard what is written?", discard, destroys=True)
