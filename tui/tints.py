"""The backgrounds of changed lines. They depend on the theme and on what the terminal can show.

A role is the name of a style. The role `on GROUND ROLE` is the role ROLE on another background, which is
given as six hex digits or as the number of one of 256 colours. The role `under ROLE` is ROLE underlined. The
role `found ROLE` is ROLE where a search has found the text. `tui.theme.Styles` makes the styles of all
three."""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["add", "delete"]


class Tints(NamedTuple):
    """The backgrounds of added and of deleted lines. `add`, `delete`: the background of the text. `…_mark`:
    the background of the number and sign of the line. `…_words`: the background of changed words."""

    add: str
    add_mark: str
    add_words: str
    delete: str
    delete_mark: str
    delete_words: str

    def line(self, kind: Kind, role: str) -> str:
        """Returns the role (name of a style) that looks like `role`, but has the background of a changed
        line. `kind`: whether the line is added or deleted."""
        return f"on {self.add if kind == 'add' else self.delete} {role}"

    def mark(self, kind: Kind, role: str) -> str:
        """Returns the role that looks like `role`, but has the background of the number and sign of a changed
        line. `kind`: whether the line is added or deleted."""
        return f"on {self.add_mark if kind == 'add' else self.delete_mark} {role}"

    def words(self, kind: Kind, role: str) -> str:
        """Returns the role that looks like `role`, but has the background of changed words in a changed line.
        `kind`: whether the line is added or deleted."""
        return f"on {self.add_words if kind == 'add' else self.delete_words} {role}"


# The 256 colours have no darker green and red than 22 and 52. They do not glare where text on them has the
# colours of the theme `dark`, brightened as far as needed.
DARK = Tints("1b2c21", "24462f", "2f6a41", "33201f", "5a2a2a", "833333")
DARK_256 = Tints("22", "22", "28", "52", "52", "88")
LIGHT = Tints("e2f5e5", "c5ead0", "9fdfb0", "fce8e6", "f8cfcb", "f3aaa4")
LIGHT_256 = Tints("194", "157", "157", "224", "217", "217")


def tints(colours: str, system: str | None, light: bool | None, no_color: bool) -> Tints | None:
    """Returns the backgrounds of changed lines. Returns None if changes are shown by the colour of the text
    alone. `colours`: name of the theme. `system`: how many colours the terminal has, such as `256` or
    `truecolor`. `light`: whether its background is light, None if that is unknown. An unknown background
    counts as dark. Text on the tints has colours of its own, so that a light terminal shows it well too."""
    if no_color or system not in ("256", "truecolor") or colours == "contrast":
        return None
    if colours != "terminal":
        light = colours == "light"
    if system == "256":
        return LIGHT_256 if light else DARK_256
    return LIGHT if light else DARK
