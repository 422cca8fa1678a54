"""Runs commands of svc that need the terminal. The app is suspended meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from svc import UTF8_NAMES

SVC = "svc"  # above this room: started, not imported


def lend(words: list[str], folder: Path | None, environment: Mapping[str, str]) -> None:
    """Run a command of svc on this terminal until it ends. If it fails, its output stays until the user
    presses enter. Raises OSError if the command cannot be started."""
    # Ctrl-C is the command's. A handler, not SIG_IGN, which the command would inherit.
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        command = [sys.executable, *UTF8_NAMES, "-P", "-m", SVC, *words]
        code = subprocess.run(command, cwd=folder, env=environment).returncode
        if code:
            with suppress(EOFError):
                input("enter goes back to the app ")
    finally:
        signal.signal(signal.SIGINT, before)
