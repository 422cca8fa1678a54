"""`invoke`: every command once with good and once with bad arguments, and what the socket survives."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.agent.place import socket_path
from localstore.agent.server import HungUp
from localstore.agent.talk import AgentSilent, ApiResponse, Conversation, Folder, Request
from localstore.core.errors import UsageError
from localstore.home import Home
from localstore.models.names import parse
from localstore.models.place import llm_home
from localstore.models.store import Models
from svc.agent.invoke import bus
from svc.agent.invoke.programs import SVC, Programs
from svc.agent.invoke.table import ABSENT, COMMANDS, SVC_COMMANDS
from svc.agent.start import start
from svc.api import Api, connect
from svc.cmd.frame.invoked import GLOBAL, Body, answer, parameters, system_commands
from svc.flows.models import background
from svc.flows.models.background import Download
from svc.http.session import Sessions
from tests.llm import tiny
from tests.patience import PATIENCE, until
from tests.svc.agent.invocations import ROWS
from tests.svc.conftest import clean_environment, llm_environment
from tests.svc.flows.models.test_registry import Registry

CATEGORIES = {"Sync": 8, "Auth": 5, "Hardware": 6, "Gallery": 4, "Launcher": 12, "Models": 10}
LACKING = {"Auth": 2}  # what this version lacks


class Here(Programs):
    """Carries out commands of svc in this process, as the process does that an agent starts."""

    def run(self, module: str, words: list[str], given: bytes, folder: Path | None, hung_up: HungUp) -> bytes:
        if module != SVC:
            return super().run(module, words, given, folder, hung_up)
        return msgspec.json.encode(answer(msgspec.json.decode(given, type=Body), os.environ, Path.cwd()))


class Machine:
    """Stands for an agent that watches nothing (`svc.agent.invoke.table.Host`)."""

    def __init__(self, base: Path, name: str, server: str) -> None:
        self.home, self.folder, self.server = Home(base / f"home-{name}"), base / name, server
        self.folder.mkdir()
        self.programs: Programs = Here(self.home.root)

    def states(self) -> list[Folder]:
        return []

    def pause(self, folder: str | None, paused: bool) -> list[Folder]:
        return []

    def reader(self, origin: str | None) -> Api:
        return connect(origin or self.server, Sessions(self.home.root))

    def invoke(self, name: str, args: dict[str, Any]) -> ApiResponse[Any]:
        request = Request("invoke", str(self.folder), command=name, args=args, server=self.server)
        return bus.invoke(self, request, lambda: False)


@pytest.fixture
def machines(tmp_path: Path, node: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Machine]:
    for name in [one for one in os.environ if one.startswith("SVC_")]:
        monkeypatch.delenv(name)
    own = {"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"), **llm_environment(tmp_path / "llm")}
    for name, value in clean_environment(**own).items():
        monkeypatch.setenv(name, value)
    return {name: Machine(tmp_path, name, node) for name in ("ann", "bob")}


def every() -> set[str]:
    return {*COMMANDS, *SVC_COMMANDS, *system_commands()}


def bad(name: str) -> list[dict[str, Any]]:
    """Arguments that no command of this name takes: one that it lacks, and one of a wrong kind."""
    found: list[dict[str, Any]] = [{"no_such_argument": 1}]
    if name in COMMANDS:
        return [*found, *({one: {"a": []}} for one in COMMANDS[name].args.__struct_fields__)]
    path = SVC_COMMANDS[name][1] if name in SVC_COMMANDS else system_commands()[name]
    return [*found, *({one: {"a": []}} for one in parameters(path))]


def test_every_command_answers_in_one_wrapper(
    machines: dict[str, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, str] = {}
    left, wrong = every(), []
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for row in ROWS:
        machine = machines[row.who]
        monkeypatch.chdir(machine.folder)
        monkeypatch.setenv("SVC_HOME", str(machine.home.root))
        if row.before is not None:
            row.before(machine.folder)
        for args in bad(row.name) if row.name in left else ():
            refused = wrapped(machine.invoke(row.name, args))
            if refused["success"] or refused["error"]["code"] != UsageError.code:
                wrong.append((row.name, args, refused))
        args = {name: filled(value, kept) for name, value in row.args.items()}
        done = wrapped(machine.invoke(row.name, args))
        until = time.monotonic() + PATIENCE
        while row.keep and done["data"] == [] and time.monotonic() < until:  # the relay tells the owner later
            time.sleep(0.05)
            done = wrapped(machine.invoke(row.name, args))
        left.discard(row.name)
        if row.refused and not done["success"] and done["error"]["code"] == row.refused:
            continue
        if not done["success"]:
            wrong.append((row.name, args, done["error"]))
        elif row.keep:
            member, _, name = row.keep.partition(" as ")
            data = done["data"]
            one = next(iter(data), {}) if isinstance(data, list) else data
            kept[name or member] = str(one.get(member, f"no {member} in {sorted(one)}"))
    assert wrong == [], wrong
    assert left == set()


def filled(value: Any, kept: dict[str, str]) -> Any:
    """An argument with the words that earlier rows kept."""
    if isinstance(value, list):
        return [filled(one, kept) for one in value]
    return kept.get(value[1:]) if str(value)[:1] == "$" else value


def wrapped(response: ApiResponse[Any]) -> dict[str, Any]:
    """The response as it travels. Every one has the same shape."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(response))
    assert list(found) == ["success", "data", "error"]
    if found["success"]:
        assert found["error"] is None
    else:
        assert found["data"] is None
        assert list(found["error"]) == ["code", "message"]
        assert found["error"]["message"]
    return found


