"""Commands of svc in the app: palette, command line, forms, and running them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from localstore.core.model.repo import Repo
from tui.actions import Action
from tui.commands import Field, given, missing, words_of
from tui.machine import Place
from tui.offers import OFFERS
from tui.screens.order import KeysInOrder

if TYPE_CHECKING:
    from tui.commands import Commands

OF_A_REPO = frozenset({"issue", "pr", "label", "repo", "log", "show", "blame"})  # first words of commands
SEAL = "seal"
SHOWN = frozenset({"run", "version", "advisory", "report", "webhook"})  # parameters that screens know by name


class Calling(KeysInOrder, inherit_bindings=False):
    """Runs commands. `commands`: None if the app was opened without them."""

    commands: Commands | None = None
    place: Place

    def actions(self) -> tuple[Action, ...]:
        """The current actions."""
        raise NotImplementedError

    @property
    def _current(self) -> Any:
        return self.screen

    def later(self, work: Callable[[], None]) -> None:
        """Run on the app's own thread, without waiting, because the app may be ending."""
        if self._loop is not None and self.is_running:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.call_later, work)

    # --- what the screen shows

    def here(self) -> str:
        """The full name of the repository that the screen shows; "" for none."""
        repo: Repo | None = self._current.subject()[0]
        return repo.full_name if repo is not None else ""

    def summary(self, path: str) -> str:
        """What a command does, in one line; "" for an unknown one."""
        return self.commands.summaries.get(path, "") if self.commands is not None else ""

    def known_for(self, path: str, fields: Sequence[Field]) -> dict[str, str]:
        """The values of a command's parameters that the screen shows: repository, number, run, version,
        seal."""
        repo: Repo | None = self._current.subject()[0]
        facts: dict[str, str] = self._current.facts()
        first = path.partition(" ")[0]
        names = {field.name for field in fields if not field.spelled}
        values = {name: facts[name] for name in names & SHOWN & set(facts) if not path.endswith(" create")}
        if "number" in names and first in facts:
            values["number"] = facts[first]
        if any(field.name == SEAL for field in fields) and SEAL in facts:
            values[SEAL] = facts[SEAL]
        if repo is None:
            return values
        if "repository" in names:
            values["repository"] = repo.full_name
        elif first in OF_A_REPO and repo.id != self.place.repo_id:
            values["repo"] = repo.full_name
        return values

    def refused(self, action: Action) -> str:
        """Why the role of the account does not allow the action here; "" if it does."""
        from svc.flows.place.rights import refusal

        repo, mine = self._current.subject() if action.right else (None, False)
        return refusal(action.right, repo, mine) if repo is not None else ""

    def do_account(self) -> None:
        from tui.screens.settings.account import Account

        if not isinstance(self.screen, Account):
            self.push_screen(Account())

    # --- palette, command line, form

    def do_help(self) -> None:
        from tui.screens.command.palette import Help

        self.push_screen(Help(self.actions(), self._current.where, self.refused))

    def do_palette(self) -> None:
        from tui.screens.command.palette import Palette
        from tui.screens.tables import commands_with_rights

        offered = self.actions()
        named = {action.command.removeprefix("svc ") for action in OFFERS}
        summaries = self.commands.summaries if self.commands is not None else {}
        rights = commands_with_rights()
        others = tuple(
            Action(f"command {path}", (), summary, f"svc {path}", right=rights.get(path, ""))
            for path, summary in summaries.items()
            if path not in named
        )
        self.push_screen(Palette((*offered, *others), "type to filter", self.refused))

    def do_command(self) -> None:
        """Type a command line."""
        from tui.screens.command.line import CommandLine

        if self.commands is not None:
            self.push_screen(CommandLine(self.commands, self.known_for))

    def open_form(self, path: str, **values: str) -> None:
        """Ask for the parameters of a command, with `values` and those that the screen shows; run it."""
        from tui.screens.command.form import Form

        if self.commands is not None and path in self.commands.summaries:
            fields = self.commands.fields(path)
            self.push_screen(Form(path, fields, {**self.known_for(path, fields), **values}))

    def run_line(self, line: str) -> None:
        """Run a command line. Missing values are taken from the screen, or asked for in a form."""
        from tui.screens.command.form import Form

        try:
            words = shlex.split(line.strip().removeprefix("svc "))
        except ValueError as error:
            self._current.say(f"the command line cannot be read: {error}", "warn")
            return
        path = self.commands.path_in(words) if self.commands is not None else ""
        if self.commands is None or not path:
            self.run_words(words)
            return
        fields = self.commands.fields(path)
        values = given(fields, words[len(path.split()) :])
        if values is None or "--help" in words or "-h" in words:
            self.run_words(words)
            return
        from_screen = self.known_for(path, fields)
        from_screen.pop(SEAL, None)  # a form shows which; a typed line without one means the newest
        values = {**from_screen, **values}
        if missing(fields, values):
            self.push_screen(Form(path, fields, values))
        else:
            self.run_words(words_of(path, fields, values))

    def run_words(self, words: list[str]) -> None:
        """Run a command of svc and show what it prints."""
        from tui.screens.command.output import Output

        if words and self.commands is not None:
            self.push_screen(Output(words, self.place.folder, self.commands))
