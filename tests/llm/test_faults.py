"""What dies, hangs or leaves: the next request is answered, and nothing goes on for nobody."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from llm import runners
from llm.task import KEY_VARIABLE
from localstore.models.errors import ServerFailed
from localstore.models.names import parse
from localstore.models.store import Models
from tests.depth import rounds
from tests.llm import tiny
from tests.llm.conftest import Kept, add, alive, cpu_ticks
from tests.llm.test_api import SENTENCE, asked
from tests.patience import until
from tests.svc.conftest import ROOT, clean_environment

# A keeper that waits 8 s for a hung front instead of two minutes, and says when it has had an answer.
IMPATIENT = """
import sys
from llm import keeper
keeper.ASK_SECONDS, keeper.ANSWER_SECONDS, keeper.MISSED = 0.1, 4.0, 2
answers = keeper._answers
def asked(port):
    answered = answers(port)
    if answered:
        (keeper.llm_home() / str(port) / "asked").touch()
    return answered
keeper._answers = asked
sys.exit(keeper.main(sys.argv[1:]))
"""
LOOP = {"model": "loop", "prompt": "Hi", "options": {"num_predict": 3000}}


def said(kept: Kept) -> str:
    whole = kept.talk.post("/api/generate", {"model": "tiny", "prompt": "Hi", "stream": False})
    return str(whole["response"])


def test_a_killed_runner_ends_its_answer_with_an_error_and_is_loaded_again(alone: Kept) -> None:
    assert said(alone) == SENTENCE
    (runner,) = alone.runners()
    os.kill(runner, signal.SIGKILL)
    assert said(alone) == SENTENCE
    lines = alone.talk.stream("/api/generate", LOOP)
    assert next(lines)["done"] is False
    for pid in alone.runners():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(ServerFailed, match="ended unexpectedly; ask again"):
        list(lines)
    assert said(alone) == SENTENCE


def test_a_killed_front_is_started_again_on_the_same_port(alone: Kept) -> None:
    assert said(alone) == SENTENCE
    front, old = alone.front(), alone.runners()
    os.kill(front, signal.SIGKILL)
    assert said(alone) == SENTENCE
    assert alone.front() != front
    until(lambda: not any(map(alive, old)), "the runners of the killed front ended")


def test_a_hung_front_is_killed_and_its_clients_are_answered(tmp_path: Path) -> None:
    add(tmp_path, "tiny", "say")
    kept = Kept(tmp_path, program=("-c", IMPATIENT))
    try:
        assert said(kept) == SENTENCE
        front, old = kept.front(), kept.runners()
        until(lambda: (kept.folder / "asked").exists(), "the keeper has had an answer")
        os.kill(front, signal.SIGSTOP)
        assert said(kept) == SENTENCE  # it waits in the queue of the keeper's socket
        assert kept.front() != front
        assert "the server's process does not answer; it is ended" in kept.log()
        until(lambda: not any(map(alive, [front, *old])), "the hung front and its runners ended")
    finally:
        kept.close()


def test_a_front_that_ends_again_and_again_is_given_up(alone: Kept) -> None:
    for _ in range(3):
        front = until(lambda: next(iter(alone.below()), None), "a front runs")
        os.kill(front, signal.SIGKILL)
        until(lambda front=front: not alive(front), "it ended")
    assert alone.process.wait(60) == 5
    assert "it is not started again" in alone.log()


def test_a_killed_keeper_leaves_no_process(alone: Kept) -> None:
    assert said(alone) == SENTENCE
    below = alone.below()
    assert len(below) >= 2
    alone.process.kill()
    alone.process.wait(60)
    until(lambda: not any(map(alive, below)), "the front and its runner ended")


def leave(kept: Kept, path: str, body: dict[str, object], after: int) -> None:
    """Send a request, read some bytes of its answer, and hang up."""
    data = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", kept.port)) as line:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n"
        line.sendall(head.encode() + data)
        if after:
            line.recv(after)


def test_nothing_is_generated_for_clients_that_left(alone: Kept) -> None:
    """In the prompt, in a stream and in a whole answer; at /api and at /v1."""
    long = "word " * 2000
    messages = [{"role": "user", "content": "Hi"}]
    ways: list[tuple[str, dict[str, object], int]] = [
        ("/api/generate", {**LOOP, "prompt": long, "options": {"num_ctx": 4096}}, 0),
        ("/api/generate", LOOP, 300),
        ("/api/chat", {"model": "loop", "messages": messages, "stream": False}, 0),
        ("/v1/chat/completions", {"model": "loop", "messages": messages, "stream": True}, 300),
        ("/v1/chat/completions", {"model": "loop", "messages": messages}, 0),
    ]
    for number in range(rounds(60, 1000)):
        leave(alone, *ways[number % len(ways)])
    pids = [*alone.below()]

    def quiet() -> bool:
        before = [cpu_ticks(pid) for pid in pids]
        time.sleep(0.5)
        return [cpu_ticks(pid) for pid in pids] == before

    until(quiet, "no process of the server works any more")
    for pid in pids:
        until(lambda pid=pid: not sockets_with_a_peer(pid), "no connection is left")
    assert [one["name"] for one in alone.talk.get("/api/ps")["models"]] == ["loop:latest"]
    assert said(alone) == SENTENCE


def sockets_with_a_peer(pid: int) -> int:
    """How many TCP connections a process holds."""
    lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    connected = {words[9] for words in map(str.split, lines) if words[3] != "0A"}
    names = []
    for name in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            names.append(str(name.readlink()))
    return sum(re.sub(r"\D", "", name) in connected for name in names if name.startswith("socket:"))


def test_a_client_that_leaves_an_upload_leaves_no_file(alone: Kept) -> None:
    for _ in range(rounds(10, 200)):
        with socket.create_connection(("127.0.0.1", alone.port)) as line:
            head = f"POST /api/blobs/sha256:{'0' * 64} HTTP/1.1\r\nHost: localhost\r\n"
            line.sendall(head.encode() + b"Content-Length: 9999999\r\n\r\n" + bytes(100_000))
    blobs = alone.home / "models" / "blobs"
    kept = sorted(path.name for path in blobs.iterdir() if path.name.startswith("sha256-"))
    until(lambda: sorted(path.name for path in blobs.iterdir()) == kept, "every part is removed")
    assert said(alone) == SENTENCE


def test_a_client_that_leaves_while_its_model_is_loaded_leaves_one_that_is_used(alone: Kept) -> None:
    for _ in range(3):
        leave(alone, "/api/generate", {"model": "tiny", "prompt": "Hi"}, 0)
    assert said(alone) == SENTENCE
    assert len(alone.runners()) == 1


def test_a_disk_that_is_full_refuses_an_upload_and_keeps_nothing(tmp_path: Path) -> None:
    """No file of the server's may have more than 3 MB."""
    add(tmp_path, "tiny", "say")
    small = Kept(tmp_path, limit=3_000_000)
    try:
        for pad in (1, 2):
            data = tiny.model("say", layers=4, pad=pad)
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            status, answer = asked(small, "POST", f"/api/blobs/{digest}", data)
            assert status == 507
            assert "cannot be written: File too large" in answer["error"]
        assert {path.suffix for path in (tmp_path / "models" / "blobs").iterdir()} == {"", ".about"}
        assert len(list((tmp_path / "models" / "blobs").iterdir())) == 2
        assert said(small) == SENTENCE
    finally:
        small.close()


