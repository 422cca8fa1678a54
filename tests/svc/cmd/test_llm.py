"""`svc llm …`: one server for all, whoever starts it, and what stands in its way."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from llm.leases import IDLE_SECONDS, Idle
from llm.log import Log
from localstore.models import leases, server
from tests.llm import tiny
from tests.llm.conftest import Kept, add, alive, free_port
from tests.llm.conftest import alone as alone
from tests.patience import until
from tests.svc.conftest import clean_environment

SENTENCE = "".join(tiny.SENTENCE)


class Place:
    """A user with a cache and a port; each command is a process, with one of several SVC_HOMEs."""

    def __init__(self, base: Path) -> None:
        self.base, self.port = base, free_port()
        self.llm, self.folder = base / "cache", base / "work"
        self.folder.mkdir()
        self.more: dict[str, str] = {}
        self.before: list[str] = []  # words before each command

    def environment(self, home: int = 0) -> dict[str, str]:
        own = {"SVC_HOME": str(self.base / f"home{home}"), "SVC_LLM_HOME": str(self.llm)}
        return clean_environment(**own, SVC_LLM_PORT=str(self.port), TERM="xterm-256color", **self.more)

    def begin(self, *words: str, home: int = 0, **how: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.before, sys.executable, "-m", "svc", "llm", *words],
            env=self.environment(home),
            cwd=self.folder,
            text=True,
            **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how},
        )

    def run(self, *words: str, typed: str | None = None, home: int = 0) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)"""
        how = {} if typed is None else {"stdin": subprocess.PIPE}
        process = self.begin(*words, home=home, **how)
        out, err = process.communicate(typed, timeout=120)
        return process.returncode, out, err

    def ok(self, *words: str, **how: object) -> str:
        code, out, err = self.run(*words, **how)
        assert code == 0, (words, out, err)
        return out

    def status(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.ok("status", "--json"))
        return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    found = Place(tmp_path)
    add(found.llm, "tiny", "say")
    add(found.llm, "loop", "loop", context=4096)
    yield found
    kept = server.running(found.llm / str(found.port))
    found.run("stop")
    until(lambda: kept is None or not alive(kept.pid), "the keeper ended")


def test_many_starts_at_once_make_one_server(place: Place) -> None:
    begun = [place.begin("start", "--json", "pid,url", home=number % 3) for number in range(8)]
    told = [process.communicate(timeout=120) for process in begun]
    assert [process.returncode for process in begun] == [0] * 8, told
    assert len({json.loads(out)["pid"] for out, _ in told}) == 1
    assert place.status()["kind"] == "embedded"
    assert place.status()["stays"] is True
    pid = place.status()["pid"]
    assert place.ok("start") == f"http://127.0.0.1:{place.port}\n"
    assert place.status()["pid"] == pid
    place.ok("stop", home=2)
    assert place.status()["kind"] == "none"
    until(lambda: not alive(int(str(pid))), "the keeper ended")


def test_models_of_several_files_and_projectors_are_pulled_by_name(place: Place) -> None:
    files = tiny.write_shards(place.folder, 2)
    pulled = json.loads(place.ok("pull", files[1].name, "--json", "name,size"))
    assert pulled == {"name": "say:latest", "size": sum(file.stat().st_size for file in files)}
    assert place.ok("run", "say", "Hi") == f"{SENTENCE}\n"
    (place.folder / "eye.gguf").write_bytes(tiny.projector())
    tiny.write(place.folder / "see.gguf")
    code, _, err = place.run("pull", "eye.gguf")
    assert (code, "svc llm pull MODEL.gguf --projector FILE.gguf" in err) == (2, True)
    code, _, err = place.run("pull", "tiny.gguf", "--projector", "see.gguf")
    assert code == 1
    tiny.write(place.folder / "tiny.gguf")
    code, _, err = place.run("pull", "tiny.gguf", "--projector", "see.gguf")
    assert (code, "see.gguf is not a projector" in err) == (2, True)
    place.ok("pull", "see.gguf", "--projector", "eye.gguf")
    place.ok("rm", "see", "--yes")
    files[0].unlink()
    code, _, err = place.run("pull", files[1].name, "--as", "again")
    assert (code, "say-00001-of-00002.gguf is missing" in err) == (1, True)


@pytest.mark.parametrize("silent", [False, True])
def test_a_program_on_the_port_is_named_and_no_other_port_is_taken(place: Place, silent: bool) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", place.port))
        held.listen()
        if not silent:
            threading.Thread(target=_refuse, args=(held,), daemon=True).start()
        code, out, err = place.run("start")
        assert (code, out) == (1, "")
        assert re.search(rf"port {place.port} is held by \S+ \(process {os.getpid()}\)", err)
        assert "ollama_port_override" in err
        for words in (["serve"], ["run", "tiny", "Hi"])[: 0 if silent else 2]:
            assert "is held by" in place.run(*words)[2]
        assert place.status()["kind"] == "held"
        held.shutdown(socket.SHUT_RDWR)


