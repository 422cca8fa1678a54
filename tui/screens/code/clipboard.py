"""Copies text to the terminal's clipboard, also inside tmux, which by default ignores programs' requests for
that."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.screens.base import Base

SECONDS = 5.0  # that tmux may take
NOT_IN_TMUX = "tmux did not take it; in tmux.conf: set -g set-clipboard on"


def in_tmux() -> bool:
    return bool(os.environ.get("TMUX"))


def into_tmux(text: str) -> bool:
    """Put the text into a buffer of tmux, which copies it to the terminal. Returns False if that fails."""
    words = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(words, input=text.encode(), capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def copy(screen: Base, text: str) -> None:
    """Put the text on the terminal's clipboard, and show whether that worked."""
    screen.app.copy_to_clipboard(text)
    if not in_tmux():
        screen.say("copied", "dim")
        return

    def work() -> None:
        outcome = "copied" if into_tmux(text) else NOT_IN_TMUX
        screen.svc.later(lambda: screen.say(outcome, "dim" if outcome == "copied" else "warn"))

    screen.app.run_worker(work, thread=True, group="copy", exit_on_error=False)
