"""Forms. A form has the values of some fields as they were read, the user's changes, and what is wrong with
the changes.

    form = SettingsForm(FIELDS, lambda name, value: fault_of(RepoPatch, name, value))
    form.show({"description": "Notes"})
    form.set("description", "Other")
    form.changed  # {"description": "Other"}

`FormDrafts` stores unsaved changes as a draft, so that they survive a crash of the app."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import msgspec

from localstore.core.errors import UsageError
from svc.http.checked import require_valid
from tui.drafts import Drafts
from tui.text import Part, safe
from tui.widgets.lines import Item

Kind = Literal["text", "choice", "flag", "number", "many"]
LABEL = 20  # columns of a label


class Field(NamedTuple):
    """A field of a form. `name`: the name of its value. `label`: the name that the user sees. `none`: the
    text in place of an empty value."""

    name: str
    label: str
    kind: Kind = "text"
    none: str = "none"


class SettingsForm:
    """A form with several fields. `fault(name, value)`: returns a sentence that says why a value cannot be
    saved, or "" if it can."""

    def __init__(self, fields: Sequence[Field], fault: Callable[[str, Any], str]) -> None:
        self.fields = {field.name: field for field in fields}
        self.changed: dict[str, Any] = {}
        self._known: dict[str, Any] = {}
        self._queued: dict[str, Any] = {}
        self._fault = fault

    def show(self, values: Mapping[str, Any], queued: Mapping[str, Any] | None = None) -> None:
        """Take over the values that were read from the server. `queued`: values that wait in the outbox. A
        change of the user is dropped if the field has the same value now."""
        self._known = dict(values)
        self._queued = {name: value for name, value in (queued or {}).items() if name in self.fields}
        self.changed = {
            name: value
            for name, value in self.changed.items()
            if name in self.fields and value != self._base(name)
        }

    def value(self, name: str) -> Any:
        return self.changed.get(name, self._base(name))

    def values(self) -> dict[str, Any]:
        return {name: self.value(name) for name in self.fields}

    def set(self, name: str, value: Any) -> None:
        """Change the value of a field. Setting the value that was read undoes the change."""
        if value == self._base(name):
            self.changed.pop(name, None)
        else:
            self.changed[name] = value

    def faults(self) -> dict[str, str]:
        """Returns the changed fields that cannot be saved, by name, each with a sentence that says why."""
        faults = {name: self._fault(name, value) for name, value in self.changed.items()}
        return {name: words for name, words in faults.items() if words}

    def rows(self, panel: str) -> list[Item]:
        """Returns the rows of the form: a row for each field, a sentence below it if its value is wrong, and
        a row that saves."""
        faults, rows = self.faults(), []
        for name, field in self.fields.items():
            mark: Part = ("  ", "text")
            after = ""
            if name in self.changed:
                mark, after = ("* ", "warn"), f"  was {self._format(field, self._base(name))}"
            elif name in self._queued and self._queued[name] != self._known.get(name):
                mark, after = ("⋯ ", "warn"), "  queued"
            shown_value = self._format(field, self.value(name))
            role = "text" if self.value(name) else "dim"
            parts = (mark, (f"{safe(field.label):<{LABEL}} ", "dim"), (shown_value, role), (after, "dim"))
            rows.append(Item((panel, "field", name), parts, text=f"{field.label} {shown_value}"))
            if name in faults:
                rows.append(Item(None, (("  ✗ ", "bad"), (safe(faults[name]), "bad"))))
        if self.changed:
            count = len(self.changed)
            them = "them" if count > 1 else "it"
            words = f"{count} change{'s' * (count > 1)} not saved: S saves, U takes {them} back"
            rows.append(Item((panel, "save", ""), (("* ", "warn"), (words, "warn"))))
        return rows

    def _base(self, name: str) -> Any:
        return self._queued.get(name, self._known.get(name))

    def _format(self, field: Field, value: Any) -> str:
        if field.kind == "flag":
            return "✓ yes" if value else "- no"
        if field.kind == "many":
            return safe(", ".join(value)) if value else field.none
        return safe(str(value)) if value not in (None, "") else field.none


class FormDrafts:
    """Stores the unsaved changes of several forms in one draft. If the draft cannot be read, it counts as
    empty."""

    def __init__(self, drafts: Drafts | None = None, name: str = "") -> None:
        self._drafts, self._name = drafts, name
        self._all: dict[str, dict[str, Any]] = {}
        text = drafts.read(name) if drafts is not None else ""
        if text:
            with suppress(msgspec.MsgspecError):
                self._all = msgspec.json.decode(text, type=dict[str, dict[str, Any]])

    def of(self, form: str) -> dict[str, Any]:
        return dict(self._all.get(form, {}))

    def forms(self) -> list[str]:
        """Returns the names of the forms that have unsaved changes."""
        return sorted(self._all)

    def put(self, form: str, changed: Mapping[str, Any]) -> None:
        """Store the changes of a form. An empty dict deletes them."""
        if self.of(form) == changed:
            return
        self._all = {name: value for name, value in self._all.items() if name != form}
        if changed:
            self._all[form] = dict(changed)
        if self._drafts is not None:
            self._drafts.keep(self._name, msgspec.json.encode(self._all).decode() if self._all else "")


def fault_of(body: type[msgspec.Struct], values: Mapping[str, Any]) -> str:
    """Returns a sentence that says why these values are not valid. Returns "" if they are valid. `body`: the
    struct that is made of them."""
    try:
        require_valid(body(**values))
    except UsageError as error:
        return str(error.detail)
    except TypeError as error:  # a draft of another version of svc
        return str(error)
    return ""
