"""Finds the local LLM server on a port, starts one if none answers, and ends servers that svc runs.

If a server answers on the port, it is used. It is never ended unless svc runs it. If none answers, an
installed `ollama` is started, or else svc's own server. If another program uses the port, that is an error,
because apps would not find a server on another port."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from localstore.core.paths import terminal_safe
from localstore.disk_errors import translated_disk_errors
from localstore.errors import DiskError
from localstore.folder.lock import NOTIFIED_AFTER, AlreadyLocked, end_holder, hold_lock, how_to_end
from localstore.models import leases, port, server
from localstore.models.errors import PortHeld, ServerFailed
from localstore.models.log import tail
from localstore.models.place import REGISTRIES, VARIABLE, llm_home
from svc.flows.llm.status import ServerStatus
from svc.flows.llm.talk import PROBE_SECONDS, PortState, Server, probe

KEEPER = "llm"  # above this room: started, not imported
START_SECONDS = 60.0
END_SECONDS = 20.0
PORT_HELD, ALREADY, UNWRITABLE = 3, 4, 6  # exit codes of the keeper
_LOOK = 0.03


def folder_of(number: int, environment: Mapping[str, str]) -> Path:
    """Return the folder with the files (lock, log, leases) of the server on port `number`."""
    return llm_home(environment) / str(number)


def status(number: int, environment: Mapping[str, str], seconds: float = PROBE_SECONDS) -> ServerStatus:
    """Return the status of the server on a port. `seconds` limits the wait for its answer."""
    folder = folder_of(number, environment)
    keeper = server.running(folder)
    answer = probe(number, seconds)
    state = ServerStatus(
        port=number, url=f"http://127.0.0.1:{number}", kind="none", models=str(llm_home(environment))
    )
    if answer == "llm":
        state.kind = keeper.kind if keeper is not None else "adopted"
        with suppress(ServerFailed):
            state.version = str(Server(number).get("/api/version").get("version", ""))
            state.loaded = len(Server(number).get("/api/ps").get("models") or [])
    elif answer != "free":
        state.kind, state.holder = ("hung" if keeper is not None else "held"), port.holder(number)
    if keeper is not None:
        state.pid, state.svc_home = keeper.pid, keeper.svc_home or None
        state.leases, state.stays = leases.list_leases(folder), leases.stays(folder)
    return state


def start(
    number: int,
    environment: Mapping[str, str],
    home: Path,
    *,
    stays: bool,
    say: Callable[[str], None],
    patience: float = 0.0,
) -> tuple[ServerStatus, bool]:
    """Make sure that a server answers on port `number`. Returns its status, and whether this call started it.

    With `stays`, the server keeps running when no app needs it. A program that uses the port may be a server
    that is not ready yet; `patience` is the number of seconds to wait for it. `say` is called with messages
    for the user. Raises PortHeld, ServerFailed, DiskError."""
    folder = folder_of(number, environment)
    with translated_disk_errors(folder, folder), _starting(folder / server.STARTING, say):
        keeper = server.running(folder)
        if stays and keeper is not None:
            leases.set_stays(folder, True)
        answer = _probe_patiently(number, patience, say)
        if answer == "llm":
            return status(number, environment, max(PROBE_SECONDS, patience)), False
        if keeper is not None:
            _wait(number, folder, None)
            return status(number, environment), False
        _require_free(number)
        leases.set_stays(folder, stays)
        process = _spawn(number, folder, environment, home)
        _wait(number, folder, process)
        return status(number, environment), True


def _probe_patiently(number: int, patience: float, say: Callable[[str], None]) -> PortState:
    """Return the kind of program that answers on the port. A program that does not answer, or is still
    starting, is asked again for `patience` seconds."""
    answer, end = probe(number), time.monotonic() + patience
    if answer == "silent" and patience:
        say(f"waiting for the program on port {number} to become healthy")
    while answer == "silent" and (rest := end - time.monotonic()) > 0:
        time.sleep(_LOOK)
        answer = probe(number, max(PROBE_SECONDS, rest))
    return answer


def serve(number: int, environment: Mapping[str, str], home: Path) -> None:
    """Turn this process into the server on port `number`, in the foreground. Does not return. Raises
    PortHeld, ServerFailed, DiskError."""
    folder = folder_of(number, environment)
    keeper = server.running(folder)
    if keeper is not None:
        raise ServerFailed(
            f"the server of port {number} runs already (process {keeper.pid}); to end it: svc llm stop"
        )
    _require_free(number)
    with translated_disk_errors(folder, folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        leases.set_stays(folder, True)
    sys.stdout.flush()
    sys.stderr.flush()
    words = [sys.executable, "-P", "-m", KEEPER, str(number), "shown"]
    os.execve(sys.executable, words, _environment(environment, home))  # noqa: S606 - by argument list


def require_no_hung_server(number: int, environment: Mapping[str, str]) -> None:
    """Raise ServerFailed if svc runs a server on the port. Call this after the server on the port has not
    answered."""
    if server.running(folder_of(number, environment)) is not None:
        raise ServerFailed(
            f"the local LLM server on port {number} runs and does not answer; end it: svc llm stop"
        )


def stop(number: int, environment: Mapping[str, str]) -> ServerStatus | None:
    """End the server that svc runs on the port. Returns the status that it had before; None if there is no
    server. Raises ServerFailed for a server that svc did not start, or that does not end."""
    folder = folder_of(number, environment)
    keeper = server.running(folder)
    if keeper is None:
        if probe(number) == "llm":
            raise ServerFailed(
                f"the server on port {number} was not started by svc, so it is not ended: "
                f"{port.holder(number)}"
            )
        return None
    state = status(number, environment)
    lock = folder / server.LOCK
    if any(
        end_holder(lock, number_of_signal, END_SECONDS)
        for number_of_signal in (signal.SIGTERM, signal.SIGKILL)
    ):
        leases.set_stays(folder, False)
        return state
    raise ServerFailed(f"the server on port {number} does not end; {how_to_end(lock)}")


def port_held(number: int) -> PortHeld:
    return PortHeld(
        f"port {number} is held by {port.holder(number)}, which does not answer like a local LLM server; "
        "end it, or give the server another port: ollama_port_override in .svc.yaml, or --port"
    )


def _require_free(number: int) -> None:
    """Raise PortHeld if another program uses the port."""
    try:
        port.bind(number).close()
    except OSError:
        raise port_held(number) from None


def _environment(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment variables for the keeper, the process that starts the server. svc's own
    variables are removed, because they include secrets. Only SVC_HOME, the folder of models and the list of
    registries stay; the first two become absolute paths."""
    variables = {name: value for name, value in environment.items() if not name.startswith("SVC_")}
    if REGISTRIES in environment:
        variables[REGISTRIES] = environment[REGISTRIES]
    return {**variables, "SVC_HOME": str(home.absolute()), VARIABLE: str(llm_home(environment))}


