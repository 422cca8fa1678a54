"""`svc completions SHELL`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from svc.cmd.context import Ctx


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"
    powershell = "powershell"


def completions(ctx: Ctx, shell: Annotated[Shell, typer.Argument(help="Your shell")]) -> None:
    """Print a completion script for your shell

    Load it from your shell's start file. Completion asks no server.

    Examples:
    eval "$(svc completions bash)"
    svc completions zsh > ~/.zfunc/_svc
    svc completions fish > ~/.config/fish/completions/svc.fish
    svc completions powershell >> $PROFILE
    """
    # The module that makes the scripts; `typer.completion` passes it on without exporting it.
    from typer._completion_shared import get_completion_script

    script = get_completion_script(prog_name="svc", complete_var="_SVC_COMPLETE", shell=shell.value)
    ctx.out.text(script + "\n")
