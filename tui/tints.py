"""The backgrounds of changed lines, by theme and by what the terminal can show.

A role is the name of a style. The role `on GROUND ROLE` is the role ROLE on another background: six hex
digits, or a number of the 256 colours. `under ROLE` is ROLE underlined, `found ROLE` is ROLE where a search
found it. `tui.theme.Styles` makes the styles of all three.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["add", "delete"]


class Tints(NamedTuple):
    """The backgrounds of added and of deleted lines. `add`, `delete`: of the text; `…_mark`: of the line's
    number and sign; `…_words`: of changed words."""

    add: str
    add_mark: str
    add_words: str
    delete: str
    delete_mark: str
    delete_words: str

    def line(self, kind: Kind, role: str) -> str:
        """The role (name of a style) that looks like `role`, but on the background of an added or deleted
        line (`kind`)."""
        return f"on {self.add if kind == 'add' else self.delete} {role}"

    def mark(self, kind: Kind, role: str) -> str:
        """The role that looks like `role`, but on the background of the number and sign of an added or
        deleted line (`kind`)."""
        return f"on {self.add_mark if kind == 'add' else self.delete_mark} {role}"

    def words(self, kind: Kind, role: str) -> str:
        """The role that looks like `role`, but on the background of the changed words of an added or deleted
        line (`kind`)."""
        return f"on {self.add_words if kind == 'add' else self.delete_words} {role}"


# The 256 colours have no dark green or red besides 22 and 52, which glare behind more than some words: there
# numbers and signs have the colour as text.
DARK = Tints("1b2c21", "24462f", "2f6a41", "33201f", "5a2a2a", "833333")
DARK_256 = Tints("235", "236", "22", "235", "236", "52")
LIGHT = Tints("e2f5e5", "c5ead0", "9fdfb0", "fce8e6", "f8cfcb", "f3aaa4")
LIGHT_256 = Tints("194", "157", "157", "224", "217", "217")


def tints(colours: str, system: str | None, light: bool | None, no_color: bool) -> Tints | None:
    """The backgrounds of changed lines; None if the text colour alone shows changes. `colours`: name of the
    theme. `system`: which colours the terminal has, in Rich's names. `light`: its background is light, None
    if unknown."""
    if no_color or system not in ("256", "truecolor") or colours == "contrast":
        return None
    if colours != "terminal":
        light = colours == "light"
    if light is None:
        return None
    if system == "256":
        return LIGHT_256 if light else DARK_256
    return LIGHT if light else DARK