def _refuse(held: socket.socket) -> None:
    with suppress(OSError):
        while True:
            line, _ = held.accept()
            line.sendall(b"220 mail.example ESMTP\r\n")
            line.close()


def test_a_server_of_somebody_else_is_used_gets_models_and_is_never_ended(place: Place, alone: Kept) -> None:
    """Here another home's server of ours stands for an ollama."""
    place.port = alone.port
    place.ok("pull", str(tiny.write(place.folder / "mine.gguf", pad=9)), "--as", "me/mine:q")
    assert place.status()["kind"] == "adopted"
    place.ok("start")
    assert SENTENCE in place.ok("run", "me/mine:q", "Hi")
    assert "me/mine:q" in [one["name"] for one in alone.talk.get("/api/tags")["models"]]
    code, _, err = place.run("stop")
    assert code == 1
    assert "was not started by svc" in err
    assert alone.process.poll() is None
    place.port = free_port()


STUB = """#!{python}
import http.server, os, sys
if sys.argv[1:] != ["serve"] or any(name.startswith("SVC_") for name in os.environ): sys.exit(9)
class Stub(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = b'{{"models": [], "version": "0.0.stub"}}'
        self.send_response(200); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    def log_message(self, *words): pass
host, _, port = os.environ["OLLAMA_HOST"].partition(":")
http.server.HTTPServer((host, int(port)), Stub).serve_forever()
"""


def test_an_installed_ollama_is_run_started_again_and_ended(place: Place) -> None:
    tools = place.base / "bin"
    tools.mkdir()
    (tools / "ollama").write_text(STUB.format(python=sys.executable))
    (tools / "ollama").chmod(0o755)
    place.more = {"PATH": f"{tools}:{os.environ['PATH']}", "SVC_TOKEN": ""}
    place.ok("start")
    told = place.status()
    assert (told["kind"], told["version"]) == ("ollama", "0.0.stub")
    pid = int(str(told["pid"]))
    (child,) = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    os.kill(child, signal.SIGKILL)
    until(lambda: place.status()["kind"] == "ollama" and not alive(child), "it was started again")
    place.ok("stop")
    assert place.status()["kind"] == "none"


def test_a_record_of_a_server_that_is_gone_means_nothing(place: Place) -> None:
    folder = place.llm / str(place.port)
    folder.mkdir()
    (folder / server.LOCK).write_text(f"{os.getpid()} 1 svc llm")
    server.write(folder, server.Running(kind="embedded", pid=os.getpid(), port=place.port))
    assert place.status()["kind"] == "none"
    place.ok("start")
    assert place.status()["pid"] != os.getpid()


def test_a_killed_server_is_started_by_the_next_command(place: Place) -> None:
    place.ok("start")
    pid = int(str(place.status()["pid"]))
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid), "it ended")
    assert SENTENCE in place.ok("run", "tiny", "Hi")


def test_a_server_that_hangs_is_told_and_can_be_ended(place: Place) -> None:
    place.ok("start")
    assert place.ok("run", "tiny", "Hi") == f"{SENTENCE}\n"
    keeper = int(str(place.status()["pid"]))
    (front,) = map(int, Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split())
    os.kill(front, signal.SIGSTOP)
    assert place.status()["kind"] == "hung"
    code, out, err = place.run("ps")
    assert (code, out, "runs and does not answer; end it: svc llm stop" in err) == (1, "", True), err
    place.ok("stop")
    assert not alive(front)
    assert place.status()["kind"] == "none"
    assert place.ok("ps") == ""


def test_a_cache_that_cannot_be_is_named(place: Place) -> None:
    tiny.write(place.folder / "tiny.gguf")
    place.llm = place.base / "a file"
    place.llm.touch()
    assert place.status()["kind"] == "none"
    for words in (["pull", "tiny.gguf"], ["start"], ["serve"]):
        code, _, err = place.run(*words)
        assert (code, "Not a directory: " in err, str(place.llm) in err) == (1, True, True), err
    assert place.ok("list", "--json", "name").strip() == "[]"