def test_many_clients_are_answered_at_once(kept: Kept) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(said(kept))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [SENTENCE] * 16


def test_a_model_that_answers_is_not_unloaded_under_its_client(alone: Kept) -> None:
    lines = alone.talk.stream("/api/generate", {**LOOP, "options": {"num_predict": 200}})
    next(lines)
    alone.talk.post("/api/generate", {"model": "loop", "keep_alive": 0})
    assert list(lines)[-1]["done_reason"] == "length"
    assert alone.talk.get("/api/ps")["models"] == []


async def test_a_runner_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The watchdog in this process, on a runner that is stopped."""
    monkeypatch.setattr(runners, "SILENT_SECONDS", 0.2)
    add(tmp_path, "loop", "loop", context=4096)
    pool = runners.Runners(runners.Models(tmp_path), lambda line: None)
    installed = pool._models.find(parse("loop"))
    try:
        async with pool.lend(installed, None, 60.0) as runner:
            assert runner.process is not None
            answer = await runner.ask("POST", "/completion", b'{"prompt": "Hi", "stream": true}')
            os.kill(runner.process.pid, signal.SIGSTOP)
            monkeypatch.setattr(runners, "HEALTH_SECONDS", 0.5)  # before, it was only slow on a busy machine
            with pytest.raises(runners.Refused, match="did not answer and was ended"):
                async for _ in runner.pieces(answer):
                    pass
        async with pool.lend(installed, None, 60.0) as again:
            assert again is not runner
    finally:
        await pool.close()


async def test_a_second_model_waits_for_memory_that_a_busy_one_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, "tiny", "say")
    add(tmp_path, "loop", "loop")
    pool = runners.Runners(runners.Models(tmp_path), lambda line: None)
    loop, tiny = (pool._models.find(parse(name)) for name in ("loop", "tiny"))
    one = runners.memory.smallest_need(loop)
    monkeypatch.setattr(
        runners.memory, "available", lambda: one if not pool.loaded else one // 2
    )  # room for one of them
    try:
        async with pool.lend(loop, None, 60.0) as first:
            waiting = asyncio.create_task(_lent(pool, tiny))
            done, _ = await asyncio.wait({waiting}, timeout=0.5)
            assert not done
            assert not first.ended
        assert await waiting == "tiny:latest"
        assert first.ended
        monkeypatch.setattr(runners.memory, "available", lambda: 1000)
        with pytest.raises(runners.Refused, match=r"does not fit: it needs .* of memory"):
            await _lent(pool, loop)
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("kill -ILL $$", r"ended with -4 \(this processor lacks AVX2, FMA or F16C, .*svc llm logs"),
        ("exit 7", "its process ended with 7; the log says more: svc llm logs"),
        ("echo a library prints; exec sleep 600", "it was not ready within 1 s"),
        ('echo \'{"error": "no memory"}\'', "no memory"),
    ],
)
async def test_a_runner_that_does_not_load_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    """The runner is another program here, which ends or hangs as an engine can."""
    monkeypatch.setattr(runners, "LOAD_SECONDS", 1.0)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o755)
    monkeypatch.setattr(runners.sys, "executable", str(python))
    add(tmp_path, "tiny", "say")
    pool = runners.Runners(runners.Models(tmp_path), lambda line: None)
    with pytest.raises(runners.Refused, match=f"model 'tiny' cannot be loaded: .*{reason}"):
        await _lent(pool, pool._models.find(parse("tiny")))
    assert pool.loaded == []


def test_a_file_that_is_no_whole_model_any_more_is_one_error(alone: Kept) -> None:
    """The engine refuses it, or its size shows it; the server goes on."""
    models = Models(alone.home)
    data = models.blob(models.find(parse("tiny")).record.model)
    whole, times = data.read_bytes(), (data.stat().st_atime_ns, data.stat().st_mtime_ns)
    data.write_bytes(whole[:-1000])
    with pytest.raises(ServerFailed, match="was changed in place"):
        said(alone)
    data.write_bytes(bytes(24) + whole[24:])
    os.utime(data, ns=times)
    with pytest.raises(ServerFailed, match="model 'tiny' cannot be loaded"):
        said(alone)
    data.write_bytes(whole)
    os.utime(data, ns=times)
    assert said(alone) == SENTENCE


async def _lent(pool: runners.Runners, installed: runners.Installed) -> str:
    async with pool.lend(installed, None, 60.0) as runner:
        return runner.name


def test_a_runner_answers_nobody_without_its_key_and_offers_no_tools(alone: Kept) -> None:
    said(alone)
    (runner,) = alone.runners()
    table = "\n".join(open(f"/proc/{runner}/net/tcp").read().splitlines()[1:])  # noqa: SIM115, PTH123
    inodes = {
        re.sub(r"\D", "", os.readlink(f"/proc/{runner}/fd/{name}"))  # noqa: PTH115
        for name in os.listdir(f"/proc/{runner}/fd")  # noqa: PTH208
        if "socket" in os.readlink(f"/proc/{runner}/fd/{name}")  # noqa: PTH115
    }
    (port,) = {
        int(words[1].partition(":")[2], 16)
        for words in map(str.split, table.splitlines())
        if words[3] == "0A" and words[9] in inodes
    }
    own, alone.port = alone.port, port
    try:
        status, _ = asked(alone, "POST", "/v1/chat/completions", {"messages": []})
        assert status == 401
        environment = open(f"/proc/{runner}/environ").read()  # noqa: SIM115, PTH123
        key = dict(word.partition("=")[::2] for word in environment.split("\0"))[KEY_VARIABLE]
        authorized = {"Authorization": f"Bearer {key}"}
        assert asked(alone, "GET", "/v1/models", **authorized)[0] == 200
        for path in ("/tools", "/cors-proxy", "/mcp", "/slots", "/metrics"):
            for method in ("GET", "POST"):
                body = "{}" if method == "POST" else None
                assert asked(alone, method, path, body, **authorized)[0] in (403, 404, 405, 501), path
        assert asked(alone, "POST", "/props", "{}", **authorized)[0] in (403, 404, 405, 501)
    finally:
        alone.port = own
    assert "SVC_" not in environment


def test_an_engine_that_is_missing_is_reported() -> None:
    code = "import sys; sys.modules['xllamacpp'] = None\n"
    code += "import runpy; sys.argv = ['llm.probe']; runpy.run_module('llm.probe', run_name='__main__')"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, env=clean_environment()
    )
    assert ended.returncode == 1


async def test_without_the_engine_the_error_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(tmp_path, "tiny", "say")
    pool = runners.Runners(runners.Models(tmp_path), lambda line: None)
    monkeypatch.setattr(runners, "find_spec", lambda name: None)
    with pytest.raises(runners.Refused, match=r"pip install 'svc\[llm\]'"):
        async with pool.lend(pool._models.find(parse("tiny")), None, 1.0):
            pass


def test_a_request_that_stops_within_its_body_does_not_hold_the_server(kept: Kept) -> None:
    lines = [socket.create_connection(("127.0.0.1", kept.port)) for _ in range(20)]
    for line in lines:
        line.sendall(b"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999\r\n\r\n{")
    assert said(kept) == SENTENCE
    for line in lines:
        line.close()
    with contextlib.closing(socket.create_connection(("127.0.0.1", kept.port))) as line:
        head = b"POST /api/generate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
        line.sendall(head)
        assert b" 413 " in line.recv(4096)
