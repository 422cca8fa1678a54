"""Copying inside tmux, which by default drops what programs ask the terminal to copy."""

from __future__ import annotations

import os
import subprocess

SECONDS = 5.0  # that tmux may take
NOT_IN_TMUX = "tmux did not take it; in tmux.conf: set -g set-clipboard on"


def in_tmux() -> bool:
    return bool(os.environ.get("TMUX"))


def into_tmux(text: str) -> bool:
    """Put the text into a buffer of tmux, which passes it on to the terminal; False if it does not."""
    words = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(words, input=text.encode(), capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
