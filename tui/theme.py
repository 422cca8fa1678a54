"""The themes of the app. A theme has a colour for each role.

`terminal`, the default theme, uses the terminal's 16 colours and its background. Every state that a colour
shows also has a sign and a word, for users of NO_COLOR and for colour blindness."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rich.color import Color
from rich.style import Style

ROLES: Final = [
    "text",
    "dim",
    "title",
    "accent",
    "good",
    "warn",
    "bad",
    "cursor",
    "reversed",
    "selected",
    "selected_light",
    "resting",
    "tab",
    "marker",
    "gutter",
    "line",
    "add",
    "add_mark",
    "delete",
    "delete_mark",
    "hunk",
    "keyword",
    "string",
    "comment",
    "number",
    "name",
    "operator",
    "person",
    "agent",
    "polling",
    "polling_pulse",
    "offline_pulse",
    "heading",
    "strong",
    "emphasis",
    "struck",
    "quote",
    "code",
    "code_text",
    "link",
]


CURSOR: Final = Style(reverse=True)
"""The cursor in a text that is typed. Textual's has fixed colours, which some backgrounds swallow."""

FAINT: Final = frozenset({"dim", "gutter", "line", "comment", "quote", "struck", "tab"})
"""Roles that the line of the cursor shows as text, because its tint would swallow them."""

_LABEL = re.compile(r"label ([0-9a-f]{6})")
_TINTED = re.compile(r"(?:on ([0-9a-f]{6}|\d{1,3})|(under|found)) (\w+)")  # see tui.tints
_LABELS = 500  # colours of labels that are kept
_SEEN = 1.6  # the least contrast of a label's dot


class Styles(dict[str, Style]):
    """The styles (of Rich) of one theme, by role. Some roles are only made when they are needed. For example,
    the role `label d73a4a` has that colour. If the colour would be invisible on the background, it has the
    colour of faint text."""

    def __init__(self, background: str | None, colours: Mapping[str, str]) -> None:
        """Makes the styles of a theme. `background`: the background of the theme, None for the terminal's.
        `colours`: the colour of each role in Rich's notation. "" is the terminal's text colour."""
        self._base = Style.parse(f"on {background}") if background else Style()
        super().__init__((role, self._base + Style.parse(colours.get(role) or "none")) for role in ROLES)

    def __missing__(self, role: str) -> Style:
        tinted = _TINTED.fullmatch(role)
        if tinted is not None:
            return self._tint(role, *tinted.groups())
        match = _LABEL.fullmatch(role)
        if match is None:
            raise KeyError(role)
        if len(self) > len(ROLES) + _LABELS:
            for label in [name for name in self if name not in ROLES]:
                del self[label]
        colour, ground = Color.parse(f"#{match[1]}"), self._base.bgcolor
        swallowed = ground is not None and contrast(colour, ground) < _SEEN
        style = self["dim"] if swallowed else self._base + Style.from_color(colour)
        self[role] = style
        return style

    def _tint(self, role: str, ground: str | None, how: str | None, of: str) -> Style:
        """Make and return the style of `role`. It is the style of the role `of` on the background `ground`.
        If `ground` is None, it is underlined, and also reversed if `how` is "found"."""
        if ground is None:
            other = Style(underline=True, reverse=True if how == "found" else None)
        else:
            other = Style(bgcolor=f"#{ground}" if len(ground) == 6 else f"color({int(ground) % 256})")
        self[role] = style = self[of] + other
        return style


def label_role(colour: str) -> str:
    """Returns the role that paints the dot of a label. `colour`: the colour of the label as six hex
    digits."""
    role = f"label {colour.lower()}"
    return role if _LABEL.fullmatch(role) else "name"


def contrast(first: Color, second: Color) -> float:
    """Returns the contrast of two colours by WCAG 2. It is from 1 to 21."""
    dark, bright = sorted((_luminance(first), _luminance(second)))
    return (bright + 0.05) / (dark + 0.05)


def _luminance(colour: Color) -> float:
    parts = [value / 255 for value in colour.get_truecolor()]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def choose_selected(colours: str, system: str | None, no_color: bool, colorfgbg: str) -> str:
    """Returns the role that paints the line under a cursor. If the terminal has 256 colours and its
    background is known, that is a tint that keeps the colours of the text. Otherwise the line is reversed.
    `colours`: name of the theme. `colorfgbg`: the terminal's own colours as its environment says them, such
    as `15;0`."""
    if no_color or system not in ("256", "truecolor"):
        return "reversed"
    if colours != "terminal":
        return "selected"
    light = light_ground(colorfgbg)
    return "reversed" if light is None else "selected_light" if light else "selected"


def light_ground(colorfgbg: str) -> bool | None:
    """Returns whether the background of the terminal is light. `colorfgbg`: the environment variable
    COLORFGBG, such as `15;0`. Returns None if it does not say that."""
    ground = colorfgbg.rpartition(";")[2]
    return int(ground) not in (*range(7), 8) if ground.isdecimal() else None


