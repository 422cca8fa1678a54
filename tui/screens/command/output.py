"""The output of an svc command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult

from tui.screens.base import Base
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines

LONGEST = 600.0  # seconds that a command may run
SHOWN_MAX = 4 * 1024 * 1024  # bytes of output that are kept


class Output(Base):
    """Runs one command line of svc and shows its output. The command has no terminal for questions and names
    the option to use instead."""

    def __init__(self, line: str, folder: Path | None) -> None:
        super().__init__()
        self._line, self._folder = line, folder
        self._code: int | None = None

    def content(self) -> ComposeResult:
        yield Lines(marked=False, empty="running …", id="output")

    def title_parts(self) -> Sequence[Part]:
        state = "running" if self._code is None else "done" if self._code == 0 else f"exit {self._code}"
        role = "dim" if not self._code else "bad"
        return ((f" svc {safe(self._line)}", "title"), (f"  {state}", role))

    def on_mount(self) -> None:
        super().on_mount()
        width = self.app.size.width - 1
        self.app.run_worker(lambda: self._run(width), thread=True, exit_on_error=False)

    def _run(self, width: int) -> None:
        try:
            words = shlex.split(self._line)
        except ValueError as error:
            self.app.call_from_thread(self._show, f"the command line cannot be read: {error}", 2)
            return
        environment = {**os.environ, "COLUMNS": str(width), "PAGER": "cat"}
        try:
            done = subprocess.run(  # the person typed it
                [sys.executable, "-m", "svc", *words],
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=LONGEST,
                check=False,
            )
            text, code = done.stdout[:SHOWN_MAX].decode("utf-8", "replace"), done.returncode
        except subprocess.TimeoutExpired:
            text, code = f"ended after {LONGEST:.0f} s", 1
        self.app.call_from_thread(self._show, text, code)

    def _show(self, text: str, code: int) -> None:
        if not self.is_attached:
            return
        self._code = code
        plain = [Text.from_ansi(line).plain for line in text.splitlines()]
        items = [Item(place, ((safe(line), "text"),)) for place, line in enumerate(plain)]
        self.query_one("#output", Lines).empty = "it printed nothing"
        self.query_one("#output", Lines).show(items)
        self.show_frame()
