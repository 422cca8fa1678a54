"""Every command of people who work together has an action in the app, and each action runs something."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from localstore.core.model.rights import OPERATIONS
from svc.cmd.frame.catalogue import NOT_INSIDE, fields
from svc.cmd.frame.table import COMMANDS
from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.settings.test_settings import to
from tests.tui.test_app import press, project, sees, settle
from tui.actions import BRACES, Action
from tui.app import SvcApp
from tui.commands import missing, parse_values, words_of
from tui.machine import Place
from tui.offers import OFFERS
from tui.screens.tables import PLACES, actions_in

__all__ = ["project", "proposal"]
TOGETHER = re.compile(
    r"issue|pr|label|inbox|advisories|repo (release|run|checks|reports|webhook|collaborator|invite|access"
    r"|protect|transfer|star|unstar|watch|unwatch|fork|tag|branch)"
)


def together() -> list[str]:
    """The commands of the groups of collaboration."""
    return [path for path in COMMANDS if TOGETHER.match(path)]


def named_by(actions: Iterable[Action]) -> set[str]:
    """The commands that actions name."""
    found = set()
    for action in actions:
        words = action.command.removeprefix("svc ").split()
        paths = [" ".join(words[:count]) for count in range(len(words), 0, -1)]
        found |= set([path for path in paths if path in COMMANDS][:1])
    return found


def every_action() -> list[Action]:
    return [action for place in PLACES for action in actions_in(place)]


def test_each_command_of_collaboration_has_an_action() -> None:
    assert sorted(set(together()) - named_by(every_action())) == []


def test_no_action_is_one_too_many() -> None:
    """Without any one of the offers a command would have no action."""
    for offer in OFFERS:
        rest = [action for action in every_action() if action.id != offer.id]
        assert set(together()) - named_by(rest), offer.id


def test_each_action_names_an_operation_of_the_table_of_rights() -> None:
    assert [action.id for action in every_action() if action.right and action.right not in OPERATIONS] == []


def test_the_form_of_each_command_makes_its_line() -> None:
    """What the form collects is a command line from which the same values are read."""
    for path in COMMANDS:
        if path in NOT_INSIDE:
            continue
        own = fields(path)
        values = {
            field.name: "yes" if field.flag else field.choices[0] if field.choices else "7" for field in own
        }
        assert missing(own, values) == []
        words = words_of(path, own, values)
        assert parse_values(own, words[len(path.split()) :]) == values, path
        required = [field for field in own if field.required]
        assert missing(own, {}) == required, path


def test_each_command_line_of_an_action_can_be_typed() -> None:
    """Its words are arguments and options of its command."""
    wrong = []
    for action in every_action():
        words = shlex.split(action.command.removeprefix("svc "))
        path = next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in COMMANDS), "")
        if path and path not in NOT_INSIDE and parse_values(fields(path), words[len(path.split()) :]) is None:
            wrong.append(action.command)
    assert sorted(set(wrong)) == []


# What the user is asked for after the key. Everything else in a command is on the screen.
ASKED = {"TEXT", "NAME", "TITLE", "HANDLE", "PATHS", "VERSION", "REACTION"}
# Actions that do something that no command does, such as moving a cursor.
WITHOUT = re.compile(
    r"(older|newer|replay|live|follow|split|blanks|ref|go_repo|rules|seen|facts|find_file|search_files|pane|zoom"
    r"|wider|narrower|preview|tab_[24-8]|next_.*|previous_.*|discard|unfold|select.*|tree|hide_tree|copy_.*)$"
)
# Action → commands that do the same, wherever the action is.
SAME = {
    "comment": {"issue comment", "pr comment"},
    "write": {"issue comment", "pr comment"},
    "label": {"issue label add", "pr label add"},
    "assign": {"issue edit", "pr edit"},
    "people": {"issue edit", "pr edit"},
    "title": {"issue edit", "pr edit"},
    "close": {"issue close", "pr close"},
    "react": {"issue react", "pr react"},
    "reviewer": {"pr edit"},
    "draft": {"pr ready"},
    "changed_since": {"pr range-diff"},
    "approve": {"pr review"},
    "changes": {"pr review"},
    "remark": {"pr review"},
    "merge": {"pr merge"},
    "checkout": {"pr checkout"},
    "suggest": {"pr comment"},
    "pending": {"pr comment"},
    "resolve": {"pr resolve"},
    "apply": {"pr apply"},
    "rerun": {"repo run rerun"},
    "cancel": {"repo run cancel"},
    "blame": {"blame"},
    "history": {"log"},
    "newest": {"show"},
    "check": {"repo checks enable"},
    "clear": {"repo protect clear"},
    "tab_1": {"repo view"},
    "tab_3": {"issue list"},
    "kind": {"pr list", "issue list"},
    "state": {"pr list", "issue list"},
    "inbox": {"inbox"},
    "upload": {"repo release upload"},
}


def path_of(command: str) -> str:
    words = command.removeprefix("svc ").split()
    return next((" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in COMMANDS), "")


@pytest.mark.parametrize("place", PLACES)
def test_each_action_names_the_command_that_does_the_same(place: str) -> None:
    wrong = []
    for action in actions_in(place):
        path, command = path_of(action.command), action.command
        if not action.keys or not path:
            continue
        if path not in SAME.get(action.id, {path}):
            wrong.append(f"{action.id} is not {command}")
        if WITHOUT.match(action.id):
            wrong.append(f"{action.id} does what no command does")
        asked = set(re.findall(r"[A-Z]{2,}", command))
        if not asked <= ASKED:
            wrong.append(f"{action.id} shows {asked - ASKED}")
        if path in ("issue edit", "pr edit") and not re.search(" -", command):
            wrong.append(f"{action.id} shows a command that changes nothing")
    assert wrong == []


async def test_the_help_is_true(proposal: str, alice: Svc, open_app: Callable[..., SvcApp]) -> None:
    """A command is listed with real values or not at all, each key as it is typed, and nothing twice."""
    assert alice("issue", "create", "-t", "Retry stalls", "-b", "").code == 0
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    run = json.loads(alice("repo", "run", "create", "lint", "--seal", seal, "--json", "id").out)["id"]
    assert alice("repo", "protect", "set", "release/*", "--required-approvals", "2").code == 0
    repo = json.loads(alice("repo", "view", proposal, "--json", "id").out)["id"]
    app = open_app(place=Place(Path.cwd(), repo, proposal, "main"))
    async with app.run_test(size=(180, 60)) as pilot:
        await settle(pilot)

        async def helped(*words: str) -> str:
            await press(pilot, "question_mark")
            text = await sees(pilot, "─ Keys", *words)
            rows = [row for row in text.splitlines() if " svc " in row]
            left = {word for row in rows for word in re.findall(r"(?<![-\w$])[A-Z]{3,}(?!\w)", row)}
            assert left <= {*ASKED, "EDITOR", "README"}, rows
            assert not re.search(r"asterisk|square_bracket", text)
            await press(pilot, "escape")
            return text

        text = await helped("quit")
        assert text.count(" quit ") == 1 and "q ctrl+c" in text and "List what" not in text
        await press(pilot, "enter", "1")
        text = await helped(f"svc repo view {proposal}", "svc issue list", "star, watch or fork", " * ")
        assert text.count("svc repo view") == 1
        await press(pilot, "2", "j")
        await helped("svc blame README.md", "svc log README.md")
        await press(pilot, "3")
        await helped("svc issue close 2", "svc issue edit 2 --add-assignee @me", "--state closed")
        await press(pilot, "p")
        await helped("svc pr close 1", "svc pr edit 1 --add-assignee @me", "svc pr create -t TITLE")
        await press(pilot, "enter")
        await helped("svc pr merge 1", "svc pr ready 1 --undo", "svc pr edit 1 --add-reviewer NAME")
        await press(pilot, "z")
        await sees(pilot, "⊘ closed")
        await helped("svc pr reopen 1")
        await press(pilot, "escape", "4")
        await sees(pilot, "lint")
        await helped(f"svc repo run cancel {run}")
        await press(pilot, "8")
        await to(pilot, "Branch rules", "rule", "release/*")
        await press(pilot, "enter")
        await helped("svc repo protect set 'release/*' --require-review")


@pytest.mark.parametrize("place", PLACES)
def test_braces_are_facts_of_a_screen(place: str) -> None:
    """No screen can fill others."""
    braces = {name for action in actions_in(place) for name in BRACES.findall(action.command)}
    facts = {
        *("repo", "n", "seal", "state", "path", "line", "side", "thread", "run", "version", "advisory"),
        *("pattern", "id", "item", "dependent", "model", "app", "name", "file"),
    }
    assert braces <= facts