THEMES: Final[dict[str, Styles]] = {
    "terminal": Styles(
        None,
        {
            "dim": "bright_black",
            "title": "bold",
            "accent": "cyan",
            "good": "green",
            "warn": "yellow",
            "bad": "red",
            "cursor": "default reverse",
            "reversed": "default reverse",
            "selected": "bold on color(236)",
            "selected_light": "bold on color(254)",
            "resting": "bold",
            "tab": "bold reverse",
            "marker": "cyan",
            "gutter": "bright_black",
            "line": "bright_black",
            "add": "green",
            "add_mark": "bold green",
            "delete": "red",
            "delete_mark": "bold red",
            "hunk": "cyan",
            "keyword": "magenta",
            "string": "green",
            "comment": "bright_black",
            "number": "cyan",
            "name": "bright_blue",
            "person": "yellow",
            "agent": "magenta",
            "polling": "bright_blue",
            "polling_pulse": "blink bright_blue",
            "offline_pulse": "blink yellow",
            "heading": "bold cyan",
            "strong": "bold",
            "emphasis": "italic",
            "struck": "strike",
            "quote": "bright_black",
            "code": "yellow",
            "link": "underline bright_blue",
        },
    ),
    "dark": Styles(
        "#16181d",
        {
            "text": "#d5d8df",
            "dim": "#7b8290",
            "title": "bold #ffffff",
            "accent": "#6cb6ff",
            "good": "#7ec77e",
            "warn": "#e0b060",
            "bad": "#ff7a70",
            "cursor": "#ffffff on #2d4f76",
            "reversed": "#d5d8df reverse",
            "selected": "bold on #303030",
            "resting": "bold",
            "tab": "bold #16181d on #6cb6ff",
            "marker": "#6cb6ff",
            "gutter": "#7b8290",
            "line": "#626976",
            "add": "#b5e2b0 on #1d3322",
            "add_mark": "bold #7ec77e on #1d3322",
            "delete": "#f0b5b0 on #3a2224",
            "delete_mark": "bold #ff7a70 on #3a2224",
            "hunk": "#6cb6ff",
            "keyword": "#d79af0",
            "string": "#9fd08c",
            "comment": "#7b8290",
            "number": "#e0b060",
            "name": "#7fb8f5",
            "operator": "#d5d8df",
            "person": "#e0b060",
            "agent": "#d79af0",
            "polling": "#6cb6ff",
            "polling_pulse": "blink #6cb6ff",
            "offline_pulse": "blink #e0b060",
            "heading": "bold #6cb6ff",
            "strong": "bold #ffffff",
            "emphasis": "italic #d5d8df",
            "struck": "strike #7b8290",
            "quote": "#7b8290",
            "code": "#e0b060",
            "code_text": "#d5d8df",
            "link": "underline #7fb8f5",
        },
    ),
    "light": Styles(
        "#fbfbf9",
        {
            "text": "#22252b",
            "dim": "#6a707c",
            "title": "bold #000000",
            "accent": "#0b5cad",
            "good": "#1c7430",
            "warn": "#8a5a00",
            "bad": "#b3261e",
            "cursor": "#000000 on #cfe3f8",
            "reversed": "#22252b reverse",
            "selected": "bold on #e4e4e4",
            "resting": "bold",
            "tab": "bold #ffffff on #0b5cad",
            "marker": "#0b5cad",
            "gutter": "#6a707c",
            "line": "#8d929b",
            "add": "#11401d on #dff3e2",
            "add_mark": "bold #1c7430 on #dff3e2",
            "delete": "#5c1410 on #fbe3e1",
            "delete_mark": "bold #b3261e on #fbe3e1",
            "hunk": "#0b5cad",
            "keyword": "#8a2fa8",
            "string": "#1c7430",
            "comment": "#6a707c",
            "number": "#8a5a00",
            "name": "#0b5cad",
            "operator": "#22252b",
            "person": "#8a5a00",
            "agent": "#8a2fa8",
            "polling": "#0b5cad",
            "polling_pulse": "blink #0b5cad",
            "offline_pulse": "blink #8a5a00",
            "heading": "bold #0b5cad",
            "strong": "bold #000000",
            "emphasis": "italic #22252b",
            "struck": "strike #6a707c",
            "quote": "#6a707c",
            "code": "#8a5a00",
            "code_text": "#22252b",
            "link": "underline #0b5cad",
        },
    ),
    "contrast": Styles(
        "#000000",
        {
            "text": "#ffffff",
            "dim": "#d0d0d0",
            "title": "bold underline #ffffff",
            "accent": "bold #00ffff",
            "good": "bold #00ff66",
            "warn": "bold #ffff00",
            "bad": "bold #ff6060",
            "cursor": "bold #000000 on #ffff00",
            "reversed": "bold #ffffff reverse",
            "selected": "bold #000000 on #ffff00",
            "resting": "bold",
            "tab": "bold #000000 on #00ffff",
            "marker": "bold #ffff00",
            "gutter": "#d0d0d0",
            "line": "#ffffff",
            "add": "#00ff66",
            "add_mark": "bold #00ff66",
            "delete": "#ff6060",
            "delete_mark": "bold #ff6060",
            "hunk": "bold #00ffff",
            "keyword": "bold #ff9cff",
            "string": "#00ff66",
            "comment": "#d0d0d0",
            "number": "#ffff00",
            "name": "bold #7fd0ff",
            "operator": "#ffffff",
            "person": "bold #ffff00",
            "agent": "bold #ff9cff",
            "polling": "bold #7fd0ff",
            "polling_pulse": "blink bold #7fd0ff",
            "offline_pulse": "blink bold #ffff00",
            "heading": "bold #00ffff",
            "strong": "bold #ffffff",
            "emphasis": "italic #ffffff",
            "struck": "strike #d0d0d0",
            "quote": "#d0d0d0",
            "code": "#ffff00",
            "code_text": "#ffffff",
            "link": "bold underline #7fd0ff",
        },
    ),
}


def css_colour(colours: str, role: str) -> str:
    """Returns the colour of a role in the theme `colours`, in the notation of Textual's styles."""
    colour = THEMES[colours][role].color
    if colour is None:
        return "ansi_default"
    return f"ansi_{colour.name}" if colours == "terminal" else colour.name


BACKGROUNDS: Final = {
    "terminal": "ansi_default",
    "dark": "#16181d",
    "light": "#fbfbf9",
    "contrast": "#000000",
}
