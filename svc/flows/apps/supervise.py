"""Runs one app: first starts the LLM server and fetches the models that it needs, then runs its program until
the program ends.

If this process ends for any reason, the program ends, too. The lock of the app and the lease on the server (a
lock that says that the app needs the server) are then free."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from localstore.core.errors import SvcError
from localstore.core.launch import Launch, Ready, fill
from localstore.core.paths import terminal_safe
from localstore.core.times import rfc3339_now
from localstore.folder.lock import LOOKED_SECONDS, hold_lock
from localstore.models import port as ports
from localstore.models.errors import AppFailed
from localstore.models.leases import lease
from localstore.models.log import Log
from localstore.models.place import llm_home
from localstore.models.store import Models
from svc import OF_ONE_COMMAND
from svc.flows.apps import state as states
from svc.flows.apps.needs import ModelProvider, Needs, needs_of
from svc.flows.apps.place import LOCK, App, Apps, launch_of, manifest_of
from svc.flows.apps.ready import is_ready, port_of_ready
from svc.flows.apps.state import AppState
from svc.flows.llm import server
from svc.flows.llm.port import port_of
from svc.flows.models.fetching import PullStep
from svc.flows.place.where import Where

SERVER_SECONDS = 60.0  # in which a server that is there already becomes healthy
END_SECONDS = 10.0  # between SIGTERM and SIGKILL
SECRETS = (*OF_ONE_COMMAND, "SVC_SSH", "SVC_COMPLETE")
_LOOK = 0.05
_REPORT = 0.2
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux

Report = Callable[[int, int], None]


class SignalReceived(BaseException):
    """Raised when a signal tells the supervisor to end."""


class Supervisor:
    """Runs an app. `log` is the file for the app's output. With a log the app does not use the terminal;
    without one (None) it does. `note` is called with sentences for the user, `report` with (received bytes,
    total bytes) of a pull."""

    def __init__(
        self, where: Where, app: App, *, log: Log | None, note: Callable[[str], None], report: Report
    ) -> None:
        self._where, self._app, self._log, self._report = where, app, log, report
        self._tell_user = note
        self._apps = Apps(where.home.root)
        self._folder = self._apps.folder(app.id)
        self._state = AppState(id=app.id, folder=app.folder, installed=app.installed)
        self._reported = 0.0
        self._signals = Signals()

    def run(self) -> int:
        """Launch the app and wait for its end. Returns its exit code. If a signal ended the app, the code is
        128 plus the signal's number. Raises AlreadyLocked if the app is already running, or the error that
        prevents the launch."""
        self._apps.record(self._app)
        command = f"svc app launch {self._app.id}"
        with hold_lock(self._folder / LOCK, command, LOOKED_SECONDS), self._signals.listen():
            end_left(self._apps, self._app)
            self._say(state="starting", supervisor=os.getpid(), since_at=rfc3339_now())
            try:
                return self._run()
            except SignalReceived:
                self._say(state="stopped")
                return 128 + signal.SIGTERM
            except KeyboardInterrupt:
                self._say(state="stopped")
                raise
            except SvcError as error:
                self._say(state="failed", detail=error.detail)
                raise
            except OSError as error:
                self._say(state="failed", detail=error.strerror or str(error))
                raise

    def _run(self) -> int:
        manifest = manifest_of(self._app)
        launch, needs = launch_of(self._app, manifest), needs_of(manifest)
        if not self._apps.is_allowed(self._app, launch):
            raise AppFailed(f"what {self._app.id} runs has changed since you were asked; launch it again")
        _require_free(launch.ready)
        with ExitStack() as stack:
            values: dict[str, str] = {}
            if needs.server:
                values = self._prepare(stack, needs)
            return self._run_program(launch, values)

    def _prepare(self, stack: ExitStack, needs: Needs) -> dict[str, str]:
        """Make sure that the local LLM server answers and that it has the models. Returns the values that the
        app's `launch:` may refer to, by name, such as `llm.url` and `model`."""
        environment, home = self._where.environment, self._where.home.root
        port = port_of(None, Path(self._app.folder), environment)
        stack.enter_context(lease(server.folder_of(port, environment), self._app.id.replace("/", "+")))
        status, _ = server.start(
            port, environment, home, stays=False, say=self._note, patience=SERVER_SECONDS
        )
        models = Models(llm_home(environment))
        shared = status.kind == "embedded"
        bringing = ModelProvider(self._where, models, port, shared, self._note, self._pulling)
        model = bringing.bring_all(needs)
        self._say(
            state="starting", model=model.short if model else None, llm=status.url, detail=None, pulled=None
        )
        return {
            "llm.url": status.url, "llm.host": "127.0.0.1", "llm.port": str(port),
            "model": model.short if model else "",
        }  # fmt: skip

    def _pulling(self, step: PullStep) -> None:
        if not step.digest:
            return
        self._report(step.completed, step.total)
        now = time.monotonic()
        if now - self._reported > _REPORT or step.completed == step.total:
            self._reported = now
            percent = 100 * step.completed // step.total if step.total else 0
            self._say(state="pulling", detail=f"pulling {percent} %", pulled=(step.completed, step.total))

    def _run_program(self, launch: Launch, values: Mapping[str, str]) -> int:
        words = [fill(word, values) for word in launch.command]
        environment = environment_of(self._where.environment, values)
        environment |= {name: fill(value, values) for name, value in launch.env}
        process = copying = None
        try:
            with self._signals.later():  # else a process could be started that nobody knows, and nobody ends
                process, source = self._start(words, environment)
            copying = self._copy(source)
            self._say(state="starting", pid=process.pid, began=states.began(process.pid), page=launch.page)
            self._wait_ready(process, launch.ready)
            self._say(state="running")
            code = _wait(process)
            self._say(state="ended", code=code)
            return code
        finally:
            if process is not None:
                _end(process, whole=self._log is not None)
            if copying is not None:
                copying.join(1.0)  # a program that left the session may hold the pipe

    def _start(
        self, words: list[str], environment: Mapping[str, str]
    ) -> tuple[subprocess.Popen[bytes], int | None]:
        """Start the program. Returns the process, and the file descriptor from which its output is read (None
        without a log). Raises AppFailed."""
        source = sink = None
        if self._log is not None:
            source, sink = os.pipe()
        try:
            process = subprocess.Popen(
                words,
                cwd=self._app.folder,
                env=environment,
                stdin=subprocess.DEVNULL if self._log is not None else None,
                stdout=sink,
                stderr=sink,
                start_new_session=self._log is not None,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            if source is not None:
                os.close(source)
            raise AppFailed(
                f"{terminal_safe(words[0])} cannot be started: {error.strerror}; see launch: in .svc.yaml"
            ) from None
        finally:
            if sink is not None:
                os.close(sink)
        return process, source

    def _note(self, sentence: str) -> None:
        self._tell_user(sentence)
        self._say(notes=[*self._state.notes, sentence])

    def _copy(self, source: int | None) -> threading.Thread | None:
        if source is None or self._log is None:
            return None
        copying = threading.Thread(target=self._log.copy, args=(source,), daemon=True)
        copying.start()
        return copying

    def _wait_ready(self, process: subprocess.Popen[bytes], ready: Ready | None) -> None:
        """Wait until the app is ready by the rule `ready` of its manifest. If that is None, return at once.
        Raises AppFailed if the app ends first, or takes too long."""
        if ready is None:
            return
        began = time.monotonic()
        while not is_ready(ready, time.monotonic() - began):
            code = process.poll()
            if code is not None:
                how = f"ended with {_as_shell(code)} before it was ready"
                raise AppFailed(f"{self._app.id} {how}", self._app.id if self._log is not None else "")
            if time.monotonic() - began > ready.seconds:
                what = ready.http or f"port {ready.port}"
                raise AppFailed(
                    f"{self._app.id} was not ready within {ready.seconds} seconds: {terminal_safe(what)} "
                    f"does not answer, so it was ended",
                    self._app.id if self._log is not None else "",
                )
            time.sleep(_LOOK)

    def _say(self, **changes: Any) -> None:
        for name, value in changes.items():
            setattr(self._state, name, value)
        with suppress(OSError):  # a full disk ends no app
            states.write(self._apps, self._state)


def environment_of(environment: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for an app. They are the variables in `environment` without svc's
    secrets, plus the address of the LLM server from `values`. `values` is empty if the app does not need the
    server."""
    variables = {name: value for name, value in environment.items() if name not in SECRETS}
    if values:
        variables["OLLAMA_HOST"] = f"{values['llm.host']}:{values['llm.port']}"
        variables["OPENAI_BASE_URL"] = f"{values['llm.url']}/v1"
    return variables


def end_left(apps: Apps, app: App) -> None:
    """End the program of an app whose supervisor was killed, if the program is still running."""
    recorded = states.read_recorded(apps, app)
    if recorded is None or recorded.pid is None or recorded.began is None:
        return
    if states.began(recorded.pid) != recorded.began:
        return  # another process has its number by now
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(recorded.pid) == recorded.pid:
            os.killpg(recorded.pid, signal.SIGKILL)
        else:
            os.kill(recorded.pid, signal.SIGKILL)


def _require_free(ready: Ready | None) -> None:
    """Raise AppFailed if another program uses the port that the app must open to be ready."""
    port = port_of_ready(ready)
    if port is None:
        return
    try:
        ports.bind(port).close()
    except OSError:
        raise AppFailed(
            f"port {port}, at which the app becomes ready, is held by {ports.holder(port)}; end that first"
        ) from None


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait until the program has ended, and return its exit code. If a signal ended the program, the code is
    128 plus the signal's number. Ctrl-C on the terminal is left to the program."""
    while True:
        with suppress(KeyboardInterrupt):
            return _as_shell(process.wait())


def _as_shell(code: int) -> int:
    return 128 - code if code < 0 else code


def _end(process: subprocess.Popen[bytes], *, whole: bool) -> None:
    """End the program with SIGTERM, or with SIGKILL if it does not end soon. With `whole`, also end the
    processes that it has started (its process group)."""

    def send(number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            if whole:
                os.killpg(process.pid, number)
            elif process.poll() is None:
                process.send_signal(number)

    send(signal.SIGTERM)
    end = time.monotonic() + END_SECONDS
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
        process.wait(END_SECONDS)
        while whole and _has_members(process.pid) and time.monotonic() < end:
            time.sleep(_LOOK)  # its workers, which have not ended as fast
    send(signal.SIGKILL)
    process.wait()


def _has_members(group: int) -> bool:
    """Return whether any process is in this process group."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # the latter: no signal of ours reaches them
        return False
    return True


class Signals:
    """Handles SIGTERM and SIGHUP in the process that supervises an app."""

    def __init__(self) -> None:
        self._waits = self._told = False
        self._numbers: list[signal.Signals] = []

    @contextmanager
    def listen(self) -> Iterator[None]:
        """A context in which SIGTERM or SIGHUP raises SignalReceived. Only the first signal counts."""
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN  # nohup: it goes on without its terminal
        self._numbers = [signal.SIGTERM] if ignored else [signal.SIGTERM, signal.SIGHUP]
        before = [signal.signal(number, self._hear) for number in self._numbers]
        try:
            yield
        finally:
            for number, handler in zip(self._numbers, before, strict=True):
                signal.signal(number, handler)

    @contextmanager
    def later(self) -> Iterator[None]:
        """A context that delays SIGTERM and SIGHUP. If one of them arrives meanwhile, SignalReceived is
        raised at the end of the context."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self._told:
            self._stop()

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if not self._waits:
            self._stop()
        self._told = True  # not ignored yet, since a program started meanwhile would ignore it too

    def _stop(self) -> NoReturn:
        for number in self._numbers:
            signal.signal(number, signal.SIG_IGN)
        raise SignalReceived


def _libc() -> Any:
    if sys.platform != "linux":
        return None
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).prctl
    return None


_PRCTL = _libc()  # loaded before a fork, after which little may be called


def _die_with_parent() -> None:
    """Make this new process end when its supervisor ends, even if the supervisor is killed. Called in the
    process of the app, before its program starts."""
    if _PRCTL is not None:
        _PRCTL(_DIE_WITH_PARENT, signal.SIGTERM)
