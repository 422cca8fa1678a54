"""Runs each invocation in a process of its own, which reads one line of JSON and writes one answer. The
process is ended when its client disconnects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localstore.core.errors import Cancelled, ClientError
from svc import OF_ONE_COMMAND, UTF8_NAMES
from svc.http.remote import list_inherited

if TYPE_CHECKING:
    from localstore.agent.server import HungUp

AT_ONCE = 4  # processes; further invocations wait
LOOK_SECONDS = 0.2  # between two looks whether the client is still there
MERCY_SECONDS = 5.0  # between SIGINT and SIGKILL
SVC = "svc.cmd.frame.invoked"  # above this room: started, not imported
OWN = (*OF_ONE_COMMAND, "SVC_HOME")


class Programs:
    """Runs the programs of the agent that serves the SVC_HOME `root`. Several threads may call it at once.
    `environment` has the environment variables for the programs. If it is None, the programs inherit the
    variables of this process, except SVC_HOME and variables that apply to a single command."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None) -> None:
        self._root = root.resolve()
        self._environment = environment
        self._slots = threading.Semaphore(AT_ONCE)
        self._closing = False

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables for the programs, without SVC_HOME, which `run` adds."""
        if self._environment is not None:
            return self._environment
        return {name: value for name, value in os.environ.items() if name not in OWN}

    def close(self) -> None:
        """End the running programs. `run` starts no programs afterwards."""
        self._closing = True

    def run(
        self,
        module: str,
        words: list[str],
        given: bytes,
        folder: Path | None,
        hung_up: HungUp,
        on_errors: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Run `python -m MODULE WORDS` with `given` as its input, and return its output. Whenever the program
        writes to stderr, `on_errors` is called with everything that it has written there so far. Raises
        Cancelled if the client has disconnected. Raises ClientError, with the end of the error output, if the
        program failed."""
        while not self._slots.acquire(timeout=LOOK_SECONDS):
            if self._closing or hung_up():
                raise Cancelled
        try:
            return self._run(module, words, given, folder or Path.home(), hung_up, on_errors)
        finally:
            self._slots.release()

    def _run(
        self,
        module: str,
        words: list[str],
        given: bytes,
        folder: Path,
        hung_up: HungUp,
        on_errors: Callable[[bytes], None] | None,
    ) -> bytes:
        process = subprocess.Popen(
            [sys.executable, *UTF8_NAMES, "-P", "-m", module, *words],
            cwd=folder,
            env={
                **self.environment,
                "SVC_HOME": str(self._root),
                "SVC_PLAIN": self.environment.get("SVC_PLAIN") or "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            pass_fds=list_inherited(),
        )
        unsent: bytes | None = given
        reported = 0  # bytes of error output
        try:
            while True:
                try:
                    output, errors = process.communicate(unsent, timeout=LOOK_SECONDS)
                except subprocess.TimeoutExpired as running:
                    unsent = None
                    errors = running.stderr or b""
                    if on_errors is not None and len(errors) > reported:
                        reported = len(errors)
                        on_errors(errors)
                    if self._closing or hung_up():
                        raise Cancelled from None
                    continue
                if process.returncode:
                    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
                    raise ClientError(f"it ended with {process.returncode}: {lines[-1] if lines else ''}")
                return output
        finally:
            if process.poll() is None:
                _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=MERCY_SECONDS)
            return
