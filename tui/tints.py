"""The grounds of changed lines, by theme and by what the terminal can show.

A role `on GROUND ROLE` is ROLE on another ground: six hex digits, or a number of the 256 colours. `under
ROLE` is ROLE underlined. `tui.theme.Styles` makes both from the role.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["add", "delete"]


class Tints(NamedTuple):
    """The backgrounds of added and of deleted lines: for the text, for the number and sign, and for changed
    words."""

    add: str
    add_mark: str
    add_words: str
    delete: str
    delete_mark: str
    delete_words: str

    def line(self, kind: Kind, role: str) -> str:
        """The role that paints text of `role` on the background of a line that was added or deleted
        (`kind`)."""
        return f"on {self.add if kind == 'add' else self.delete} {role}"

    def mark(self, kind: Kind, role: str) -> str:
        """The same for its number or sign."""
        return f"on {self.add_mark if kind == 'add' else self.delete_mark} {role}"

    def words(self, kind: Kind, role: str) -> str:
        """The same for its changed words."""
        return f"on {self.add_words if kind == 'add' else self.delete_words} {role}"


# The 256 colours have no dark green or red besides 22 and 52, which glare behind a whole line or behind all
# of its numbers; changed words alone have them.
DARK = Tints("1b2c21", "24462f", "2f6a41", "33201f", "5a2a2a", "833333")
DARK_256 = Tints("235", "236", "22", "235", "236", "52")
LIGHT = Tints("e2f5e5", "c5ead0", "9fdfb0", "fce8e6", "f8cfcb", "f3aaa4")
LIGHT_256 = Tints("194", "157", "157", "224", "217", "217")


def tints(colours: str, system: str | None, light: bool | None, no_color: bool) -> Tints | None:
    """The backgrounds of a theme in a terminal; None if the text colour alone marks changes. `system`: the
    number of colours of the terminal. `light`: whether its background is light, None if unknown."""
    if no_color or system not in ("256", "truecolor") or colours == "contrast":
        return None
    if colours != "terminal":
        light = colours == "light"
    if light is None:
        return None
    if system == "256":
        return LIGHT_256 if light else DARK_256
    return LIGHT if light else DARK
