"""Every command of people who work together has an action in the app, and each action runs something."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from localstore.core.model.rights import OPERATIONS
from svc.cmd.frame.catalogue import NOT_INSIDE, fields
from svc.cmd.frame.table import COMMANDS
from tui.actions import Action
from tui.commands import missing, parse_values, words_of
from tui.offers import OFFERS
from tui.screens.tables import PLACES, actions_in

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
