"""Copies text to the terminal's clipboard. This also works inside tmux, which by default ignores such
requests of programs."""

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
    """Put a text into a buffer of tmux, which copies it to the terminal's clipboard. Returns False if that
    fails."""
    words = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(words, input=text.encode(), capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def copy(screen: Base, text: str) -> None:
    """Put a text on the terminal's clipboard, and show on the screen whether that worked."""
    screen.app.copy_to_clipboard(text)
    if not in_tmux():
        screen.say("copied", "dim")
        return

    def work() -> None:
        outcome = "copied" if into_tmux(text) else NOT_IN_TMUX
        screen.svc.later(lambda: screen.say(outcome, "dim" if outcome == "copied" else "warn"))

    screen.app.run_worker(work, thread=True, group="copy", exit_on_error=False)
