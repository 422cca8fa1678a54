"""Links that the terminal itself opens (OSC 8). This module decides which terminals get them, and which
addresses become links. Only terminals that are known to support links get them, because others might print
the address as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

ADDRESS_CHARS = 500  # of a longer address every repaint would send too much
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[][!-~]*")
_PROGRAMS: Final = frozenset({"iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio"})
_TERMS: Final = ("xterm-kitty", "foot", "alacritty", "xterm-ghostty", "wezterm")
_SET_BY: Final = ("KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION")
_VTE = 5000  # the first version of VTE with links
_TMUX = (3, 4)  # the first of tmux


def terminal_opens(env: Mapping[str, str]) -> bool:
    """Returns whether the terminal that these environment variables describe opens links by itself."""
    program, term = env.get("TERM_PROGRAM", ""), env.get("TERM", "")
    if program == "tmux":
        version = re.match(r"(\d+)\.(\d+)", env.get("TERM_PROGRAM_VERSION", ""))
        return version is not None and (int(version[1]), int(version[2])) >= _TMUX
    if term in ("", "dumb", "linux") or term.startswith(("screen", "tmux")):
        return False
    vte = env.get("VTE_VERSION", "")
    return (
        program in _PROGRAMS
        or term.startswith(_TERMS)
        or any(env.get(name) for name in _SET_BY)
        or (vte.isdecimal() and int(vte) >= _VTE)
    )


def opened_by_terminal(address: str) -> bool:
    """Returns whether an address may be written to the terminal as a link. It must be a web address without
    any character that could end or change the escape sequence."""
    return len(address) <= ADDRESS_CHARS and _ADDRESS.fullmatch(address) is not None
