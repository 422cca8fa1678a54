"""The program `svc`. `--version` is answered before anything else is imported."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import NoReturn

from svc import __version__

INTERRUPTED = 130  # as a shell says it
COLLECTED_AFTER = 200_000  # new objects: a command on 20,000 files makes fewer, next to none of it garbage


def main() -> NoReturn:
    """Run the command of this process's arguments and exit."""
    gc.set_threshold(COLLECTED_AFTER)
    _open_outputs()
    try:
        leave(answer(sys.argv[1:]))
    except KeyboardInterrupt:  # while modules are imported; `run` answers for all that comes after
        sys.stderr.write("svc: interrupted\n")
        leave(INTERRUPTED)


def answer(words: list[str]) -> int:
    """Run the command `words`. Returns the exit code."""
    if words == ["--version"]:
        return _printed(f"svc {__version__}\n")
    if os.environ.get("SVC_COMPLETE"):  # a shell asks what can stand at the cursor
        from pathlib import Path

        from svc.cmd.frame.complete import answer as complete

        return _printed(complete(words, os.environ, Path.cwd()))
    from svc.cmd.frame.app import run

    return run(words)


def _open_outputs() -> None:
    """Open /dev/null for outputs that the caller closed (`svc status >&-`); otherwise the next opened file
    would take their place."""
    for fd, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), fd)
            setattr(sys, name, os.fdopen(fd, "w"))


def _printed(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:  # a full disk, or a reader who left
        sys.stderr.write(f"svc: {error.strerror}\n")
        return 1
    return 0


def leave(code: int) -> NoReturn:
    """Exit at once. Python's own shutdown takes a sixth of a short command's time, and each command has
    closed its files."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
