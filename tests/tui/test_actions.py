"""The table of actions: real commands, no clash, keys that can be changed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from localstore.core.errors import UsageError
from svc.cmd.frame.table import COMMANDS
from tui.actions import EVERYWHERE, clashes, read_keys, remap, spell_key
from tui.app import SvcApp
from tui.offers import OFFERS
from tui.screens.code.code import Code
from tui.screens.code.comparison import Comparison
from tui.screens.code.edit import Edit
from tui.screens.code.overview import Overview
from tui.screens.home import Home
from tui.screens.lists.inbox import Inbox
from tui.screens.lists.insights import Insights
from tui.screens.lists.new_release import NewRelease
from tui.screens.lists.releases import Releases, ReleaseScreen
from tui.screens.lists.runs import RunScreen, Workflows
from tui.screens.lists.security import Security
from tui.screens.machine.machine import MachineScreen
from tui.screens.proposal.files import Files
from tui.screens.proposal.merge import Merge
from tui.screens.proposal.screen import ProposalScreen
from tui.screens.repo import RepoScreen
from tui.screens.settings.account import Account
from tui.screens.settings.rule import RuleScreen
from tui.screens.settings.settings import Settings
from tui.screens.sync import Sync
from tui.screens.tables import PLACES, actions_in, require_keys
from tui.screens.talk.editing import Editing
from tui.screens.talk.issue import IssueScreen
from tui.screens.talk.issues import Issues
from tui.screens.talk.new_issue import NewIssue
from tui.screens.talk.new_proposal import NewProposal

PLACED = [(place, action) for place in PLACES for action in actions_in(place)]
FORBIDDEN = ("ctrl+", "alt+")
ALLOWED = {"ctrl+d", "ctrl+u", "ctrl+p", "ctrl+c", "ctrl+z", "ctrl+s"}
OWNERS = {
    "home": (Home, SvcApp),
    "overview": (Overview, RepoScreen, SvcApp),
    "code": (Code, RepoScreen, SvcApp),
    "edit": (Edit, SvcApp),
    "issues": (Issues, RepoScreen, SvcApp),
    "edit a text": (Editing, SvcApp),
    "new issue": (NewIssue, SvcApp),
    "new proposal": (NewProposal, SvcApp),
    "new release": (NewRelease, SvcApp),
    "issue": (IssueScreen, SvcApp),
    "releases": (Releases, RepoScreen, SvcApp),
    "release": (ReleaseScreen, SvcApp),
    "inbox": (Inbox, SvcApp),
    "proposal": (ProposalScreen, SvcApp),
    "merge": (Merge, SvcApp),
    "files": (Files, SvcApp),
    "comparison": (Comparison, SvcApp),
    "workflows": (Workflows, RepoScreen, SvcApp),
    "run": (RunScreen, SvcApp),
    "security": (Security, RepoScreen, SvcApp),
    "insights": (Insights, RepoScreen, SvcApp),
    "settings": (Settings, RepoScreen, SvcApp),
    "rule": (RuleScreen, SvcApp),
    "account": (Account, SvcApp),
    "sync": (Sync, SvcApp),
    "machine": (MachineScreen, SvcApp),
}


def test_every_command_line_is_real() -> None:
    for _, action in PLACED:
        words = action.command.removeprefix("svc ").split()
        if words:
            assert any(" ".join(words[:count]) in COMMANDS for count in range(1, len(words) + 1)), action


@pytest.mark.parametrize("place", PLACES)
def test_no_key_does_two_things(place: str) -> None:
    assert clashes(actions_in(place)) == []


def test_no_chord_that_terminals_take() -> None:
    keys = {key for _, action in PLACED for key in action.keys}
    assert {key for key in keys if key.startswith(FORBIDDEN)} <= ALLOWED


def test_every_action_runs_something() -> None:
    for place, action in PLACED:
        tab = action.id.startswith("tab_")
        assert tab or action in OFFERS or any(hasattr(owner, f"do_{action.id}") for owner in OWNERS[place]), (
            action.id
        )


def test_keys_can_be_changed(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('down = ["j", "ctrl+n"]\nhelp = "f1"\n')
    changed = {action.id: action.keys for action in remap(EVERYWHERE, read_keys(file))}
    assert changed["down"] == ("j", "ctrl+n")
    assert changed["help"] == ("f1",)
    assert changed["up"] == ("k", "up")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"help": ("j",)}, "two actions on one key in home: j is next row and keys here"),
        ({"blame": ("1",)}, "two actions on one key in code"),
        ({"fly": ("x",)}, "keys.toml names fly, which is not an action"),
    ],
)
def test_a_clash_is_named(keys: dict[str, tuple[str, ...]], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        require_keys(keys, "keys.toml")


@pytest.mark.parametrize("text", ["down = 3", "down = [", "down = [1]"])
def test_a_file_of_keys_that_cannot_be_read_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"keys\.toml"):
        read_keys(file)


def test_every_key_is_spelled_as_people_write_it() -> None:
    spelled = {spell_key(key) for _, action in PLACED for key in action.keys}
    assert not [key for key in spelled if "_" in key]
