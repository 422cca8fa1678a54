"""Copies text to the terminal's clipboard. This also works inside tmux, which by default ignores such
requests of programs."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from tui.text import CUT

if TYPE_CHECKING:
    from tui.screens.base import Base

SHOWN = 60  # columns of a text that are shown when it is copied
SECONDS = 5.0  # that tmux may take
NOT_IN_TMUX = "tmux did not take it; in tmux.conf: set -g set-clipboard on"


def in_tmux() -> bool:
    return bool(os.environ.get("TMUX"))


def into_tmux(text: str) -> bool:
    """Put a text into a buffer of tmux, which copies it to the terminal's clipboard. Returns False if that
    fails."""
    words = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(words, input=text.encode(), capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def copy(screen: Base, text: str) -> None:
    """Put a text on the terminal's clipboard, and show on the screen what was copied, or that it failed."""
    screen.app.copy_to_clipboard(text)
    first, _, rest = text.strip().partition("\n")
    words = set_cell_size(first, SHOWN - 1) + CUT if cell_len(first) > SHOWN else first
    message = f"copied: {words}{f' {CUT}' if rest and words == first else ''}"
    if not in_tmux():
        screen.say(message, "dim")
        return

    def work() -> None:
        copied = into_tmux(text)
        screen.svc.later(lambda: screen.say(*((message, "dim") if copied else (NOT_IN_TMUX, "warn"))))

    screen.app.run_worker(work, thread=True, group="copy", exit_on_error=False)
