"""The log of an app or of the local LLM server. New lines appear while it is shown."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult

from localstore.models.log import tail
from tui.actions import Action
from tui.client import sentence
from tui.screens.base import Over
from tui.text import Part, hang, safe
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Item, Lines
from tui.widgets.sheet import Sheet

EVERY = 0.5  # seconds between two looks at the log
KEPT = 2_000  # lines of it that are shown
FRAME = 4  # columns of the frame and of the blanks inside it


class LogScreen(Over):
    """The end of a log. While its last line is visible, new lines are shown as they come. If the user has
    scrolled up, the visible part stays. `command`: the command of svc that prints the same log. `empty`: the
    note for an empty log."""

    ACTIONS = (
        Action("last", ("G", "end"), "follow the end", footer=True),
        Action("first", ("g", "home"), "first line"),
    )

    def __init__(self, file: Path, command: str, empty: str) -> None:
        super().__init__()
        self._file, self._command, self._empty = file, command, empty
        self._version: object = None  # of the file that was read last
        self._reads = threading.Event()
        self._lines: list[str] = []

    def content(self) -> ComposeResult:
        yield Sheet(marked=False, searches=True, waiting="reading the log", empty=self._empty, id="log")

    def title_parts(self) -> Sequence[Part]:
        return ((" log  ", "dim"), (f"svc {safe(self._command)}", "title"))

    def label_of(self, action: Action) -> str:
        if action.id == "filter":
            return "search"
        if action.id == "last" and self._sheet.at_end:
            return ""
        return super().label_of(action)

    @property
    def _sheet(self) -> Sheet:
        return self.query_one("#log", Sheet)

    def on_mount(self) -> None:
        super().on_mount()
        draw_frame(self._sheet)
        self._sheet.styles.padding = (0, 1)
        self._name_frame()
        self._look()
        self.set_interval(EVERY, self._look)

    def news(self) -> None:
        """Does nothing, because events of the server change nothing on this screen."""

    def do_refresh(self) -> None:
        self._version = None
        self._look()

    def _look(self) -> None:
        """Read the log on a thread. Does nothing while another screen is in front, or while it is being read
        already."""
        if not self.in_front or self._reads.is_set():
            return
        self._reads.set()
        app = self.svc

        def read() -> None:
            try:
                version = version_of(self._file)
                if version != self._version:
                    self._version = version
                    lines = plain(tail(self._file, KEPT))
                    app.later(lambda: self._show(lines))
            except OSError as error:
                words = sentence(error)
                app.later(lambda: self.say(words, "bad"))
            finally:
                self._reads.clear()

        app.run_worker(read, thread=True, exit_on_error=False)

    def _show(self, lines: list[str]) -> None:
        if self.is_attached:
            self._lines = lines
            self.paint()

    def on_resize(self) -> None:
        if self._lines:
            self.paint()

    def paint(self) -> None:
        sheet = self._sheet
        follows = sheet.at_end
        width = max(20, self.app.size.width - FRAME)
        sheet.show([Item(None, ((row, "text"),)) for line in self._lines for row in hang(line, width)])
        if follows:
            sheet.go(len(sheet.rows) - 1)
        self._name_frame()
        self.show_keys()

    def on_lines_moved(self, event: Lines.Moved) -> None:
        self._name_frame()

    def _name_frame(self) -> None:
        state = "follows its end" if self._sheet.at_end else "stands still; G follows"
        place = self._sheet.position
        self._sheet.name_frame(state, f"{place} lines" if place else "")


def version_of(file: Path) -> object:
    """Returns a value that changes whenever something is written to a log. Returns None if the log does not
    exist."""
    try:
        info = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return 0
    return info.st_ino, info.st_mtime_ns, info.st_size


def plain(text: str) -> list[str]:
    """Returns the lines of a log without the colours that its program has printed."""
    return [Text.from_ansi(line).plain for line in text.splitlines()]
