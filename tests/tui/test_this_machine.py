"""The screen of this machine, with real models, pulls of other processes, a real server and real apps."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.core.errors import ClientError
from localstore.home import Home
from localstore.models.names import parse
from localstore.models.store import Models
from scripts.bench.tui import Terminal
from svc.flows.apps.place import App, Apps
from svc.flows.apps.state import state_of
from svc.flows.llm.talk import Server, probe
from tests.llm import tiny
from tests.llm.conftest import add, alive, free_port
from tests.patience import PATIENCE, until
from tests.svc.conftest import ROOT, Svc, clean_environment
from tests.tui.conftest import shown
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.machine import Machine
from tui.screens.machine import work
from tui.screens.machine.reading import Pull
from tui.widgets.sheet import Sheet

__all__ = ["project"]
Open = Callable[..., SvcApp]
PULLS = """
import sys, time
from pathlib import Path
from localstore.models.pulls import pull_blob
from localstore.models.store import Models

def work(file, report):
    report(40, 100)
    print("pulling", flush=True)
    time.sleep(600)

pull_blob(Models(Path(sys.argv[1])), "b3-00", lambda: None, work, lambda *_: None, "bob/big:q4")
"""
STAY = "import time; print('up', flush=True); time.sleep(600)"


@pytest.fixture
def cache(alice: Svc) -> Path:
    """SVC_LLM_HOME, with a model."""
    home = Path(os.environ["SVC_LLM_HOME"])
    add(home, "tiny", "say")
    return home


@pytest.fixture
def port(alice: Svc, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A port for a server, which is ended behind the test."""
    number = free_port()
    monkeypatch.setenv("SVC_LLM_PORT", str(number))
    yield number
    alice("llm", "stop")


