"""The list of svc's commands for the terminal app."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from svc.agent.invoke.programs import Programs
from svc.cmd.frame.context import Run
from svc.cmd.frame.foreign_commands import WORDS
from svc.cmd.frame.over_ssh import list_offered
from svc.cmd.frame.table import COMMANDS
from svc.cmd.frame.values import words_of
from svc.console.output import LINES
from svc.http.remote import link
from tui.commands import Commands, Parameter

NOT_INSIDE = {
    "tui": "svc tui is the app that you are in",
    "invoke": "svc invoke is for programs: type the command itself, such as :issue list",
    "completions": "svc completions is for the configuration of a shell: run it there",
    "llm serve": "svc llm serve keeps a terminal to itself: run it in a shell",
    "llm run": "svc llm run needs a terminal to itself: run it in a shell",
    "auth device pair": "svc auth device pair shows digits and waits for an answer: run it in a shell",
}
"""Commands that make no sense inside the app, each with the reason and what does the same."""
ASKED = {
    "repo rename words": ("new name", "What it is called from now on", ()),
    "repo visibility words": ("visibility", "Who may read it", ("public", "private")),
}
"""Parameters that in a shell can also name the repository, for which a form has a row of its own: what the
form calls them, what they mean there, and the words that they can be."""


def catalogue(run: Run, *, drawn: bool = True) -> Commands:
    """Return every command that the app offers. A command that is run from the app uses the server of `run`.
    Its repository is the one on the app's screen, or that of the folder. SVC_REPO is ignored, because the
    screen may show another repository. Unless `drawn`, the output has no drawn lines: it is for a screen
    reader."""
    ssh = link()
    inside = COMMANDS.keys() if ssh is None else list_offered(ssh.agent)
    summaries = {
        path: entry.summary for path, entry in COMMANDS.items() if path in inside and path not in NOT_INSIDE
    }
    inherited = {name: value for name, value in os.environ.items() if name != "SVC_REPO"}
    environment = {**inherited, "SVC_SERVER": run.server if run.knows_server else "", "NO_COLOR": "1"}
    if not drawn:
        environment["SVC_PLAIN"] = LINES
    complete = partial(_complete, environment)
    first_words = {path.partition(" ")[0] for path in COMMANDS}
    programs = Programs(run.home.root, environment)
    return Commands(summaries, fields, complete, programs, first_words, {**WORDS, **NOT_INSIDE})


def fields(path: str) -> list[Parameter]:
    """Return the parameters of the command at `path`, such as `issue list`. Arguments come first."""
    from svc.cmd.frame.command import build

    own = sorted(build(path).own_params, key=lambda param: param.param_type_name != "argument")
    return [_field(path, param) for param in own]


def _field(path: str, param: Any) -> Parameter:
    from svc.cmd.frame.complete import refs_of

    option = param.param_type_name == "option"
    in_form, help, choices = ASKED.get(f"{path} {param.name}", ("", param.help or "", ()))
    return Parameter(
        str(param.name),
        help,
        bool(param.required),
        param.nargs == -1 or bool(getattr(param, "multiple", False)),
        bool(getattr(param, "is_flag", False)),
        tuple(sorted(param.opts, key=lambda text: text[:2] != "--")) if option else (),
        choices or words_of(param.type),
        refs_of(path, str(param.name)),
        in_form,
    )


def _complete(environment: Mapping[str, str], words: list[str]) -> list[tuple[str, str]]:
    """Return the completions of the last of these words, as pairs of (candidate, meaning)."""
    from svc.cmd.frame.complete import answer

    lines = answer(words, environment, Path.cwd()).splitlines()
    return [(name, meaning) for name, _, meaning in (line.partition("\t") for line in lines)]
