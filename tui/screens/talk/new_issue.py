"""The form of a new issue: template, title, text, labels and people. Each change is stored as a draft at
once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual.app import ComposeResult

from localstore.core.model.collaboration import issue as issues
from localstore.core.model.collaboration.issue import IssueCreate
from localstore.core.model.collaboration.label import Label
from localstore.core.model.repo import Repo
from svc.flows.place.rights import refusal
from svc.flows.templates import Template
from tui import contents
from tui.actions import Action
from tui.drafts import named
from tui.screens.base import Base
from tui.screens.settings.form import Kept, fault_of
from tui.screens.talk.previews import colours_of, label_parts
from tui.text import Part, safe
from tui.texts import Texts, item
from tui.widgets.lines import Item, Lines, sequence

FORM = "issue"  # of the drafts
NAME = 10  # columns of the name of a field


class NewIssue(Base):
    """Enter changes the row under the cursor, S sends the issue, esc keeps the draft. `people`: handles to
    choose from."""

    ACTIONS = (
        Action("open", ("enter",), "change", "svc issue create", "signed_in", footer=True),
        Action(
            "send", ("S", "ctrl+s"), "send", "svc issue create -t {title}", "signed_in", True, "issue.create"
        ),
        Action("write", ("E",), "text in $EDITOR", "svc issue create", "signed_in"),
        Action("discard", ("D",), "discard", footer=True),
    )

    def __init__(self, repo: Repo, seal: str | None, people: Sequence[str]) -> None:
        super().__init__()
        self.repo, self._seal, self._people = repo, seal, people
        self._values: dict[str, Any] = {}
        self._kept = Kept()
        self._labels: list[Label] = []
        self._templates: list[Template] = []
        self.texts: Texts = Texts(self, self.paint)

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def content(self) -> ComposeResult:
        yield Lines(linked=True, id="form")

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self.repo.full_name)}", "title"), ("  new issue", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self._kept = Kept(self.svc.drafts, f"{named(self.repo.id, 0, 'issue')}-form")
        self._values = self._kept.of(FORM)
        self.paint()
        self.svc.load(contents.labels(self.repo.id), self._paint_labels)
        if self._seal is not None:
            read = contents.issue_templates(self.repo.id, self._seal)
            self.svc.load(read, self._paint_templates, lambda error: None)
        if not self._text("title"):
            self.open_prompt(self._ask_title)

    def on_resize(self) -> None:
        self.paint()

    def _paint_labels(self, found: list[Label], at: float) -> None:
        self._labels = found
        self.paint()

    def _paint_templates(self, found: list[Template], at: float) -> None:
        self._templates = [one for one in found if not one.fault]
        self.paint()

    # --- rows

    def paint(self) -> None:
        body = self._text("body")
        count = len(body.splitlines())
        none: Part = ("none", "dim")
        rows = [self._row("title", (self._text("title"), "title") if self._text("title") else none)]
        if self._templates:
            rows.append(self._row("template", (f"{len(self._templates)} to begin with", "dim")))
        labels = label_parts(self._names("labels"), colours_of(self._labels))
        if labels:
            labels[0] = (labels[0][0].lstrip(), labels[0][1])
        people = "  ".join(f"@{handle}" for handle in self._names("assignees"))
        rows.append(self._row("text", (f"{count} line{'' if count == 1 else 's'}", "dim") if count else none))
        rows.append(self._row("labels", *(labels or [none])))
        rows.append(self._row("people", (people, "person") if people else none))
        rows.append(Item(None, (("", "text"),)))
        width = max(20, self.size.width - 3)
        page = self.texts.rows(body, width) if body else []
        rows += [item(("page", place), row) for place, row in enumerate(page)]
        self.query_one("#form", Lines).show(sequence(rows))

    def _row(self, name: str, *parts: Part) -> Item:
        made = [(text if role.startswith("label") else safe(text), role) for text, role in parts]
        return Item(name, ((f"{name:<{NAME}}", "dim"), *made))

    def _text(self, name: str) -> str:
        return str(self._values.get(name, ""))

    def _names(self, name: str) -> list[str]:
        return [str(one) for one in self._values.get(name, [])]

    def _set(self, name: str, value: Any) -> None:
        """Set a value, and store it in the draft."""
        self._values = {**self._values, name: value}
        self._kept.put(FORM, {name: value for name, value in self._values.items() if value})
        self.paint()

    # --- what one can do

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        acts: dict[object, Callable[[], None]] = {
            "title": self._ask_title,
            "template": self._choose_template,
            "text": self._write,
            "labels": self._choose_labels,
            "people": self._choose_people,
        }
        act = acts.get(event.key)
        if act is not None:
            act()

    def _ask_title(self) -> None:
        def done(text: str) -> None:
            self._set("title", text.strip())
            self.query_one("#form", Lines).go_to("text")

        self.ask("title of the issue", done, lambda text: self._set("title", text), self._text("title"))

    def _write(self) -> None:
        from tui.screens.write import Write

        def written(text: str) -> None:
            self._set("body", text)

        self.app.push_screen(Write("text of the issue", self._text("body"), written, written))

    def do_write(self) -> None:
        draft = named(self.repo.id, 0, "issue", "body")
        if self.svc.drafts is not None:
            self.svc.drafts.keep(draft, self._text("body"))
        self.svc.compose_text(draft, lambda text: self._set("body", text))

    def _choose_template(self) -> None:
        from tui.screens.choose import Choose

        def chosen(template: Template) -> None:
            if self._text("body").strip():
                self.confirm("put the template in the place of the text?", lambda: begin(template))
            else:
                begin(template)

        def begin(template: Template) -> None:
            self._set("body", template.body)
            self._set("labels", list(template.labels))
            self._set("assignees", list(template.assignees))
            if template.title and not self._text("title"):
                self._set("title", template.title)

        items = [
            Item(one, ((safe(one.name), "text"), (f"  {safe(one.about)}", "dim"))) for one in self._templates
        ]
        self.app.push_screen(Choose("begin with", items, chosen))

    def _choose_labels(self) -> None:
        self._toggle("labels", [label.name for label in self._labels], "issue.label")

    def _choose_people(self) -> None:
        mine = self.svc.client.account
        handles = dict.fromkeys([*([mine] if mine else []), *self._people])
        self._toggle("assignees", list(handles), "issue.assign")

    def _toggle(self, name: str, offered: Sequence[str], operation: str) -> None:
        from tui.screens.choose import Choose

        why = refusal(operation, self.repo)
        if why:
            self.say(why, "warn")
            return
        now = self._names(name)

        def chosen(one: str) -> None:
            self._set(name, [kept for kept in now if kept != one] if one in now else [*now, one])

        names = [*now, *(one for one in offered if one not in now)]
        items = [Item(one, (("✓ " if one in now else "  ", "good"), (safe(one), "text"))) for one in names]
        self.app.push_screen(Choose("labels" if name == "labels" else "people", items, chosen))

    def do_send(self) -> None:
        """Queue the issue; the draft is deleted once it is in the outbox."""
        values = {name: value for name, value in self._values.items() if value}
        if not self._text("title").strip():
            self.say("an issue needs a title", "warn")
            return
        why = fault_of(IssueCreate, values)
        if why:
            self.say(why, "bad")
            return
        svc, repo, kept = self.svc, self.repo, self._kept
        self.app.pop_screen()
        svc.queue(
            lambda sending: sending.put(
                issues.CREATE, IssueCreate(**values), None, about=repo.full_name, id=repo.id
            ),
            lambda: kept.put(FORM, {}),
        )

    def do_discard(self) -> None:
        def discard() -> None:
            self._values = {}
            self._kept.put(FORM, {})
            self.app.pop_screen()

        self.confirm("discard what is written?", discard)
