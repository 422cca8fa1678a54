"""Actions (things that a key can do): one table of them defines the keys, the footer, the help and the
palette.

    ACTIONS = (
        Action("find_file", ("t",), "find file", "svc repo api repos/{id}/tree/{seal}?recursive=1"),
    )

A screen has its own table; the app's table applies to all screens. The action `find_file` runs the method
`do_find_file` of the screen, else of the app. `keys.toml` changes keys; two actions on one key are reported
at start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.errors import UsageError

Needs = Literal["", "online", "signed_in", "item", "write"]


class Action(msgspec.Struct, frozen=True):
    """Something that a key does. `keys`: in Textual's names. `command`: the `svc` command line with the same
    effect, "" if there is none; `{…}` are filled in from the screen. `needs`: a condition; if it is not met,
    the action says why it is not available. `footer`: it is shown in the line of keys. `right`: the operation
    in the table of rights that the account must be allowed, "" for none."""

    id: str
    keys: tuple[str, ...]
    label: str
    command: str = ""
    needs: Needs = ""
    footer: bool = False
    right: str = ""


MOVES = (
    Action("down", ("j", "down"), "next row"),
    Action("up", ("k", "up"), "previous row"),
    Action("first", ("g", "home"), "first row"),
    Action("last", ("G", "end"), "last row"),
    Action("half_down", ("ctrl+d", "pagedown"), "half a page down"),
    Action("half_up", ("ctrl+u", "pageup"), "half a page up"),
    Action("left", ("left",), "scroll left"),
    Action("right", ("right",), "scroll right"),
    Action("open", ("enter",), "open", footer=True),
    Action("pane", ("tab",), "next link or pane"),
)
EVERYWHERE = (
    *MOVES,
    Action("back", ("escape", "q"), "back", footer=True),
    Action("filter", ("slash",), "filter", footer=True),
    Action("next_match", ("n",), "next match"),
    Action("previous_match", ("N",), "previous match"),
    Action("refresh", ("r",), "refresh", needs="online"),
    Action("go_repo", ("w",), "go to a repository", "svc repo list"),
    Action("command", ("colon",), "run an svc command"),
    Action("palette", ("ctrl+p", "space"), "all actions"),
    Action("inbox", ("i",), "inbox", "svc inbox"),
    Action("sync", ("s",), "sync: state and queue", "svc queue list"),
    Action("machine", ("M",), "this machine: models, apps", "svc llm status"),
    Action("help", ("question_mark",), "keys here", footer=True),
    Action("account", (), "account: sessions, devices, tokens", "svc auth status"),
    Action("theme", (), "next theme"),
    Action("suspend", ("ctrl+z",), "suspend; fg comes back"),
    Action("quit", ("ctrl+c",), "quit"),
)

_NAMES = {
    "slash": "/",
    "colon": ":",
    "question_mark": "?",
    "escape": "esc",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


BRACES = re.compile(r"\{(\w+)\}")
OF_THE_SCREEN = frozenset({"repo", "id", "seal", "state", "title", "version"})  # braces that name no row


def is_about_row(action: Action) -> bool:
    """Whether the action is about the row under the cursor: it opens the row, or its command has the number
    or name of the row."""
    return action.id == "open" or bool(set(BRACES.findall(action.command)) - OF_THE_SCREEN)


def spoken(key: str) -> str:
    """The key as people write it, from Textual's name: `/` for `slash`."""
    return _NAMES.get(key, key)


def remap(actions: Iterable[Action], changes: Mapping[str, tuple[str, ...]]) -> tuple[Action, ...]:
    """The actions with the user's keys. `changes`: the keys by id of the action."""
    return tuple(
        msgspec.structs.replace(action, keys=changes[action.id]) if action.id in changes else action
        for action in actions
    )


def clashes(actions: Iterable[Action]) -> list[str]:
    """A sentence for each key that two of the actions share."""
    seen: dict[str, Action] = {}
    clashing = []
    for action in actions:
        for key in action.keys:
            other = seen.setdefault(key, action)
            if other.id != action.id:
                clashing.append(f"{spoken(key)} is {other.label} and {action.label}")
    return clashing


def read_keys(file: Path) -> dict[str, tuple[str, ...]]:
    """The user's keys from `keys.toml`, by id of the action; {} without the file. Raises UsageError if it
    cannot be read."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    import tomllib  # most people have no such file

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    keys: dict[str, tuple[str, ...]] = {}
    for action, value in data.items():
        chosen = (value,) if isinstance(value, str) else value
        if not isinstance(chosen, (tuple, list)) or not all(isinstance(key, str) and key for key in chosen):
            raise UsageError(f"{file}: {action} is a key or a list of keys")
        keys[action] = tuple(chosen)
    return keys
