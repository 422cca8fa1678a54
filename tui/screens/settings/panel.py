"""The base class of the panels of the settings. A panel has rows, does something when the user presses enter
on a row, and asks the user questions."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from localstore.core.endpoint import Endpoint
from localstore.core.model.repo import Repo
from svc.flows.place.rights import refusal
from tui.screens.settings.form import LABEL, SettingsForm
from tui.text import Part, safe
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from textual.app import App

    from tui.asked import AskedApp
    from tui.screens.repo_page import RepoPage


NOTHING: Mapping[str, str] = MappingProxyType({})


class SettingsTab(Protocol):
    """The protocol of the tab Settings that its panels use. `of`: the screen of the repository."""

    of: RepoPage

    @property
    def svc(self) -> AskedApp: ...

    @property
    def app(self) -> App[Any]: ...

    @property
    def panels(self) -> Mapping[str, Panel]: ...

    def paint(self) -> None: ...

    def go(self, key: tuple[str, str, str]) -> None: ...

    def queued_values(self, endpoint: Endpoint[Any]) -> dict[str, Any]: ...

    def keep(self, panel: Any) -> None: ...

    def drop_queued(self, panel: Any, changes: dict[str, Any]) -> None: ...

    def do_save(self) -> None: ...


class Panel:
    """A part of the settings. `load()`: requests its data. `rows()`: returns the rows to paint. `chosen(kind,
    name)`: called when the user presses enter on a row. `RIGHTS`: the operation in the table of rights that
    is needed to change a row, by kind of row. `VERBS`: what enter does on a row, by kind of row, for the line
    of keys. Enter changes all other rows."""

    NAME: ClassVar[str] = ""
    RIGHTS: ClassVar[Mapping[str, str]] = {}
    VERBS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, of: SettingsTab) -> None:
        self.of = of
        self.form: SettingsForm | None = None

    @property
    def repo(self) -> Repo:
        return self.of.of.repo

    @property
    def svc(self) -> AskedApp:
        return self.of.svc

    def load(self) -> None:
        """Request the panel's data from the server."""

    def rows(self) -> list[Item]:
        raise NotImplementedError

    def verb(self, kind: str, name: str) -> str:
        """Returns what enter does on a row, for the line of keys."""
        return self.VERBS.get(kind, "change")

    def details(self, kind: str, name: str) -> list[tuple[Part, ...]]:
        """Returns rows with more about a row than its explanation says."""
        return []

    def chosen(self, kind: str, name: str) -> None:
        raise NotImplementedError

    def save_form(self) -> None:
        """Called when the user presses the key that saves. Sends the changes of the panel's form. Does
        nothing if the panel has no form."""

    # --- for subclasses

    def may_read(self, operation: str) -> bool:
        return not refusal(operation, self.repo)

    def row(self, kind: str, name: str, label: str, value: str, role: str = "text") -> Item:
        parts: tuple[Part, ...] = ((f"  {safe(label):<{LABEL}} ", "dim"), (safe(value), role))
        return Item(
            (self.NAME, kind, name),
            parts,
            text=f"{label} {value}",
            cuts_middle_of=0 if len(label) > LABEL else -1,
        )

    def note(self, words: str, role: str = "dim") -> Item:
        return Item(None, ((f"  {safe(words)}", role),))

    def paint(self) -> None:
        self.of.paint()

    def act(
        self,
        endpoint: Endpoint[Any],
        body: Any = None,
        query: Any = None,
        queued: Callable[[], None] | None = None,
        /,
        **path: str,
    ) -> None:
        """Put a change of the repository into the outbox. Call `queued` afterwards, and send the outbox."""
        repo = self.repo
        self.svc.outbox.queue(
            lambda sending: sending.put(endpoint, body, query, about=repo.full_name, id=repo.id, **path),
            queued,
        )

    def run(self, *words: str) -> None:
        """Run a command of svc about the repository, and show its result. `words`: the command and its
        arguments."""
        command = [*words, "-R", self.repo.full_name]
        self.svc.run_here(command, f"svc {shlex.join(words)}")

    def ask(self, words: str, done: Callable[[str], None], value: str = "") -> None:
        self.of.of.ask(words, done, value=value)

    def choose(
        self,
        what: str,
        names: Sequence[str],
        chosen: Callable[[Any], None],
        now: str | None = None,
        about: Mapping[str, str] = NOTHING,
    ) -> None:
        """Let the user choose one of the names, and call `chosen` with it. `now`: the present value, on which
        the cursor begins. `about`: what a name means, by name."""
        from tui.screens.choose import Choose

        signs: dict[str, Part] = {name: ("● " if name == now else "  ", "good") for name in names if now}
        width = max(map(len, names), default=0) + 2 if about else 0
        items = [
            Item(
                name,
                (
                    signs.get(name, ("", "text")),
                    (f"{safe(name):<{width}}", "text"),
                    (about.get(name, ""), "dim"),
                ),
                text=name,
                cuts_middle_of=1,
            )
            for name in names
        ]
        self.of.app.push_screen(Choose(what, items, chosen, now))

    def confirm(self, words: str, then: Callable[[], None]) -> None:
        self.of.of.confirm(words, then)

    def type_name(self, name: str, act: str, then: Callable[[], None]) -> None:
        """Ask the user to type `name` as a confirmation, and call `then` if they do. This is for changes that
        cannot be undone. `act`: what happens to the named thing, such as "deleted"."""
        otherwise = f"that is not its name; nothing was {act}"
        self.of.of.confirm_by_name(f"{name} will be {act}. To do it, type its name.", name, then, otherwise)


class FormPanel(Panel):
    """A panel with a form. Subclasses make `form`. They define `options`, which returns the options that the
    user can choose from for a field."""

    form: SettingsForm

    def options(self, name: str) -> list[str]:
        return []

    def chosen(self, kind: str, name: str) -> None:
        if kind == "save":
            self.of.do_save()
        elif kind == "field":
            self.edit(name)

    def edit(self, name: str) -> None:
        field, now = self.form.fields[name], self.form.value(name)
        if field.kind == "flag":
            self.change(name, not now)
        elif field.kind == "choice":
            self.choose(
                field.label, self.options(name), lambda value: self.change(name, value), str(now or "")
            )
        elif field.kind == "many":
            self._toggle(name, list(now or []))
        else:
            self.ask(field.label, lambda text: self.set_text(name, text), value=str(now or ""))

    def set_text(self, name: str, text: str) -> None:
        """Set a field to the typed text."""
        self.change(name, text.strip())

    def change(self, name: str, value: Any) -> None:
        self.form.set(name, value)
        self.of.keep(self)
        self.paint()

    def _toggle(self, name: str, now: list[str]) -> None:
        from tui.screens.choose import Choose

        def chosen(option: str) -> None:
            self.change(name, [path for path in now if path != option] if option in now else [*now, option])

        names = [*now, *(option for option in self.options(name) if option not in now)]
        items = [
            Item(
                option, (("✓ " if option in now else "  ", "good"), (safe(option), "text")), cuts_middle_of=1
            )
            for option in names
        ]
        self.of.app.push_screen(Choose(self.form.fields[name].label, items, chosen))
