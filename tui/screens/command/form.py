"""The form of one command. It has a row for each parameter, and a row that runs the command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from textual.app import ComposeResult

from tui.actions import Action
from tui.commands import REPO, YES, Parameter, missing, words_of
from tui.screens.card import Card
from tui.screens.command.offered import Offered
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence

RUN = "run"
NAME = 20  # columns of a parameter's name


class Form(Card):
    """The form of one command. `values`: parameters that are filled in already. The cursor begins on the
    first required parameter that is missing. If none is missing, it begins on the row that runs the
    command."""

    WIDTH, SHARE = 96, 75
    ACTIONS = (Action("open", ("enter",), "change, run", footer=True),)

    def __init__(self, path: str, fields: Sequence[Parameter], values: Mapping[str, str]) -> None:
        super().__init__()
        self._path = path
        self._own = list(fields)
        self._fields = {field.name: field for field in (*fields, REPO, YES)}
        self._values = dict(values)
        self._offered: Offered | None = None  # None if no repository is shown

    def content(self) -> ComposeResult:
        yield Lines(searches=True, id="form")

    def title_parts(self) -> Sequence[Part]:
        return ((f" svc {self._path}", "title"), (f"  {self.svc.summary(self._path)}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        repo = self.subject()[0]
        repo_id = repo.id if repo is not None else self.svc.place.repo_id
        if repo_id and self._values.get("repo", "") in ("", self.svc.here()):
            self._offered = Offered(self.svc, repo_id, lambda: None)
        for field in missing(self._own, self._values):
            self._offers(field)  # they are there when the user gets to the row
        self.paint()
        self._go_on()

    def _offers(self, field: Parameter) -> Mapping[str, str]:
        """Returns what can be chosen for a parameter, each with its meaning. Returns nothing if it takes any
        text, or if its choices are not known yet."""
        if field.choices:
            return dict.fromkeys(field.choices, "")
        if field.many or field.spelled or self._offered is None:
            return {}
        return self._offered.values(self._path, field.name) or {}

    def _words(self) -> list[str] | None:
        try:
            return words_of(self._path, self._own, self._values)
        except ValueError:
            return None

    def paint(self) -> None:
        rows = [self._row(field) for field in self._fields.values()]
        words = self._words()
        line = f"svc {shlex.join(words)}" if words else "a quote is open"
        rows += [
            Item(None, (("", "text"),)),
            Item(("run", ""), (("run  ", "accent"), (safe(line), "text" if words else "bad")), text=line),
        ]
        self.query_one("#form", Lines).show(sequence(rows))
        self.fit(len(rows))

    def _row(self, field: Parameter) -> Item:
        value = self._values.get(field.name, "")
        name = field.spelled[0] if field.spelled else (field.asked or field.name).upper()
        part: Part = (safe(value), "text") if value else (f"  {safe(field.help)}", "dim")
        if field.required and not value:
            part = (f"* {safe(field.help)}", "warn")
        elif value and field.flag:
            part = ("✓ yes", "good")
        return Item(
            ("field", field.name),
            ((f"{safe(name):<{NAME}} ", "accent"), part),
            text=f"{name} {field.help} {value}",
        )

    def _go_on(self) -> None:
        """Move the cursor to the next parameter without a value. If there is none, move it to the row that
        runs the command."""
        lacking = missing(self._own, self._values)
        key = ("field", lacking[0].name) if lacking else (RUN, "")
        self.query_one("#form", Lines).find(lambda item: item.key == key, 1)

    def _set(self, name: str, value: str) -> None:
        self._values[name] = value.strip()
        self.paint()
        self._go_on()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, tuple):
            return
        kind, name = event.key
        if kind == RUN:
            self._run()
            return
        field = self._fields[name]
        if field.flag:
            self._values[name] = "" if self._values.get(name) else "yes"
            self.paint()
        elif offers := self._offers(field):
            self._choose(field, offers)
        else:
            hint = "; several with spaces between them" if field.many and not field.asked else ""
            self.ask(
                f"{field.help}{hint}", lambda text: self._set(name, text), value=self._values.get(name, "")
            )

    def _choose(self, field: Parameter, offers: Mapping[str, str]) -> None:
        from tui.screens.choose import Choose

        items = [
            Item(name, ((safe(name), "text"), (f"  {safe(meaning)}", "dim")), text=f"{name} {meaning}")
            for name, meaning in offers.items()
        ]
        self.app.push_screen(
            Choose(field.help or field.name, items, lambda choice: self._set(field.name, choice))
        )

    def _run(self) -> None:
        lacking, words = missing(self._own, self._values), self._words()
        if lacking or words is None:
            self.say(
                f"{lacking[0].asked or lacking[0].name} is missing" if lacking else "a quote is open", "warn"
            )
            return
        self.app.pop_screen()
        self.svc.run_here(words, f"svc {shlex.join(words)}")
