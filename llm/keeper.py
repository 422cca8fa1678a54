"""The keeper of a server: it holds the port, the lock and the log, and runs the front or an installed ollama.

The listening socket belongs to the keeper. So while a front that died is restarted, clients wait in the
socket's queue and are answered by the next front. A front that hangs is killed. If fronts end too often, the
server ends.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Literal

from llm.environment import clean_environment
from llm.log import Log
from localstore.disk_errors import disk_error
from localstore.folder.lock import LOOKED_SECONDS, AlreadyLocked, hold_lock
from localstore.models import leases, server
from localstore.models import port as ports
from localstore.models.place import REGISTRIES, VARIABLE, llm_home

CRASHES, CRASH_SECONDS = 3, 60.0  # ends of the child within this time, after which it is not started again
END_SECONDS = 10.0
IDLE_SECONDS = 300.0  # of an ollama without leases; a front says so itself
ENDED_IDLE = 10  # exit code of a front that nobody needs
PORT_HELD, ALREADY, CRASHED, UNWRITABLE = 3, 4, 5, 6
ASK_SECONDS, ANSWER_SECONDS = 15.0, 15.0  # between two questions to the front; for its answer
MISSED = 4  # questions in a row without an answer, after which a front that answered before is killed
WATCHED = "/api/ps"  # a question that does not count as a use of the server
_LOOK = 1.0


def main(words: list[str]) -> int:
    """Run a server until a signal ends it. Returns the exit code. `words`: the port; then `shown`, to print
    the log too; then `ollama=PATH`, to run an installed ollama instead of the front."""
    port, more = int(words[0]), words[1:]
    ollama = next((word.partition("=")[2] for word in more if word.startswith("ollama=")), "")
    folder = llm_home() / str(port)
    log = Log(folder / server.LOG, 2 if "shown" in more else None)
    keeper = _Keeper(folder, port, log, ollama)
    try:
        with hold_lock(folder / server.LOCK, "svc llm", LOOKED_SECONDS):
            return keeper.run()
    except AlreadyLocked as locked:
        keeper.say(f"the server of port {port} runs already: {locked.holder}")
        return ALREADY
    except OSError as error:
        leases.set_stays(folder, False)
        keeper.say(disk_error(error, folder).detail)
        return UNWRITABLE


class _Keeper:
    def __init__(self, folder: Path, port: int, log: Log, ollama: str) -> None:
        self._folder, self._port, self._log, self._ollama = folder, port, log, ollama
        self._ending = threading.Event()
        self._over = threading.Event()
        self._crashes: deque[float] = deque(maxlen=CRASHES)

    def say(self, line: str) -> None:
        self._log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n".encode())

    def run(self) -> int:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, self._told)
        os.chdir("/")
        bound: socket.socket | None = None
        try:
            if not self._ollama:
                try:
                    bound = ports.bind(self._port)
                except OSError as error:
                    self.say(f"port {self._port} is held by {ports.holder(self._port)}: {error.strerror}")
                    return PORT_HELD
            kind: Literal["embedded", "ollama"] = "ollama" if self._ollama else "embedded"
            home = os.environ.get("SVC_HOME", "")
            running = server.Running(kind=kind, pid=os.getpid(), port=self._port, svc_home=home)
            server.write(self._folder, running)
            self.say(f"http://127.0.0.1:{self._port} answers; process {os.getpid()}, {kind}")
            return self._keep(bound)
        finally:
            server.forget(self._folder)
            leases.set_stays(self._folder, False)

    def _keep(self, bound: socket.socket | None) -> int:
        while not self._ending.is_set():
            code = self._run_child(bound)
            if self._ending.is_set() or code == ENDED_IDLE:
                self.say("stopped: nobody needed it" if code == ENDED_IDLE else "stopped")
                return 0
            self._crashes.append(time.monotonic())
            self.say(f"the server's process ended with {code}")
            if len(self._crashes) == CRASHES and self._crashes[-1] - self._crashes[0] < CRASH_SECONDS:
                self.say(f"it ended {CRASHES} times within {CRASH_SECONDS:.0f} s; it is not started again")
                return CRASHED
        return 0

    def _run_child(self, bound: socket.socket | None) -> int:
        """Start a front on the socket `bound`, and wait for its end. Returns its exit code. If `bound` is
        None, runs the installed ollama instead."""
        source, sink = os.pipe()
        if bound is not None:
            words = [sys.executable, "-P", "-m", "llm.front", str(bound.fileno()), str(self._port)]
            environment = {**clean_environment(network=True), VARIABLE: str(llm_home())}
            environment |= {name: os.environ[name] for name in ("SVC_HOME", REGISTRIES) if name in os.environ}
        else:
            words = [self._ollama, "serve"]
            environment = {**clean_environment(ollama=True), "OLLAMA_HOST": f"127.0.0.1:{self._port}"}
        child = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,  # closes with this process, also after SIGKILL; the front then ends
            stdout=sink,
            stderr=sink,
            env=environment,
            pass_fds=[bound.fileno()] if bound is not None else [],
            start_new_session=True,  # the terminal's Ctrl-C is ours to pass on
        )
        os.close(sink)
        copying = threading.Thread(target=self._log.copy, args=(source,), daemon=True)
        copying.start()
        code = self._wait(child)
        copying.join(1.0)  # a runner that still ends may hold the pipe
        return code

    def _wait(self, child: subprocess.Popen[bytes]) -> int:
        over = self._over = threading.Event()

        def reap() -> None:
            child.wait()
            over.set()

        threading.Thread(target=reap, daemon=True).start()
        if not self._ollama:
            threading.Thread(target=self._watch, args=(child, over), daemon=True).start()
        since = time.monotonic()
        while True:
            # A front says itself that nobody needs it, so that this process need not look.
            over.wait(_LOOK if self._ollama else None)
            if self._ending.is_set():
                return self._end(child)
            if child.returncode is not None:
                return child.returncode
            if leases.stays(self._folder) or leases.list_leases(self._folder):
                since = time.monotonic()
            elif time.monotonic() - since > IDLE_SECONDS:
                self._end(child)
                return ENDED_IDLE

    def _watch(self, child: subprocess.Popen[bytes], over: threading.Event) -> None:
        """Kill the front if it stops answering; return when `over` is set. A front that has never answered
        may still be starting and is not killed."""
        answered, missed = False, 0
        while not over.wait(ASK_SECONDS):
            if _answers(self._port):
                answered, missed = True, 0
            elif answered:
                missed += 1
            if missed == MISSED:
                self.say("the server's process does not answer; it is ended")
                child.kill()
                return

    def _end(self, child: subprocess.Popen[bytes]) -> int:
        with suppress(ProcessLookupError):
            child.terminate()
        try:
            return child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            return child.wait()

    def _told(self, _number: int, _frame: FrameType | None) -> None:
        self._ending.set()
        self._over.set()


def _answers(port: int) -> bool:
    """Whether the front answers a request in time, with any status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", WATCHED)
        connection.getresponse()
        return True
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
