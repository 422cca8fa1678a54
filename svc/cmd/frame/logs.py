"""Prints log files of this machine, for commands such as `svc llm logs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from localstore.core.paths import terminal_safe
from svc.cmd.frame.context import Ctx

Lines = Annotated[int, typer.Option("-n", "--lines", metavar="N", min=0, help="How many of the last lines")]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Go on until Ctrl-C")]


def print_log(ctx: Ctx, file: Path, lines: int, follow: bool, empty: str) -> None:
    """Print the last lines of a log. With `follow`, go on printing new lines without end. `empty` is the note
    that is printed if the log is empty."""
    from localstore.models import log

    text = log.tail(file, lines) if lines else ""
    if text:
        ctx.out.text(terminal_safe(text, keep="\n\t") + "\n")
    elif not follow:
        ctx.out.note(empty)
    if follow:
        for piece in log.follow(file):
            ctx.out.draw(terminal_safe(piece, keep="\n\t"))
