"""The command `python -m llm.puller NAME`: downloads a model for POST /api/pull, with the server's SVC_HOME.

It prints the lines of the answer: for each blob (file of the model) at most ten lines a second. It ends when
its standard input closes, even if the front was killed. The next pull continues with the bytes received so
far.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from localstore.core.errors import SvcError
from localstore.disk_errors import disk_error
from localstore.models.place import llm_home
from localstore.models.store import Models
from svc.flows.models.fetching import PullStep
from svc.flows.models.pull import pull
from svc.flows.place.where import Where

PACE = 0.1


def main() -> NoReturn:
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        pull(
            Where(os.environ, Path("/"), note=lambda text: _print({"status": text})),
            Models(llm_home()),
            sys.argv[1],
            None,
            _StepPrinter(),
        )
    except SvcError as error:
        _print({"error": error.detail})
    except OSError as error:
        _print({"error": disk_error(error, llm_home()).detail})
    os._exit(0)


class _StepPrinter:
    """Prints the steps of a pull: each new step at once, the progress of a blob at most ten times a
    second."""

    def __init__(self) -> None:
        self._status, self._at = "", 0.0

    def __call__(self, step: PullStep) -> None:
        now = time.monotonic()
        if step.status == self._status and step.completed < step.total and now - self._at < PACE:
            return
        self._status, self._at = step.status, now
        _print(step.line)


def _print(line: dict[str, Any]) -> None:
    try:
        sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # a server that was killed reads no lines
        os._exit(0)


def _end_with_input() -> NoReturn:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
