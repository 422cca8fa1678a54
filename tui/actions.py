"""The table of actions. An action is something that a key does. The keys, the line of keys, the help and the
palette are all made from this table.

    ACTIONS = (
        Action("find_file", ("t",), "find file", "svc repo api repos/{id}/tree/{seal}?recursive=1"),
    )

Each screen has a table of its own. The table of the app applies on all screens. The action `find_file` calls
the method `do_find_file` of the screen or, if the screen has none, of the app. The user's `keys.toml` can
change keys. If it puts two actions on one key, the app reports that at the start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.errors import UsageError

Needs = Literal["", "online", "signed_in", "item", "write"]


class Action(msgspec.Struct, frozen=True):
    """One action: something that a key does. `keys`: the keys, by Textual's names. `command`: the `svc`
    command line with the same effect, "" if there is none. Words in braces in it are replaced by values of
    the screen. Words in capitals stand for what the user is asked for. `needs`: a condition. While it is not
    met, the key shows why the action is not available. `footer`: the line of keys shows the action. `right`:
    the operation in the table of rights that the account must be allowed, "" for none."""

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
    Action("go_repo", ("w",), "go to a repository"),
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

WITHIN = tuple(  # the actions of the app on a card that nothing leads away from before it is closed
    action
    for action in EVERYWHERE
    if action in MOVES or action.id in ("back", "help", "theme", "suspend", "quit")
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
    "left_parenthesis": "(",
    "right_parenthesis": ")",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "asterisk": "*",
    "plus": "+",
    "minus": "-",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


BRACES = re.compile(r"\{(\w+)\}")
OF_THE_SCREEN = frozenset(
    {"repo", "id", "seal", "state", "title", "version", "pattern"}
)  # braces that name no row


def is_about_row(action: Action) -> bool:
    """Returns whether an action is about the row under the cursor. Such an action opens the row, or its
    command contains the number or name of the row."""
    return action.id == "open" or bool(set(BRACES.findall(action.command)) - OF_THE_SCREEN)


def spell_key(key: str) -> str:
    """Returns a key as people write it, such as `/`. `key`: its name in Textual, such as `slash`."""
    return _NAMES.get(key, key)


def find_key(id: str, actions: Iterable[Action]) -> str:
    """Returns the first key of the action with this id, as people write it. Returns "" if it has none, or if
    it is not among `actions`."""
    keys = next((action.keys for action in actions if action.id == id), ())
    return spell_key(keys[0]) if keys else ""


def remap(actions: Iterable[Action], changes: Mapping[str, tuple[str, ...]]) -> tuple[Action, ...]:
    """Returns the actions with the user's keys in place of their own. `changes`: the user's keys by the id of
    the action."""
    return tuple(
        msgspec.structs.replace(action, keys=changes[action.id]) if action.id in changes else action
        for action in actions
    )


def clashes(actions: Iterable[Action]) -> list[str]:
    """Returns a sentence for each key that belongs to two of the actions."""
    seen: dict[str, Action] = {}
    clashing = []
    for action in actions:
        for key in action.keys:
            other = seen.setdefault(key, action)
            if other.id != action.id:
                clashing.append(f"{spell_key(key)} is {other.label} and {action.label}")
    return clashing


def read_keys(file: Path) -> dict[str, tuple[str, ...]]:
    """Returns the user's keys from `keys.toml`, by the id of the action. Returns {} if there is no such file.
    Raises UsageError if it cannot be read."""
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
