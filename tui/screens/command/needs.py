"""Texts that some commands open an editor for. The app has no terminal for one, so its form asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from tui.commands import Parameter, Values

BODY = ("body", "body_file", "edit_last", "delete_last", "discard")
NEEDS = {
    "issue comment": BODY,
    "pr comment": BODY,
    "push": ("message", "dry_run"),
}
"""By the path of a command: the parameter for the text, and those with which it needs no text."""


def with_needs(path: str, fields: Sequence[Parameter], values: Values) -> list[Parameter]:
    """Returns the parameters of a command. The one for its text is required, unless the values make it
    needless."""
    names = NEEDS.get(path, ())
    if not names or any(values.get(name) for name in names):
        return [*fields]
    return [field._replace(required=True) if field.name == names[0] else field for field in fields]
