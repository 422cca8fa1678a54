"""Runs a command of svc and shows its output."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual.app import ComposeResult

from localstore.core.errors import Cancelled, SvcError
from tui.actions import Action
from tui.client import sentence
from tui.commands import Commands
from tui.screens.base import Over
from tui.screens.command.printed import rows_of
from tui.text import Part, ago, safe
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Item, Lines
from tui.widgets.sheet import Sheet

if TYPE_CHECKING:
    from tui.asked import AskedApp


DONE = "done"  # the state of a command that succeeded
RUNNING: Part = ("running", "dim")
SUCCEEDED: Part = (DONE, "good")
FRAME = 4  # columns of the frame around the output, with its blanks


class Command:
    """A command of svc that runs in a separate process. `stops`: returns whether it has to end."""

    def __init__(
        self,
        words: list[str],
        folder: Path | None,
        commands: Commands,
        stops: Callable[[], bool] = lambda: False,
    ) -> None:
        self._words, self._folder, self._commands, self._stops = words, folder, commands, stops

    def begin(self, app: AskedApp, width: int, show: Callable[[str, Part], None]) -> None:
        """Run the command on a thread. `show`: called while it runs and at its end, with its output so far
        and with its state as a part. The output is formatted for `width` columns. `app`: the app, because a
        screen that the user has left does not know it any more."""
        app.run_worker(lambda: self._run(app, width, show), thread=True, exit_on_error=False)

    def _run(self, app: AskedApp, width: int, show: Callable[[str, Part], None]) -> None:
        try:
            response = self._commands.run(
                self._words,
                self._folder,
                width,
                lambda: self._stops() or not app.is_running,
                lambda text: app.later(lambda: show(text, RUNNING)),
            )
        except Cancelled:
            app.later(lambda: show("it was stopped", ("stopped", "warn")))
            return
        except (SvcError, OSError) as error:
            message = sentence(error)
            app.later(lambda: show(message, ("failed", "bad")))
            return
        data = response.data if isinstance(response.data, dict) else {}
        text = str(data.get("text", "")) or (response.error.message if response.error else "")
        state: Part = SUCCEEDED if response.success else (f"exit {data.get('code', 1)}", "bad")
        app.later(lambda: show(text, state))
        app.later(app.command_ended)


class Output(Over):
    """A screen that runs one command of svc and shows its output. The command cannot ask questions. Its
    errors name the option to use instead. If the user leaves the screen, the command goes on. It ends with
    the app."""

    ACTIONS = (Action("stop", ("x",), "stop it", footer=True),)
    ENDED = (Action("stop", ("x",), "stop it"),)  # without a place in the line of keys

    def __init__(self, words: list[str], folder: Path | None, commands: Commands) -> None:
        super().__init__()
        self._words, self._folder, self._commands = words, folder, commands
        self._stopped = threading.Event()
        self._state = RUNNING
        self._lines: list[str] = []
        self._began_at = self._ended_at = time.monotonic()

    def content(self) -> ComposeResult:
        yield Sheet(marked=False, searches=True, empty="running …", id="output")

    def actions(self) -> tuple[Action, ...]:
        return self.ACTIONS if self._state == RUNNING else self.ENDED

    def label_of(self, action: Action) -> str:
        return "search" if action.id == "filter" else super().label_of(action)

    def title_parts(self) -> Sequence[Part]:
        repo = self.subject()[0]
        where = f"  {safe(repo.full_name)}" if repo is not None else ""
        word, role = self._state
        return ((" Command ", "title"), (f" {self._sign} {word}", role), (where, "dim"))

    @property
    def _sign(self) -> str:
        return {"running": "◐", DONE: "✓", "stopped": "⊘"}.get(self._state[0], "✗")

    @property
    def _sheet(self) -> Sheet:
        return self.query_one("#output", Sheet)

    def on_mount(self) -> None:
        super().on_mount()
        self._sheet.styles.padding = (0, 1)
        self._name_frame()
        if self.svc.news.state == "offline":
            since = ago(self.svc.news.since, self.svc.clock())
            self.say(f"offline, noticed {since}: what needs the server will fail", "warn")
        width = self._width
        command = Command(self._words, self._folder, self._commands, self._stopped.is_set)
        command.begin(self.svc, width, self._show)

    @property
    def _width(self) -> int:
        """The width of the output in columns, without the frame of the screen."""
        return max(20, self.app.size.width - FRAME)

    def do_stop(self) -> None:
        if self._state == RUNNING:
            self._stopped.set()
        else:
            self.say("it is not running any more", "dim")

    def _show(self, text: str, state: Part) -> None:
        if not self.is_attached:
            return
        self._state, self._ended_at = state, time.monotonic()
        self._lines = [Text.from_ansi(line).plain for line in text.splitlines()]
        self._sheet.empty = "it printed nothing"
        self.paint()
        self.show_frame()

    def on_resize(self) -> None:
        if self._lines:
            self.paint()

    def paint(self) -> None:
        sheet = self._sheet
        failed = self._state not in (RUNNING, SUCCEEDED)
        sheet.show([Item(None, row) for row in rows_of(self._lines, self._width, failed)])
        if self._state == RUNNING:
            sheet.go(len(sheet.rows) - 1)  # like a terminal, a running command shows its last line
        self._name_frame()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._name_frame()

    def _name_frame(self) -> None:
        """Write into the frame the command, how it has ended, and which of its lines are visible."""
        word = self._state[0]
        after = f" in {self._ended_at - self._began_at:.1f} s" if self._state != RUNNING else ""
        failed = self._state[1] == "bad"
        draw_frame(self._sheet, "bad" if failed else "accent")
        self._sheet.name_frame(f"svc {safe(shlex.join(self._words))} · {word}{after}", self._sheet.position)