@contextmanager
def other_pull(cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that pulls bob/big:q4, and has 40 of 100 bytes."""
    process = subprocess.Popen(
        [sys.executable, "-c", PULLS, str(cache)],
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"pulling\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def app_folder(name: str, *command: str, **manifest: object) -> Path:
    folder = Path.cwd() / name
    folder.mkdir()
    words = command or (sys.executable, "-c", STAY)
    launch = {"launch": {"command": list(words)}}
    (folder / ".svc.yaml").write_text(json.dumps({"kind": "app", **manifest, **launch}))
    return folder


async def test_a_pull_of_another_process_is_seen_moving_and_ended(cache: Path, open_app: Open) -> None:
    with other_pull(cache) as process:
        async with open_app().run_test(size=(100, 24)) as pilot:
            await sees(pilot, "pulling 40 %", "M ")
            await press(pilot, "M")
            screen = await sees(pilot, "bob/big:q4", "▒▒▒▒······  40 %")
            assert "no server; S starts it" in screen
            assert "known here" not in screen
            assert "tiny" in screen and "MiB  file" in screen
            (cache / "models/pulls/b3-00.progress").write_bytes(
                json.dumps({"completed": 90, "total": 100, "name": "bob/big:q4", "known": 60}).encode()
            )
            await sees(pilot, "▒▒▒▒▒▒▒▒▒·  90 %")
            await press(pilot, "G")
            await sees(pilot, "60 B were here already", f"process   {process.pid}", "x end the pull")
            assert f"end the pull of bob/big:q4 (process {process.pid})" in await press(pilot, "x")
            await press(pilot, "n")
            assert process.poll() is None
            await press(pilot, "x", "y")
            await sees(pilot, "ended the pull of bob/big:q4")
            assert process.wait(PATIENCE) != 0
            await soon(pilot, lambda: "90 %" not in shown(pilot.app))


def test_nobody_is_told_to_end_process_0(svc: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull that began on a full disk holds its lock without its number."""
    monkeypatch.setattr(work, "END_SECONDS", 0.0)
    lock = tmp_path / "b3-00.lock"
    with lock.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(ClientError) as caught:
            work.cancel(Machine(Home(tmp_path / "home")), Pull("bob/big:q4", lock=lock))
    assert "kill -9" not in caught.value.detail and "not known" in caught.value.detail


async def test_a_model_is_pulled_removed_and_what_fails_is_said(
    project: str, cache: Path, alice: Svc, open_app: Open
) -> None:
    tiny.write(Path("say-f16.gguf"))
    assert alice("push", "-m", "A model").code == 0
    models = Models(cache)
    async with open_app().run_test(size=(90, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await sees(pilot, "tiny")
        await press(pilot, "p", *project, "enter")
        await sees(pilot, "/project ", "MiB  F16")
        assert models.find(parse(project)).record.source is not None
        await press(pilot, "g", "j", "enter")
        await sees(pilot, "svc llm show", "F16")
        await press(pilot, "escape")
        await press(pilot, "x", "y")
        await sees(pilot, "Removed")
        assert "  2.4 MiB  F16" not in await sees(pilot, "Models 1")
        await press(pilot, "p", *f"{project}-not", "enter")
        await sees(pilot, "was not pulled", "or is hidden; check the name")
        await press(pilot, "G", "x")
        await sees(pilot, "Models 1")
        while "✗" in shown(app_of(pilot.app)):
            await pilot.pause(0.05)
        await press(pilot, "p", "?", "enter")
        await sees(pilot, "is not the name of a model")


async def test_the_server_is_started_used_and_stopped(cache: Path, port: int, open_app: Open) -> None:
    async with open_app().run_test(size=(90, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await sees(pilot, "no server; S starts it")
        assert "is not loaded" in await press(pilot, "g", "j", "u")
        await press(pilot, "S")
        await sees(pilot, "Started the local LLM server", "embedded", "stays")
        Server(port).post("/api/generate", {"model": "tiny", "prompt": "Hi", "stream": False})
        await sees(pilot, "loaded  ctx 512  until ", "CPU only · 0.")
        await press(pilot, "u")
        await sees(pilot, "Unloaded tiny", "MiB  file")
        await press(pilot, "l")
        await sees(pilot, "svc llm logs", "loaded tiny:latest")
        await press(pilot, "escape")
        assert "stop the local LLM server?" in await press(pilot, "S")
        await press(pilot, "y")
        await sees(pilot, "Stopped the local LLM server", "no server; S starts it")
    assert probe(port) == "free"


async def test_what_an_app_would_run_is_shown_before_its_first_launch(
    cache: Path, alice: Svc, open_app: Open
) -> None:
    folder = app_folder("notes")
    try:
        async with open_app().run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await press(pilot, "M")
            await sees(pilot, "no apps here")
            await press(pilot, "a", *"./notes", "enter")
            screen = await sees(pilot, "It would run", "time.sleep(600)", "y launches")
            assert "╭─ launch notes ─" in screen and "y launches" in screen
            shown_rows = pilot.app.screen.query_one(Sheet).rows
            words = "".join(part for row in shown_rows for part, _ in row.left[1:])
            assert str(folder) in words
            await press(pilot, "n")
            assert "nothing was launched" in await sees(pilot, "no apps here")
            await press(pilot, "a", *"./notes", "enter")
            await sees(pilot, "It would run")
            await press(pilot, "y")
            await sees(pilot, "running just now", "notes runs")
            apps = Apps(Path(os.environ["SVC_HOME"]))
            pid = state_of(apps, apps.find("notes", folder)).pid
            assert pid is not None
            await press(pilot, "G")
            assert "has no page" in await press(pilot, "o")
            await press(pilot, "enter")
            await sees(pilot, "svc app logs notes", "up")
            await press(pilot, "escape")
            assert "svc app launch notes" in await press(pilot, "?")
            await press(pilot, "escape")
            assert "stop notes?" in await press(pilot, "x")
            await press(pilot, "y")
            await sees(pilot, "Stopped notes", "stopped")
            until(lambda: not alive(pid), "the app ended")
            await press(pilot, "a")
            await sees(pilot, "running just now")
            await press(pilot, "x", "y")
            await sees(pilot, "Stopped notes")
            text = (folder / ".svc.yaml").read_text()
            (folder / ".svc.yaml").write_text(text.replace("'up'", "'changed'"))
            await press(pilot, "a")
            await sees(pilot, "It would run", "'changed'")
            await press(pilot, "escape")
            await sees(pilot, "nothing was launched")
    finally:
        alice("app", "stop", "notes")


async def test_nothing_is_allowed_that_was_not_on_the_screen(cache: Path, alice: Svc, open_app: Open) -> None:
    app_folder("long", "true", "x" * 3000, "the last word")
    apps = Apps(Path(os.environ["SVC_HOME"]))
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await sees(pilot, "no apps here")
        await press(pilot, "a", *"./long", "enter")
        screen = await sees(pilot, "It would run", "more rows", "y shows more")
        assert "the last word" not in screen
        while "more rows" in screen:
            screen = await press(pilot, "y")
            assert not apps.all()
        await sees(pilot, "word' ", "launch long?", "y launches")
        assert not apps.all()
        await press(pilot, "y")
        await sees(pilot, "ended with 0")  # it may be seen to run before


async def test_the_app_of_the_row_is_previewed_and_its_log_is_followed(
    cache: Path, alice: Svc, open_app: Open
) -> None:
    """The preview has the process, the command and the end of the log; the log shows what comes while its
    end is visible, and stands still for whoever has scrolled up."""
    more = Path.cwd() / "more"
    counting = f"""
import time, pathlib
print(*(f"line {{n}}" for n in range(60)), sep="\\n", flush=True)
for word in ("first", "second"):
    while not pathlib.Path({str(more)!r} + word).exists():
        time.sleep(0.05)
    print(word, "word", flush=True)
time.sleep(600)
"""
    folder = app_folder("notes", sys.executable, "-c", counting)
    try:
        assert alice("app", "launch", "./notes", "--yes", "--detach").code == 0
        apps = Apps(Path(os.environ["SVC_HOME"]))
        pid = state_of(apps, apps.find("notes", folder)).pid
        async with open_app().run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await press(pilot, "M")
            await sees(pilot, "S start", "starts the server", "Apps 1")
            await press(pilot, "G")
            await sees(pilot, f"process   {pid}", "runs", "line 59", "x stop")
            assert "c chat" not in shown(app_of(pilot.app))
            await press(pilot, "enter")
            await sees(pilot, "svc app logs notes", "follows its end", "line 59")
            Path(f"{more}first").touch()
            await sees(pilot, "first word", "of 61 lines")
            await press(pilot, "g")
            await sees(pilot, "stands still; G follows", "line 0")
            Path(f"{more}second").touch()
            assert "second word" not in await sees(pilot, "of 62 lines", "line 0")
            await press(pilot, "G")
            await sees(pilot, "second word", "follows its end")
            await press(pilot, "slash", *"line 7", "enter")
            assert "line 7" in await sees(pilot, "stands still")
    finally:
        alice("app", "stop", "notes")


async def test_an_app_says_what_it_lacks_and_why_it_fails(cache: Path, alice: Svc, open_app: Open) -> None:
    app_folder("draw", models=["bob/pictures"])
    folder = app_folder("broken", "true")
    assert alice("app", "launch", "./broken", "--yes", "--detach").code == 0
    alice("app", "launch", "./draw", "--yes", "--detach")
    (folder / ".svc.yaml").write_text("launch: 3\n")
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await sees(pilot, "needs bob/pictures", "broken")
        screen = shown(app_of(pilot.app))
        assert "launch" in next(line for line in screen.splitlines() if "broken" in line)
        await press(pilot, "G")
        assert "bob/pictures" in await press(pilot, "p")
        await press(pilot, "escape")


async def test_a_file_that_cannot_be_named_is_said(cache: Path, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "M")
        await sees(pilot, "tiny")
        await press(pilot, "p", *"~nobody-of-this-name/model.gguf", "enter")
        await sees(pilot, "is no path of a file")
        await press(pilot, "p", *("a" * 300), "enter")
        await sees(pilot, "'aaaaaaaa")  # is not the name of a model


async def test_a_key_concerns_the_app_of_its_row_alone(cache: Path, alice: Svc, open_app: Open) -> None:
    """The app of a row was removed by another process, and its name now means another app."""
    folder = app_folder("notes")
    apps = Apps(Path(os.environ["SVC_HOME"]))
    apps.record(App(id="notes", folder=str(folder)))
    other = App(id="bob/notes", folder=str(folder), installed=True)
    try:
        async with open_app().run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await press(pilot, "M")
            await sees(pilot, "notes")
            await press(pilot, "G", "a")
            await sees(pilot, "It would run")
            await press(pilot, "y")
            await sees(pilot, "running just now")
            await press(pilot, "G")
            assert "stop notes?" in await press(pilot, "x")
            alice("app", "uninstall", "notes", "--yes")
            apps.record(other)
            assert alice("app", "launch", "bob/notes", "--yes", "--detach").code == 0
            await press(pilot, "y")
            await sees(pilot, "notes is not on this machine any more")
            assert state_of(apps, other).state == "running"
    finally:
        alice("app", "stop", "bob/notes")
        alice("app", "stop", "notes")


async def test_no_other_app_is_shown_for_the_row_of_one_that_is_gone(
    cache: Path, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row stands until the next reading; its name fits another app by then."""
    port = free_port()
    serve = f"import http.server as s; s.test(s.SimpleHTTPRequestHandler, port={port}, bind='127.0.0.1')"
    folder = app_folder("notes", sys.executable, "-c", serve)
    manifest = json.loads((folder / ".svc.yaml").read_text())
    manifest["launch"]["ready"] = {"http": f"http://127.0.0.1:{port}/"}
    (folder / ".svc.yaml").write_text(json.dumps(manifest))
    apps = Apps(Path(os.environ["SVC_HOME"]))
    monkeypatch.setattr("tui.screens.machine.machine.EVERY", 3600.0)
    try:
        assert alice("app", "launch", "./notes", "--yes", "--detach").code == 0
        async with open_app().run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await press(pilot, "M")
            await sees(pilot, "notes")
            await press(pilot, "G")
            await sees(pilot, f"http://127.0.0.1:{port}/", "o its page")
            assert alice("app", "uninstall", "notes", "--yes").code == 0
            apps.record(App(id="bob/notes", folder=str(folder), installed=True))
            assert "notes is not on this machine any more" in await press(pilot, "enter")
            assert "svc app logs" not in await press(pilot, "j")
            assert "notes is not on this machine any more" in await press(pilot, "o")
    finally:
        alice("app", "stop", "bob/notes")
        alice("app", "stop", "notes")


async def test_over_ssh_there_is_no_machine(alice: Svc, open_app: Open) -> None:
    app = open_app()
    app.machine = None
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "machine" not in {action.id for action in app.actions()}
        await press(pilot, "M")
        assert len(app.screen_stack) == 2


def test_a_chat_has_the_terminal_and_ctrl_c_ends_its_answer_alone(
    project: str, cache: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(cache, "loop", "loop", context=4096)
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal([sys.executable, "-m", "svc"], Path.cwd(), 100, 30)
    try:
        assert terminal.shows("/project", PATIENCE), terminal.text
        terminal.keys("M")
        assert terminal.shows("loop", PATIENCE), terminal.text
        terminal.keys("j")
        terminal.keys("c")
        assert terminal.shows("chat with loop", PATIENCE), terminal.text
        terminal.keys("Hi\r")
        assert terminal.shows("tiny test model", PATIENCE), terminal.text
        terminal.keys("\x03")
        terminal.keys("/show\r")
        assert terminal.shows("2 messages", PATIENCE), terminal.text
        terminal.keys("\x04")
        assert terminal.shows("loaded  ctx 4096", PATIENCE), terminal.text
        assert terminal.shows("u unload", PATIENCE), terminal.text
    finally:
        terminal.close()


def app_of(app: object) -> SvcApp:
    assert isinstance(app, SvcApp)
    return app
