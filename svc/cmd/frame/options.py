"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Limit = Annotated[int, typer.Option("-L", "-n", "--limit", min=1, metavar="N", help="At most this many")]
Description = typer.Option("-d", "--description", metavar="TEXT", help="One line about it")
Color = typer.Option("-c", "--color", metavar="HEX", help="Six hex digits, such as d73a4a")
Web = Annotated[bool, typer.Option("--web", help="Open its page in a browser, or print the address")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing")]
Repository = Annotated[str, typer.Argument(metavar="[OWNER/NAME]", help="Instead of -R; else this folder's")]
