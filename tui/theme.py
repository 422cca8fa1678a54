"""Colours by role, one set for each theme.

`terminal`, the default, uses the terminal's 16 colours and background. Every state shown by a colour also has
a glyph and a word, for NO_COLOR and colour blindness.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
]


def _styles(background: str | None, colours: Mapping[str, str]) -> dict[str, Style]:
    """A style for each role; `colours` in Rich's words, "" for the terminal's text colour."""
    base = Style.parse(f"on {background}") if background else Style()
    return {role: base + Style.parse(colours.get(role) or "none") for role in ROLES}


THEMES: Final[dict[str, dict[str, Style]]] = {
    "terminal": _styles(
        None,
        {
            "dim": "bright_black",
            "title": "bold",
            "accent": "cyan",
            "good": "green",
            "warn": "yellow",
            "bad": "red",
            "cursor": "default reverse",
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
            "name": "blue",
            "person": "yellow",
            "agent": "magenta",
        },
    ),
    "dark": _styles(
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
        },
    ),
    "light": _styles(
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
        },
    ),
    "contrast": _styles(
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
        },
    ),
}
BACKGROUNDS: Final = {
    "terminal": "ansi_default",
    "dark": "#16181d",
    "light": "#fbfbf9",
    "contrast": "#000000",
}
