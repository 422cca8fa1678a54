"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Limit = Annotated[int, typer.Option("-L", "-n", "--limit", min=1, metavar="N", help="At most this many")]
Web = Annotated[bool, typer.Option("--web", help="Open it in the browser")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen; change nothing")]
Repository = Annotated[str, typer.Argument(metavar="[OWNER/NAME]", help="Instead of -R; else this folder's")]
