"""The operation that an action names is the one whose route its command calls.

Commands name endpoints, the relay says of each route which operation it is, and the table of rights who may.
What a role gets as an answer of each route is compared with that table in tests/relay/rights.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache, cached_property
from types import FunctionType, ModuleType
from typing import Any

import pytest

from localstore.core.endpoint import Endpoint
from localstore.core.model.rights import OPERATIONS
from relay import domain
from relay.http.routing import TABLE
from svc.api import Api
from svc.cmd.frame.command import function_of
from svc.cmd.frame.table import COMMANDS
from tests.tui.test_every_action import every_action
from tui.actions import Action
from tui.offers import OFFERS

DEEP = 6  # calls from a command to the request
# One route whose body says what it changes; each change has a row of rights (tests/relay/rights/test_inside).
WITHIN = {
    "issue.update": {"issue.edit", "issue.close", "issue.reopen", "issue.assign"},
    "proposal.update": {
        "proposal.edit",
        "proposal.close",
        "proposal.reopen",
        "proposal.ready",
        "proposal.reviewers",
        "issue.assign",
    },
}
BY_AGENT = {"watch"}  # its requests are the agent's


@cache
def operations() -> dict[tuple[str, str], str]:
    """Method and path of each route → its operation."""
    domain.load()
    return {(row.method, row.path): row.operation.name for row in TABLE}


def called_by(path: str) -> set[str]:
    """The operations of the endpoints that a command and what it calls name."""
    known = operations()
    found = endpoints_of(function_of(path), DEEP)
    named = {known[one.method, one.path] for one in found if (one.method, one.path) in known}
    return named.union(*(WITHIN.get(one, set()) for one in named))


@cache
def endpoints_of(function: Any, deep: int) -> frozenset[Endpoint[Any]]:
    """The endpoints that a function names, or functions of svc that it names."""
    found: set[Endpoint[Any]] = set()
    for one in named_in(inspect.unwrap(function)):
        if isinstance(one, Endpoint):
            found.add(one)
        elif isinstance(one, (FunctionType, type)) and deep and one.__module__.startswith("svc."):
            for part in [one] if isinstance(one, FunctionType) else methods(one):
                found |= endpoints_of(part, deep - 1)
    return frozenset(found)


def methods(kind: type) -> list[FunctionType]:
    return [one for one in vars(kind).values() if isinstance(one, FunctionType)]


def named_in(function: Any) -> Iterator[Any]:
    """What the names in a function's text stand for, with those that it imports itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = dict(function.__globals__)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = importlib.import_module(node.module)
            for alias in node.names:
                value: Any = getattr(module, alias.name, None)
                if value is None:
                    value = importlib.import_module(f"{node.module}.{alias.name}")
                names[alias.asname or alias.name] = value
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield names.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            calls = vars(Api).get(node.attr)  # as in api.release.upload
            if node.value.id == "api" and isinstance(calls, cached_property):
                yield calls.func
            owner = names.get(node.value.id)
            if isinstance(owner, ModuleType):
                yield getattr(owner, node.attr, None)


def of_commands() -> list[Action]:
    """Actions that name an operation and a command."""
    found: dict[tuple[str, str], Action] = {}
    for action in every_action():
        if action.right and command_of(action) not in {"", *BY_AGENT}:
            found.setdefault((action.command, action.right), action)
    return list(found.values())


def command_of(action: Action) -> str:
    words = action.command.removeprefix("svc ").split()
    return next((path for n in (3, 2, 1) if (path := " ".join(words[:n])) in COMMANDS), "")


def test_there_are_actions_to_compare() -> None:
    assert len(of_commands()) > 80
    assert "label.delete" in called_by("label delete")


@pytest.mark.parametrize("action", of_commands(), ids=lambda one: f"{one.command}={one.right}")
def test_the_named_operation_is_one_that_the_command_calls(action: Action) -> None:
    assert action.right in called_by(command_of(action))


@pytest.mark.parametrize("action", [one for one in OFFERS if not one.right], ids=lambda one: one.command)
def test_an_action_without_an_operation_needs_no_role(action: Action) -> None:
    """Its command asks nothing that only some roles may."""
    needed = {OPERATIONS[one].least for one in called_by(command_of(action))}
    assert needed <= {None, "read"}, needed