def test_the_categories_have_the_commands_of_the_specification() -> None:
    named = [*(one.category for one in COMMANDS.values()), *(one[0] for one in SVC_COMMANDS.values())]
    assert {name: named.count(name) for name in named} == CATEGORIES
    lacking = list(ABSENT.values())
    assert {name: lacking.count(name) for name in lacking} == LACKING
    assert not set(ABSENT) & every()
    assert len(every()) == len(COMMANDS) + len(SVC_COMMANDS) + len(system_commands())


def test_no_parameter_of_a_command_hides_a_global_one() -> None:
    for path in system_commands().values():
        assert not set(parameters(path)) & set(GLOBAL), path


def test_what_is_absent_says_so(machines: dict[str, Machine]) -> None:
    for name in ABSENT:
        assert wrapped(machines["ann"].invoke(name, {}))["error"]["code"] == "not_in_this_version"
    for name in ("no_such", "../x", "", "watch list", "invoke", "x" * 10_000):
        assert wrapped(machines["ann"].invoke(name, {}))["error"]["code"] == "unknown_command"


@pytest.mark.parametrize(("name", "args"), [("watch", {}), ("watcher_start", {"foreground": True})])
def test_what_never_ends_is_refused(machines: dict[str, Machine], name: str, args: dict[str, Any]) -> None:
    assert "goes on until it is ended" in wrapped(machines["ann"].invoke(name, args))["error"]["message"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"\x89PNG\r\n\x1a\n" + b"\xff" * 4096, b"GIF89a"],
)
def test_what_is_no_image_is_refused(machines: dict[str, Machine], raw: bytes) -> None:
    ann = machines["ann"]
    (ann.folder / "x.png").write_bytes(raw)
    said = ann.programs.run("svc.agent.invoke.picture", ["thumbnail", "64"], raw, None, lambda: False)
    assert b"error" in said


def test_a_picture_of_too_many_pixels_is_refused(machines: dict[str, Machine]) -> None:
    from PIL import Image

    file = machines["ann"].folder / "wide.png"
    Image.new("1", (12_000, 12_000)).save(file)
    run = machines["ann"].programs.run
    said = run("svc.agent.invoke.picture", ["thumbnail", "64"], file.read_bytes(), None, lambda: False)
    assert b"DecompressionBomb" in said


# --- over the socket


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("invoke"))
    start(home).close()
    yield home
    with Conversation(home.root) as talk:
        talk.ask(Request("stop"))


def svc(home: Home, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "svc", *words],
        env=clean_environment(SVC_HOME=str(home.root)),
        cwd=home.root,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_prints_the_wrapper(agent: Home) -> None:
    done = svc(agent, "invoke", "version")
    assert done.returncode == 0
    assert json.loads(done.stdout)["data"]["version"]
    refused = svc(agent, "invoke", "disk_info", "--args", '{"path": 5}')
    assert refused.returncode == 1
    assert json.loads(refused.stdout)["error"]["code"] == "usage"
    assert svc(agent, "invoke", "disk_info", "--args", "[]").returncode == 2
    listed = json.loads(svc(agent, "invoke", "--list", "--json").stdout)
    assert {one["name"] for one in listed} == every()


