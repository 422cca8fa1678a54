"""Parts of what launches apps: consent, signals, and the log."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from io import StringIO
from pathlib import Path

import pytest
from msgspec import structs

from localstore.core.launch import Launch
from localstore.core.times import rfc3339_now
from localstore.folder.lock import hold_lock
from localstore.models import server as servers
from localstore.models.errors import AppMissing
from localstore.models.log import Log
from localstore.models.names import parse
from localstore.models.store import Models, Record
from svc.cmd.app.launch import report_to
from svc.console.progress import Meter
from svc.flows.apps import control
from svc.flows.apps import state as states
from svc.flows.apps.checking import check_app
from svc.flows.apps.place import LOCK, App, Apps, digest_of
from svc.flows.apps.state import AppState
from svc.flows.apps.supervise import SignalReceived, Signals
from svc.flows.apps.supervisor import ALREADY
from svc.flows.models import background
from tests.llm.conftest import add
from tests.patience import until
from tests.svc.conftest import clean_environment, llm_environment
from tests.svc.flows.models.test_registry import Registry

SIGNALLED = """
import signal, sys
from pathlib import Path
from localstore.models import server as servers
from localstore.models.errors import AppFailed, ServerFailed
from localstore.models.names import parse
from localstore.models.store import Models
from svc.flows.apps import control
from svc.flows.apps.place import App, Apps
from svc.flows.llm import server
from svc.flows.models import background
home = Path(sys.argv[1])
control.STOP_SECONDS = background.END_SECONDS = server.END_SECONDS = 0.2
try:
    control.stop(Apps(home), App(id="a", folder=str(home)))
except AppFailed as error:
    print(error.detail)
servers.write(home / "1", servers.Running(kind="embedded", pid=1, port=1, svc_home=""))
try:
    server.stop(1, {"SVC_LLM_HOME": str(home)})
except ServerFailed as error:
    print(error.detail)
background.cancel(home, parse("m"), Models(home))
print("not ended")
"""


@pytest.fixture
def hangs_up() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def test_who_has_not_said_its_number_is_not_signalled(tmp_path: Path) -> None:
    app, llm = Apps(tmp_path).folder("a") / LOCK, tmp_path / "1" / servers.LOCK
    pull = background._folder(tmp_path, parse("m")) / background.LOCK
    with ExitStack() as stack:
        for lock in (app, llm, pull):
            lock.parent.mkdir(parents=True)
            fcntl.flock(stack.enter_context(lock.open("w")), fcntl.LOCK_EX)
        done = subprocess.run(
            [sys.executable, "-c", SIGNALLED, str(tmp_path)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        f"a does not end; end the process that holds {app}",
        f"the server on port 1 does not end; end the process that holds {llm}",
        "not ended",
    ]


def test_consent_is_for_a_folder_and_not_for_its_path(tmp_path: Path) -> None:
    apps, launch = Apps(tmp_path / "home"), Launch(command=("true",))
    folder = tmp_path / "app"
    folder.mkdir()
    app = App(id="app", folder=str(folder))
    apps.allow(app, launch)
    assert apps.is_allowed(app, launch)
    folder.rename(tmp_path / "before")
    assert not apps.is_allowed(app, launch)
    folder.mkdir()
    assert not apps.is_allowed(app, launch)


def test_a_folder_whose_name_is_not_utf_8_has_a_digest(tmp_path: Path) -> None:
    folder = tmp_path / "b\udcff"
    folder.mkdir()
    assert len(digest_of(App(id="b", folder=str(folder)), Launch(command=("true",)))) == 64


def test_nul_in_the_name_of_a_folder_names_none(tmp_path: Path) -> None:
    with pytest.raises(AppMissing):
        Apps(tmp_path).find("./a\0b", tmp_path)


def test_a_hang_up_that_is_ignored_stays_so(hangs_up: None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with Signals().listen():
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_signal_while_a_program_is_started_is_heard_afterwards() -> None:
    signals, started = Signals(), False
    with pytest.raises(SignalReceived), signals.listen(), signals.later():
        os.kill(os.getpid(), signal.SIGTERM)
        started = True
    assert started


def test_a_log_that_cannot_be_opened_again_writes_into_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localstore.models.log.LOG_BYTES", 1000)
    log = Log(tmp_path / "log")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (log._out, hard))  # every lower number is taken
    try:
        log.write(b"x" * 1001)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with (tmp_path / "other").open("w"):
        log.write(b"first\n")
        log.write(b"second\n")
    assert (tmp_path / "other").read_bytes() == b""
    assert (tmp_path / "log.1").read_bytes() == b"x" * 1001 + b"first\n"
    assert (tmp_path / "log").read_bytes() == b"second\n"


def test_an_app_that_another_command_starts_is_waited_for(tmp_path: Path) -> None:
    apps, app = Apps(tmp_path), App(id="a", folder=str(tmp_path))
    apps.record(app)
    states.write(apps, AppState(id="a", state="pulling", supervisor=os.getpid()))

    def is_over(state: AppState) -> bool:
        states.write(apps, AppState(id="a", state="running", supervisor=os.getpid(), pid=1))
        return state.state == "running"

    process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({ALREADY})"])
    process.wait()
    with hold_lock(apps.folder("a") / LOCK):
        assert control.wait(apps, app, process, is_over).pid == 1
    states.write(apps, AppState(id="a", state="pulling", supervisor=os.getpid()))
    assert control.wait(apps, app, None, lambda state: False).state == "stopped"


def test_only_the_first_model_of_an_app_has_a_replacement(tmp_path: Path) -> None:
    environment = llm_environment(tmp_path / "llm")
    models = Models(tmp_path / "llm")
    add(tmp_path / "llm", "first", "say")
    digest = models.find(parse("first")).record.model
    about = models.about(digest)
    assert about is not None
    about = structs.replace(about, size=1 << 60)
    models.put_about(digest, about)
    models.put(parse("second"), Record(model=digest, modified_at=rfc3339_now()))
    manifest = "launch: {command: [sh]}\nmodels: [first, second]\nollama_tag: q8_0\n"
    (tmp_path / ".svc.yaml").write_text(manifest)
    rows = check_app(Apps(tmp_path / "home"), App(id="a", folder=str(tmp_path)), environment)
    words = [(row["detail"].partition(" ")[0], row["state"]) for row in rows if row["check"] == "model"]
    assert words == [("first", "ok"), ("second", "bad"), ("first:q8_0", "missing")]


def test_a_pull_that_the_disk_refuses_is_recorded_as_failed(tmp_path: Path) -> None:
    registry = Registry()
    registry.put("/v2/library/small/manifests/latest", registry.blob(b"model", "model"))
    threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True).start()
    (tmp_path / "file").touch()
    cache, home, name = tmp_path / "file/llm", tmp_path / "home", parse("small")
    more = {"SVC_LLM_HOME": str(cache), "SVC_LLM_REGISTRIES": f"registry.ollama.ai={registry.origin}"}
    try:
        background.start(home, name, clean_environment(**more), None)
        until(lambda: background.state_of(home, name, Models(cache)).pid is None, "the pull ended")
    finally:
        registry.shutdown()
        registry.server_close()
    download = background.state_of(home, name, Models(cache))
    assert download.state == "failed"
    assert str(download.detail).startswith(f"Not a directory: {cache}")


def test_a_pull_that_is_over_leaves_the_line_to_the_app() -> None:
    stream = StringIO()
    meter = Meter(stream, live=True)
    report = report_to(meter)
    report(1 << 20, 2 << 20)
    report(2 << 20, 2 << 20)
    assert "2 of 2" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")
