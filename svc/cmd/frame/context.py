"""The context of a command: its output, and the server, repository and folder that it works on
(`svc.flows.place.where`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from localstore.core.errors import ConfirmationNeeded, Interrupted, SvcError
from svc.flows.place.where import Where

if TYPE_CHECKING:
    from localstore.core.model.repo import Repo
    from svc.api import Api
    from svc.console import Out


class Run(Where):
    """One run of `svc`: a `Where` (server, repository, folder, sessions) with its output."""

    def __init__(self, out: Out, environment: Mapping[str, str], folder: Path) -> None:
        super().__init__(environment, folder, out.note, out.meter)
        self.out = out

    @property
    def on_terminal(self) -> bool:
        """Whether input, output and errors are a terminal."""
        return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))

    @property
    def draws(self) -> bool:
        """Whether the terminal app is drawn. It needs a terminal that can position the cursor, and a user who
        wants drawn lines."""
        return self.on_terminal and self.out.signs

    def format_error(self, error: SvcError) -> str:
        return self.out.format_error(error)


class Ctx(typer.Context):
    """The context that commands receive."""

    obj: Run

    @property
    def out(self) -> Out:
        return self.obj.out

    @property
    def api(self) -> Api:
        return self.obj.api

    @property
    def reader(self) -> Api:
        return self.obj.reader

    @property
    def repo(self) -> Repo:
        """The repository that the command is about, looked up with the user's session. For commands that
        change the repository."""
        return self.obj.repo(lambda: self.obj.api)

    @property
    def readable_repo(self) -> Repo:
        """The repository that the command is about. For commands that only read it, and therefore also work
        without a session."""
        return self.obj.readable_repo

    def branch_of(self, repo: Repo) -> str:
        """Return the branch of the linked folder if the folder is linked to `repo`. Otherwise return the
        default branch of `repo`."""
        return self.obj.branch_of(repo)

    def path_in_repo(self, typed: str) -> str:
        """Return a path that the user typed, relative to the current folder, as a path in the repository."""
        return self.obj.path_in_repo(typed)

    def confirm(self, action: str) -> None:
        """Ask for confirmation, unless `--yes` is given. `action` is the beginning of the question's
        sentence. Raises ConfirmationNeeded if nobody can be asked, Interrupted if the user refuses."""
        if self.obj.given.get("yes"):
            return
        if not self.out.interactive:
            raise ConfirmationNeeded(action)
        if not self.out.ask(f"{action}. Go on?"):
            raise Interrupted("nothing was changed")
