"""The table of actions: real commands, no clash, keys that can be changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.errors import UsageError
from svc.cmd.frame.table import COMMANDS
from tui.actions import EVERYWHERE, Action, clashes, read_keys, remap
from tui.app import SvcApp
from tui.screens.code import Code
from tui.screens.home import Home
from tui.screens.overview import Overview
from tui.screens.repo import RepoScreen

TABLES = {"everywhere": EVERYWHERE, "home": Home.ACTIONS, "repo": RepoScreen.ACTIONS, "code": Code.ACTIONS}
FORBIDDEN = ("ctrl+", "alt+")
ALLOWED = {"ctrl+d", "ctrl+u", "ctrl+p", "ctrl+c"}


@pytest.mark.parametrize("name", TABLES)
def test_every_command_line_is_real(name: str) -> None:
    for action in TABLES[name]:
        words = action.command.removeprefix("svc ").split()
        if words:
            assert any(" ".join(words[:count]) in COMMANDS for count in range(1, len(words) + 1)), action


@pytest.mark.parametrize("tables", [("everywhere", "home"), ("everywhere", "repo", "code")])
def test_no_key_does_two_things(tables: tuple[str, ...]) -> None:
    by_id: dict[str, Action] = {}
    for name in tables:
        by_id |= {action.id: action for action in TABLES[name]}
    assert clashes(by_id.values()) == []


@pytest.mark.parametrize("name", TABLES)
def test_no_chord_that_terminals_take(name: str) -> None:
    keys = {key for action in TABLES[name] for key in action.keys}
    assert {key for key in keys if key.startswith(FORBIDDEN)} <= ALLOWED


@pytest.mark.parametrize(
    ("name", "owners"),
    [("everywhere", (SvcApp, Home)), ("home", (Home, SvcApp)), ("code", (Code, RepoScreen, SvcApp))],
)
def test_every_action_runs_something(name: str, owners: tuple[type, ...]) -> None:
    for action in TABLES[name]:
        assert any(hasattr(owner, f"do_{action.id}") for owner in owners), action.id
    assert Overview.ACTIONS == ()


def test_keys_can_be_changed(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('down = ["j", "ctrl+n"]\nhelp = "f1"\n')
    changed = {action.id: action.keys for action in remap(EVERYWHERE, read_keys(file))}
    assert changed["down"] == ("j", "ctrl+n")
    assert changed["help"] == ("f1",)
    assert changed["up"] == ("k", "up")


def test_a_clash_is_named() -> None:
    assert clashes(remap(EVERYWHERE, {"help": ("j",)})) == ["j is next row and keys here"]


@pytest.mark.parametrize("text", ["down = 3", "down = [", "down = [1]"])
def test_a_file_of_keys_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"keys\.toml"):
        read_keys(file)