def test_serve_ends_with_ctrl_c_and_leaves_nothing(place: Place) -> None:
    process = place.begin("serve", start_new_session=True)
    until(lambda: place.status()["kind"] == "embedded", "it answers")
    assert "runs already" in place.run("serve")[2]
    assert SENTENCE in place.ok("run", "tiny", "Hi")
    below = [int(one) for one in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"http://127.0.0.1:{place.port} answers" in said
    until(lambda: not any(map(alive, below)), "nothing of it is left")


def test_the_manifest_of_a_folder_names_the_port(place: Place) -> None:
    (place.folder / ".svc.yaml").write_text("ollama_port_override: 11999\n")
    (place.folder / "below").mkdir()
    assert place.status()["port"] == 11999
    assert json.loads(place.ok("status", "--json", "--port", "12000"))["port"] == 12000
    (place.folder / ".svc.yaml").write_text("ollama_port_override: abc\n")
    code, _, err = place.run("status")
    assert code == 1
    assert "ollama_port_override must be a whole number from 1 to 65535" in err
    (place.folder / ".svc.yaml").unlink()
    for port in ("0", "70000"):
        assert place.run("status", "--port", port)[0] == 2


def test_run_in_a_pipe(place: Place) -> None:
    assert SENTENCE in place.ok("run", "tiny", typed="Hi\n")
    assert SENTENCE in place.ok("run", "tiny", "Sum", "up", typed="this\n")
    assert place.ok("run", "loop", "Hi", "-o", "num_predict=3") == "".join(tiny.SENTENCE[:3]) + "\n"
    assert place.run("run", "tiny", typed="")[0] == 2
    assert place.run("run", "tiny", "Hi", "-o", "warm")[0] == 2
    assert "num_ctx is a number" in place.run("run", "tiny", "Hi", "-o", "num_ctx=big")[2]
    code, _, err = place.run("run", "tiny", "Hi", "-o", "warmth=1")
    assert (code, "no option is called 'warmth'; there are" in err, "/set" in err) == (2, True, False), err
    code, _, err = place.run("run", "nope", "Hi")
    assert (code, "model 'nope' not found" in err) == (1, True)
    assert place.status()["stays"] is False
    listed = json.loads(place.ok("ps", "--json", "name,context"))
    assert {"name": "tiny:latest", "context": 512} in listed
    place.ok("stop", "tiny")
    assert "tiny:latest" not in place.ok("ps")
    assert "loaded tiny:latest" in place.ok("logs")
    assert len(place.ok("logs", "-n", "1").splitlines()) == 1


@contextmanager
def chat(place: Place, *words: str) -> Iterator[tuple[Callable[[str], str], Callable[[bytes], None]]]:
    """A chat on a terminal: a function that waits for a text and returns what came, and one that types."""
    near, far = pty.openpty()
    process = place.begin("run", *words, stdin=far, stdout=far, stderr=far, start_new_session=False,
                          preexec_fn=lambda: _own_terminal(far))  # fmt: skip
    os.close(far)
    seen = ""

    def wait(text: str) -> str:
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen:
            assert select.select([near], [], [], max(0, end - time.monotonic()))[0], seen
            seen += os.read(near, 65536).decode("utf-8", "replace")
        at = seen.index(text) + len(text)
        came, seen = seen[:at], seen[at:]
        return came

    try:
        yield wait, lambda keys: (os.write(near, keys), None)[1]
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        process.wait(60)
        os.close(near)


def _own_terminal(far: int) -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(far, termios.TIOCSCTTY, 0)


def test_a_chat_obeys_its_commands_and_ctrl_c_ends_the_answer_alone(place: Place) -> None:
    place.ok("start")
    with chat(place, "loop") as (wait, typed):
        wait(">>> ")
        typed(b"Hi\r")
        wait("Hello! I am a tiny test")
        wait("Hello! I am a tiny test")
        typed(b"\x03")
        wait(">>> ")
        typed(b"/clear\r")  # on a busy machine the answer may fill the context before ctrl+c comes
        wait("begins again")
        wait(">>> ")
        typed(b"/set num_predict 4\r")
        wait("num_predict: 4")
        wait(">>> ")
        typed(b"again\r")
        wait("Hello! I am")
        wait(">>> ")
        typed(b"/load tiny\r")
        wait("now with tiny")
        wait(">>> ")
        typed(b"/clear\r")
        wait("begins again")
        wait(">>> ")
        typed(b"/nope\r")
        wait("there is no /nope")
        wait(">>> ")
        typed(b"/load none\r")
        wait("model 'none' not found")
        wait(">>> ")
        typed(b"\x03\r")  # CPython sees a signal that came just before it waits with the next key only
        wait("ends the chat")
        wait(">>> ")
        typed(b'"""one\r')
        wait("... ")
        typed(b'two"""\r')
        wait("Hello! I am")
        wait(">>> ")
        typed(b"/bye\r")


def test_the_log_is_renamed_when_it_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localstore.models.log.LOG_BYTES", 1000)
    log = Log(tmp_path / "log")
    for number in range(300):
        log.write(f"line {number}\n".encode())
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 3000
    assert {path.name for path in tmp_path.iterdir()} == {"log", "log.1"}
    assert "line 299" in (tmp_path / "log").read_text() + (tmp_path / "log.1").read_text()


def test_a_server_ends_when_nobody_needs_it(tmp_path: Path) -> None:
    folder, idle = tmp_path / "1", Idle(tmp_path, 1)
    later = time.monotonic() + IDLE_SECONDS
    assert not idle.over(later - 1)
    assert idle.over(later + 1)
    with leases.lease(folder, "app"):
        assert not idle.over(later + 1000)
    assert not idle.over(later + 1000 + IDLE_SECONDS - 1)
    leases.set_stays(folder, True)
    assert not idle.over(later + 10_000)
    leases.set_stays(folder, False)
    assert not idle.over(later + 10_000 + IDLE_SECONDS - 1)
    assert idle.over(later + 10_000 + IDLE_SECONDS + 1)
    idle.set_open_requests(1)
    assert not idle.over(later + 99_000)
