"""Sentences of svc name commands as the app runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.cmd.frame.catalogue import NOT_INSIDE, catalogue
from svc.cmd.frame.context import Run
from svc.console import Out
from tui.wording import COMMANDS, SHELL_ONLY, in_app, reason_unreached


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("sign in first; run: svc login", "sign in first; run :login"),
        ("check the name, or sign in: svc login", "check the name, or sign in: run :login"),
        ("see: svc repo branch, svc repo tag list, svc log", "see :repo branch, :repo tag list, :log"),
        ("to get it: svc repo clone ann/a", "to get it: run :repo clone ann/a"),
        ("check your network, then run the command again", "check your network, then try again"),
        ("it is a draft (svc pr ready)", "it is a draft (:pr ready)"),
        ("archived; svc repo unarchive opens it again", "archived; :repo unarchive opens it again"),
        ("svc cannot be started: no such file", "svc cannot be started: no such file"),
        ("start again: svc auth device pair", "start again: svc auth device pair"),
        ("in one, type: svc login --server URL", "in one, type: svc login --server URL"),
        ("see ~/.svc login", "see ~/.svc login"),
    ],
)
def test_a_command_is_named_as_the_app_runs_it(sentence: str, said: str) -> None:
    assert in_app(sentence) == said


def test_the_commands_are_those_of_the_apps_table(tmp_path: Path) -> None:
    environment = {"SVC_SERVER": "https://a.example", "SVC_HOME": str(tmp_path)}
    commands = catalogue(Run(Out(environment), environment, tmp_path))
    assert {path.split()[0] for path in commands.summaries} == set(COMMANDS)
    assert {path for path in NOT_INSIDE if path.split()[0] in COMMANDS} == set(SHELL_ONLY)


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        (
            "cannot reach http://a.example:80 ([Errno 111] Connection refused); check the address (--server, "
            "SVC_SERVER), your network, and that the node is running",
            "cannot reach a.example:80 (connection refused)",
        ),
        (
            "https://a.example did not answer, nor did it on another connection; check your network, then "
            "run the command again",
            "a.example does not answer",
        ),
        ("https://a.example does something else", "https://a.example does something else"),
    ],
)
def test_why_a_server_is_not_reached_is_said_in_a_few_words(detail: str, said: str) -> None:
    assert reason_unreached(detail) == said