def test_who_hangs_up_ends_what_they_asked_for(agent: Home) -> None:
    """A command that waits for the network, which never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with Conversation(agent.root) as talk:
            talk._socket.sendall(
                msgspec.json.encode(
                    Request("invoke", command="repo_view", args={"repository": "a/b"}, server=server)
                )
                + b"\n"
            )
            waiting, _ = silent.accept()
        with waiting:
            waiting.settimeout(60)
            while waiting.recv(1 << 16):
                pass  # until the process is ended


def test_floods_and_halves_disturb_nobody(agent: Home) -> None:
    def raw() -> socket.socket:
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(30)
        with socket_path(agent.root) as path:
            peer.connect(path)
        return peer

    half = raw()
    half.sendall(b'{"do":"invoke","command":"cpu_info","args":{')
    with raw() as flood:
        line = msgspec.json.encode(Request("invoke", command="cpu_info")) + b"\n"
        flood.sendall(line * 1_000)
        answers = flood.makefile("rb")
        assert all(json.loads(answers.readline())["success"] for _ in range(1_000))
        flood.sendall(b'{"do":"invoke","command":"cpu_info","args":' + b"[" * 100_000 + b"\n")
        assert json.loads(answers.readline())["code"] == "invalid"
    for _ in range(500):
        with suppress(BlockingIOError):  # more than the system lets wait
            raw().close()
    half.close()
    until = time.monotonic() + PATIENCE
    while True:  # connections that were dropped in the flood make room again
        try:
            with Conversation(agent.root) as talk:
                assert talk.invoke("cpu_info", {}).success
            return
        except AgentSilent:
            assert time.monotonic() < until
            time.sleep(0.05)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_uid_is_hung_up_on_even_with_the_socket_open_to_all(tmp_path_factory: Any) -> None:
    root = Path("/tmp") / f"svc-uid-{os.getpid()}"
    home = Home(root)
    start(home).close()
    try:
        root.chmod(0o755)
        (root / "agent.sock").chmod(0o666)
        code = (
            "import os, socket; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
            f"s.connect('{root}/agent.sock'); s.sendall(b'{{\"do\":\"about\"}}\\n'); print(s.recv(1))"
        )
        said = subprocess.run(
            [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False, cwd="/"
        )
        assert said.stdout.strip() == "b''" or "Reset" in said.stderr or "Broken" in said.stderr, said
    finally:
        with Conversation(root) as talk:
            talk.ask(Request("stop"))
        # the agent removes its own files while it ends
        until(lambda: shutil.rmtree(root, ignore_errors=True) or not root.exists(), "the home is gone")


def test_a_model_is_downloaded_by_a_process_that_goes_on(machines: dict[str, Machine]) -> None:
    ann, registry = machines["ann"], Registry()
    registry.put("/v2/library/small/manifests/latest", registry.blob(tiny.model(), "model"))
    threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True).start()
    os.environ["SVC_LLM_REGISTRIES"] = f"registry.ollama.ai={registry.origin}"
    try:
        assert ann.invoke("model_download", {"name": "small"}).success

        def state(name: str) -> str:
            data = wrapped(ann.invoke("model_download", {"name": name}))["data"]
            return str(data["state"])

        until(lambda: state("small") == "done", "the model is here")
        verified = wrapped(ann.invoke("model_verify", {"name": "small"}))["data"]
        assert verified == {"name": "small:latest", "intact": True, "damaged": []}
        assert ann.invoke("model_download", {"name": "lost"}).success
        models = Models(llm_home(os.environ))
        until(
            lambda: background.state_of(ann.home.root, parse("lost"), models).state == "failed",
            "the pull failed",
        )
        cancelled = wrapped(ann.invoke("model_cancel", {"name": "lost"}))["data"]
        assert (cancelled["state"], cancelled["pid"]) == ("failed", None)
        assert "has no model 'lost'" in cancelled["detail"]
    finally:
        del os.environ["SVC_LLM_REGISTRIES"]
        registry.shutdown()
        registry.server_close()


def test_a_pull_does_not_get_the_token_of_who_started_the_agent(
    machines: dict[str, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, name = machines["ann"], parse("ann/absent")
    monkeypatch.setenv("SVC_TOKEN", "no token")

    def download() -> Download:
        return background.state_of(ann.home.root, name, Models(llm_home()))

    ann.invoke("model_download", {"name": "ann/absent"})
    until(lambda: download().pid is None, "the pull ended")
    assert download().state == "failed"
    assert "SVC_TOKEN" not in str(download().detail)
