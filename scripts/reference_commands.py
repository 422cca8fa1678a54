"""Writes the page on commands from the table of `svc.cmd` and each command's help."""

from __future__ import annotations

import inspect
from typing import Any


def commands() -> str:
    """The page on commands: every command with its usage, arguments, options and examples."""
    from svc.cmd.frame.command import build, shared_options
    from svc.cmd.frame.table import COMMANDS

    text = ["# Commands\n", "Every command also takes the global options, wherever they stand:\n"]
    text += _table([_record(option) for option in shared_options()])
    text += ["", "[The scripting guide](../guide/scripting.md) explains output, exit codes and variables.\n"]
    for path in COMMANDS:
        text += _command(path, build(path))
    return "\n".join(text).rstrip() + "\n"


def _command(path: str, command: Any) -> list[str]:
    from svc.cmd.frame.command import records_of

    context = command.context_class(command, info_name=f"svc {path}")
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    text = [f"## svc {path}\n", f"```\n{usage}\n```\n", inspect.cleandoc(command.help or "") + "\n"]
    own = records_of(context, command.own_params)
    if own:
        text += [*_table(own), ""]
    if command.examples:
        text += ["```console", inspect.cleandoc(command.examples), "```\n"]
    return text


def _record(option: Any) -> tuple[str, str]:
    written = ", ".join(option.opts) + (f" {option.metavar}" if option.metavar else "")
    return written, option.help or ""


def _table(records: list[tuple[str, str]]) -> list[str]:
    rows = [f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in records]
    return ["| | |", "|---|---|", *rows]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
