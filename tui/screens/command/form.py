"""The form of one command. It has a row for each parameter, and a row that runs the command."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from textual.app import ComposeResult

from tui.actions import Action
from tui.commands import REPO, YES, Parameter, missing, words_of
from tui.screens.card import Card
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

    def content(self) -> ComposeResult:
        yield Lines(searches=True, id="form")

    def title_parts(self) -> Sequence[Part]:
        return ((f" svc {self._path}", "title"), (f"  {self.svc.summary(self._path)}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self._go_on()

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
        name = field.spelled[0] if field.spelled else field.name.upper()
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
        elif field.choices:
            self._choose(field)
        else:
            hint = "; several with spaces between them" if field.many else ""
            self.ask(
                f"{field.help}{hint}", lambda text: self._set(name, text), value=self._values.get(name, "")
            )

    def _choose(self, field: Parameter) -> None:
        from tui.screens.choose import Choose

        items = [Item(choice, ((safe(choice), "text"),)) for choice in field.choices]
        self.app.push_screen(
            Choose(field.help or field.name, items, lambda choice: self._set(field.name, choice))
        )

    def _run(self) -> None:
        lacking, words = missing(self._own, self._values), self._words()
        if lacking or words is None:
            self.say(f"{lacking[0].name} is missing" if lacking else "a quote is open", "warn")
            return
        self.app.pop_screen()
        self.svc.run_here(words, f"svc {shlex.join(words)}")