def _spawn(number: int, folder: Path, environment: Mapping[str, str], home: Path) -> subprocess.Popen[bytes]:
    ollama = shutil.which("ollama", path=environment.get("PATH"))
    words = [sys.executable, "-P", "-m", KEEPER, str(number), *([f"ollama={ollama}"] if ollama else [])]
    with (folder / server.LOG).open("ab") as log:
        return subprocess.Popen(
            words,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=_environment(environment, home),
            start_new_session=True,
        )


def _wait(number: int, folder: Path, process: subprocess.Popen[bytes] | None) -> None:
    """Wait until the server answers. `process` is the process that starts it, or None if another command
    does. Raises PortHeld, DiskError, or ServerFailed with the end of the server's log."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if probe(number) == "llm":
            return
        code = process.poll() if process is not None else None
        if code == PORT_HELD:
            raise port_held(number)
        if code == UNWRITABLE:
            raise DiskError(
                f"the server cannot write to {folder}; free some space there, or set SVC_LLM_HOME to a "
                "folder on another disk"
            )
        if code is not None and code != ALREADY:
            last = terminal_safe(tail(folder / server.LOG, 1)) or "it said nothing"
            raise ServerFailed(f"the local LLM server did not start: {last}; see: svc llm logs")
        if process is None and server.running(folder) is None:
            raise ServerFailed("the local LLM server ended while it was started; see: svc llm logs")
        time.sleep(_LOOK)
    raise ServerFailed(
        f"the local LLM server on port {number} runs and did not answer within {START_SECONDS:.0f} seconds; "
        "end it: svc llm stop"
    )


@contextmanager
def _starting(lock: Path, say: Callable[[str], None]) -> Iterator[None]:
    """A context that holds the lock for starting a server. If another process holds the lock, the context
    waits for it and tells the user once. Raises ServerFailed if that takes too long."""
    lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(lock, "svc llm start", NOTIFIED_AFTER, may_be_nameless=True))
        except AlreadyLocked as locked:
            say(f"waiting for {locked.holder}, which starts the server")
            try:
                stack.enter_context(hold_lock(lock, "svc llm start", 2 * START_SECONDS, may_be_nameless=True))
            except AlreadyLocked as still:
                raise ServerFailed(
                    f"{still.holder} starts the server and does not end; end that first"
                ) from None
        yield
