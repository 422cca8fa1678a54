"""The themes of the app. A theme has a colour for each role.

`terminal`, the default theme, uses the terminal's 16 colours and its background. Every state that a colour
shows also has a sign and a word, for users of NO_COLOR and for colour blindness. With NO_COLOR the theme is
`colourless`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rich.color import Color, ColorSystem, ColorType, blend_rgb
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
_READ = 4.5  # the least contrast of text, as WCAG 2 asks for
_SEEN = 3.0  # the least contrast of a label's dot, as WCAG 2 asks for signs
_SEEN_ON_LIGHT = 1.6  # the same on white, where the background is not known and most likely dark
_DARK = 0.2  # the luminance below which text on a background has to be light
_STEPS = 20  # by which a label's colour is brought towards one that is seen
_BLACK, _WHITE = Color.parse("#000000"), Color.parse("#ffffff")


class Styles(dict[str, Style]):
    """The styles (of Rich) of one theme, by role. Some roles are only made when they are needed. For example,
    the role `label d73a4a` has that colour. If the colour would not be seen on the background, it is made
    darker or lighter."""

    def __init__(self, background: str | None, colours: Mapping[str, str], coloured: bool = True) -> None:
        """Makes the styles of a theme. `background`: the background of the theme, None for the terminal's.
        `colours`: the colour of each role in Rich's notation. "" is the terminal's text colour. `coloured`:
        whether labels have colours."""
        self._base = Style.parse(f"on {background}") if background else Style()
        self._coloured = coloured
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
        self[role] = style = self._mix_label(Color.parse(f"#{match[1]}")) if self._coloured else self["text"]
        return style

    def _mix_label(self, colour: Color) -> Style:
        """Returns the style of a label's dot: its colour, mixed with white or black as far as needed."""
        ground, over = self._base.bgcolor, self["selected"]
        grounds = [(_BLACK, _SEEN), (_WHITE, _SEEN_ON_LIGHT)] if ground is None else [(ground, _SEEN)]
        if ground is not None and over.bgcolor is not None and over.color is None:
            grounds.append((over.bgcolor, _SEEN))
        lacking = [on for on, least in grounds if contrast(colour, on) < least]
        if lacking:
            own = colour.get_truecolor()
            to = (_WHITE if _luminance(lacking[0]) < _DARK else _BLACK).get_truecolor()
            mixed = (Color.from_triplet(blend_rgb(own, to, step / _STEPS)) for step in range(1, _STEPS + 1))
            colour = next(mix for mix in mixed if all(contrast(mix, on) >= least for on, least in grounds))
        return self._base + Style.from_color(colour)

    def _tint(self, role: str, ground: str | None, how: str | None, of: str) -> Style:
        """Make and return the style of `role`: the style of the role `of` on the background `ground`. If
        `ground` is None, the text is underlined instead, and reversed as well if `how` is "found"."""
        if ground is None:
            other = Style(underline=True, reverse=True if how == "found" else None)
        else:
            other = Style(bgcolor=f"#{ground}" if len(ground) == 6 else f"color({int(ground) % 256})")
        lender = self if ground is None else self._lender(other.bgcolor)
        style = lender[of] + other
        self[role] = style if ground is None or of == "line" else lender._readable(style)
        return self[role]

    def _lender(self, ground: Color | None) -> Styles:
        """Returns the theme whose colours are used on a background. How the terminal's own colours look on it
        is unknown, so a theme that has no others takes those of a theme that has."""
        if ground is None or self._base.bgcolor is not None or not self._coloured:
            return self
        return THEMES["dark" if _luminance(ground) < _DARK else "light"]

    def _readable(self, style: Style) -> Style:
        """Returns the style, changed if its colour cannot be read on its background. The colour is then mixed
        with white or black as far as needed."""
        colour, ground = style.color, style.bgcolor
        if colour is None or ground is None or colour.is_system_defined:
            return style
        system = ColorSystem.EIGHT_BIT if ground.type == ColorType.EIGHT_BIT else ColorSystem.TRUECOLOR
        own, to = colour.get_truecolor(), (_WHITE if _luminance(ground) < _DARK else _BLACK).get_truecolor()
        for step in range(_STEPS + 1):
            mixed = Color.from_triplet(blend_rgb(own, to, step / _STEPS)).downgrade(system)
            if contrast(mixed, ground) >= _READ:
                break
        return style if step == 0 else style + Style.from_color(mixed)


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
    background is known, that is a tint, which keeps the colours of the text. Otherwise the line is reversed.
    `colours`: name of the theme. `colorfgbg`: the value of the environment variable COLORFGBG, such as
    `15;0`."""
    if no_color or system not in ("256", "truecolor"):
        return "reversed"
    if colours != "terminal":
        return "selected"
    light = light_ground(colorfgbg)
    return "reversed" if light is None else "selected_light" if light else "selected"


def choose_theme(colours: str, system: str | None, no_color: bool) -> str:
    """Returns the theme for a terminal if the user has chosen the theme `colours`. A terminal with 16 colours
    gets `terminal` in place of `dark` and `light`, because it would round their colours to ones that nobody
    can read. A terminal without colours gets `colourless`."""
    if no_color or system is None:
        return COLOURLESS
    return "terminal" if system == "standard" and colours in ("dark", "light") else colours


def light_ground(colorfgbg: str) -> bool | None:
    """Returns whether the background of the terminal is light. `colorfgbg`: the environment variable
    COLORFGBG, such as `15;0`. Returns None if it does not say that."""
    ground = colorfgbg.rpartition(";")[2]
    return int(ground) not in (*range(7), 8) if ground.isdecimal() else None


COLOURLESS: Final = "colourless"
"""The theme of a terminal that shall show no colours (NO_COLOR): roles differ by bold, faint, underlined and
reversed text only."""

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
            "good": "#1a6f2c",
            "warn": "#6b5900",
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
            "add_mark": "bold #1a6f2c on #dff3e2",
            "delete": "#5c1410 on #fbe3e1",
            "delete_mark": "bold #b3261e on #fbe3e1",
            "hunk": "#0b5cad",
            "keyword": "#8a2fa8",
            "string": "#1a6f2c",
            "comment": "#6a707c",
            "number": "#6b5900",
            "name": "#0b5cad",
            "operator": "#22252b",
            "person": "#6b5900",
            "agent": "#8a2fa8",
            "polling": "#0b5cad",
            "polling_pulse": "blink #0b5cad",
            "offline_pulse": "blink #6b5900",
            "heading": "bold #0b5cad",
            "strong": "bold #000000",
            "emphasis": "italic #22252b",
            "struck": "strike #6a707c",
            "quote": "#6a707c",
            "code": "#6b5900",
            "code_text": "#22252b",
            "link": "underline #0b5cad",
        },
    ),
    "contrast": Styles(
        "#000000",
        {
            "text": "#ffffff",
            "dim": "#d0d0d0",
            "title": "bold #ffffff",
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
            "line": "#a0a0a0",
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
    COLOURLESS: Styles(
        None,
        {
            "dim": "dim",
            "title": "bold",
            "accent": "bold",
            "bad": "bold",
            "cursor": "reverse not dim",
            "reversed": "reverse not dim",
            "selected": "bold",
            "resting": "bold",
            "tab": "bold reverse",
            "marker": "bold",
            "gutter": "dim",
            "line": "dim",
            "add_mark": "bold",
            "delete": "dim",
            "delete_mark": "bold",
            "hunk": "dim",
            "keyword": "bold",
            "comment": "dim",
            "polling_pulse": "blink",
            "offline_pulse": "blink",
            "heading": "bold",
            "strong": "bold",
            "emphasis": "italic",
            "struck": "strike",
            "quote": "dim",
            "link": "underline",
        },
        coloured=False,
    ),
}
CHOSEN: Final = tuple(name for name in THEMES if name != COLOURLESS)
"""The themes that a user can choose."""


def css_colour(colours: str, role: str) -> str:
    """Returns the colour of a role in the theme `colours`, in the notation of Textual's styles."""
    colour = THEMES[colours][role].color
    if colour is None:
        return "ansi_default"
    return f"ansi_{colour.name}" if is_terminals(colours) else colour.name


def is_terminals(colours: str) -> bool:
    """Returns whether a theme has the background of the terminal. Textual leaves the colours of such a theme
    alone."""
    return BACKGROUNDS[colours] == "ansi_default"


BACKGROUNDS: Final = {
    "terminal": "ansi_default",
    "dark": "#16181d",
    "light": "#fbfbf9",
    "contrast": "#000000",
    COLOURLESS: "ansi_default",
}
