"""`svc app …`: the server first, then the missing models, then the app; and nothing that outlives it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localstore.models import leases, server
from localstore.models.names import parse
from localstore.models.store import Models
from svc.flows.llm.talk import Server
from tests.llm import tiny
from tests.llm.conftest import add, alive, free_port
from tests.patience import until
from tests.svc.conftest import Svc, clean_environment
from tests.svc.flows.models.test_registry import Registry

SHOW = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
STAY = "import time; print('up', flush=True); time.sleep(600)"
SERVE = (
    "import http.server, sys; print('up', flush=True); "
    "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)"
    ".serve_forever()"
)


class Desk:
    """A user with a cache, a port and folders of apps; each command is a process."""

    def __init__(self, base: Path) -> None:
        self.base, self.port, self.cache = base, free_port(), base / "cache"
        self.more: dict[str, str] = {}
        self.apps: list[str] = []

    def begin(self, *words: str, **more: str) -> subprocess.Popen[str]:
        own = {"SVC_HOME": str(self.base / "home"), "SVC_LLM_HOME": str(self.cache)}
        return subprocess.Popen(
            [sys.executable, "-m", "svc", *words],
            env=clean_environment(**{**own, "SVC_LLM_PORT": str(self.port), **self.more, **more}),
            cwd=self.base,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **more: str) -> tuple[int, str, str]:
        """(exit code, stdout, stderr)"""
        process = self.begin(*words, **more)
        out, err = process.communicate(timeout=180)
        return process.returncode, out, err

    def ok(self, *words: str, **more: str) -> str:
        code, out, err = self.run(*words, **more)
        assert code == 0, (words, out, err)
        return out

    def app(self, name: str, program: str, *words: str, **manifest: Any) -> str:
        """The path of a new folder with an app."""
        folder = self.base / name
        folder.mkdir()
        launch = {"command": [sys.executable, "-c", program, *words], **manifest.pop("launch", {})}
        (folder / ".svc.yaml").write_text(json.dumps({"kind": "app", **manifest, "launch": launch}))
        self.apps.append(name)
        return str(folder)

    def state(self, id: str) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.ok("app", "status", id, "--json"))
        return state

    def keeper(self) -> int | None:
        running = server.running(self.cache / str(self.port))
        return running.pid if running is not None else None


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    place = Desk(tmp_path)
    add(place.cache, "tiny", "say")
    yield place
    for name in place.apps:
        place.run("app", "stop", name)
    keeper = place.keeper()
    place.run("llm", "stop")
    until(lambda: keeper is None or not alive(keeper), "the keeper ended")


def test_two_apps_share_one_server_whose_address_they_get(desk: Desk) -> None:
    for name in ("one", "two"):
        desk.app(name, SHOW, "{llm.url}", "{llm.host}:{llm.port}", "{model}", "{other}", models=["tiny"])
        more = {"SVC_TOKEN": "svct2_secret", "OWN": "kept"}
        code, out, err = desk.run("app", "launch", name, "--yes", **more)
        assert code == 0, err
        words, variables = json.loads(out)
        url = f"http://127.0.0.1:{desk.port}"
        assert words == [url, f"127.0.0.1:{desk.port}", "tiny", "{other}"]
        assert variables["OLLAMA_HOST"] == f"127.0.0.1:{desk.port}"
        assert variables["OPENAI_BASE_URL"] == f"{url}/v1"
        assert "SVC_TOKEN" not in variables
        assert variables["OWN"] == "kept"
    desk.app("three", STAY, models=["tiny"])
    desk.app("four", STAY, models=["tiny"])
    keeper = desk.keeper()
    assert keeper is not None
    for name in ("three", "four"):
        desk.ok("app", "launch", name, "--detach", "--yes")
    assert desk.keeper() == keeper
    assert len(leases.list_leases(desk.cache / str(desk.port))) == 2
    assert desk.state("three")["model"] == "tiny"


def test_three_apps_of_three_homes_share_the_servers_of_two_ports(desk: Desk) -> None:
    other = free_port()
    ports = {"one": desk.port, "two": desk.port, "three": other}
    homes = {name: str(desk.base / f"home of {name}") for name in ports}
    folders = {port: desk.cache / str(port) for port in (desk.port, other)}
    for name, port in ports.items():
        desk.app(name, STAY, "{llm.url}", models=["tiny"], ollama_port_override=port)
    try:
        launches = [
            desk.begin("app", "launch", name, "--detach", "--yes", SVC_HOME=home)
            for name, home in homes.items()
        ]
        for launch in launches:
            _, err = launch.communicate(timeout=180)
            assert launch.returncode == 0, err
        assert [len(leases.list_leases(folder)) for folder in folders.values()] == [2, 1]
        keepers = [server.running(folder) for folder in folders.values()]
        assert len({keeper.pid for keeper in keepers if keeper is not None}) == 2
        states = {
            name: json.loads(desk.ok("app", "status", name, "--json", SVC_HOME=home))
            for name, home in homes.items()
        }
        assert {name: state["llm"] for name, state in states.items()} == {
            name: f"http://127.0.0.1:{port}" for name, port in ports.items()
        }
        for name, home in homes.items():
            assert json.loads(desk.ok("app", "list", "--json", "id", SVC_HOME=home)) == [{"id": name}]

        os.kill(states["one"]["supervisor"], signal.SIGKILL)
        until(lambda: len(leases.list_leases(folders[desk.port])) == 1, "the lease of the killed app ended")
        body = {"model": "tiny", "prompt": "Hi", "stream": False}
        for port in folders:
            assert Server(port).post("/api/generate", body)["response"] == "".join(tiny.SENTENCE)
    finally:
        for name, home in homes.items():
            desk.run("app", "stop", name, SVC_HOME=home)
        last = server.running(folders[other])
        desk.run("llm", "stop", "--port", str(other))
        until(lambda: last is None or not alive(last.pid), "the keeper of the other port ended")
    assert [leases.list_leases(folder) for folder in folders.values()] == [[], []]


def test_an_app_without_models_starts_no_server(desk: Desk) -> None:
    desk.app("plain", SHOW, launch={"env": {"MINE": "1"}})
    _, variables = json.loads(desk.ok("app", "launch", "plain", "--yes"))
    assert variables["MINE"] == "1"
    assert "OLLAMA_HOST" not in variables
    assert desk.keeper() is None


def test_the_port_of_the_manifest_is_the_server_s(desk: Desk) -> None:
    desk.port = free_port()
    name = desk.app("own-port", SHOW, "{llm.port}", models=["tiny"], ollama_port_override=desk.port)
    words, _ = json.loads(desk.ok("app", "launch", name, "--yes", SVC_LLM_PORT="1"))
    assert words == [str(desk.port)]
    assert desk.keeper() is not None


def test_what_an_app_runs_is_shown_and_asked_about_once(desk: Desk) -> None:
    folder = Path(desk.app("ask", "print('ran')"))
    code, out, err = desk.run("app", "launch", "ask")
    assert (code, out) == (2, "")
    assert "would run:" in err
    assert "print(" in err
    assert desk.ok("app", "launch", "ask", "--yes") == "ran\n"
    assert desk.ok("app", "launch", "ask") == "ran\n"
    assert json.loads(desk.ok("app", "manifest", "ask", "--json", "allowed"))["allowed"] is True
    text = (folder / ".svc.yaml").read_text()
    (folder / ".svc.yaml").write_text(text.replace("ran", "changed"))
    assert desk.run("app", "launch", "ask")[0] == 2
    assert desk.run("app", "restart", "ask")[0] == 2
    (folder / ".svc.yaml").write_text(text)
    folder.rename(desk.base / "moved")
    assert desk.run("app", "launch", "moved")[0] == 2, "another folder is another app"
    folder.mkdir()
    (folder / ".svc.yaml").write_text(text)
    assert desk.run("app", "launch", "ask")[0] == 2, "another folder at the same path is another app"


def test_the_command_is_shown_on_one_line(desk: Desk) -> None:
    desk.app("lines", "print('ran')\n\nsvc: lines would run: true")
    code, _, err = desk.run("app", "launch", "lines")
    assert (code, ")\\x0a\\x0asvc: lines" in err) == (2, True), err


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a folder to another user")
def test_an_app_of_another_user_is_asked_about_each_time(desk: Desk) -> None:
    os.chown(desk.app("theirs", "print('ran')"), 65534, 65534)
    assert desk.ok("app", "launch", "theirs", "--yes") == "ran\n"
    assert desk.run("app", "launch", "theirs")[0] == 2


@pytest.mark.parametrize(
    ("typed", "told"), [("~nosuch/x", "no app"), ("./" + "a" * 300, "no app"), ("./b\udcff", "is not UTF-8")]
)
def test_a_folder_that_cannot_be_is_refused(desk: Desk, typed: str, told: str) -> None:
    (desk.base / "b\udcff").mkdir()
    code, _, err = desk.run("app", "launch", typed, "--yes")
    assert (code in (1, 2), told in err, "Traceback" in err) == (True, True, False), err


def test_the_port_of_an_app_is_that_of_its_own_folder(desk: Desk) -> None:
    (desk.base / ".svc.yaml").write_text("ollama_port_override: 1234\n")
    desk.app("ported", STAY)  # the folder above it is the one in which commands run
    shown = json.loads(desk.ok("app", "manifest", "ported", "--json", "port", SVC_LLM_PORT=""))
    assert shown == {"port": 11434}


def test_an_app_killed_keeps_nothing_alive(desk: Desk) -> None:
    child = "import os, subprocess, sys; subprocess.Popen(['sleep', '600']); " + STAY
    desk.app("killed", child, models=["tiny"])
    desk.ok("app", "launch", "killed", "--detach", "--yes")
    state = desk.state("killed")
    assert state["state"] == "running"
    group = state["pid"]
    until(lambda: len(_of_group(group)) >= 2, "the app has started its own")
    os.kill(group, signal.SIGKILL)
    until(lambda: not alive(state["supervisor"]), "its supervisor ended")
    until(lambda: not _of_group(group), "what it started ended")
    assert leases.list_leases(desk.cache / str(desk.port)) == []
    state = desk.state("killed")
    assert (state["state"], state["code"], state["pid"]) == ("ended", 137, None)


def test_the_workers_of_an_app_may_end_what_they_do(desk: Desk) -> None:
    worker = (
        "import os, pathlib, signal, time\n"
        "def finish(*_):\n"
        "    while os.getppid() == parent: time.sleep(0.01)\n"
        "    time.sleep(0.3)\n"
        "    pathlib.Path('finished').touch()\n"
        "    os._exit(0)\n"
        "parent = os.getppid()\n"
        "signal.signal(signal.SIGTERM, finish)\n"
        "pathlib.Path('ready').touch()\n"
        "time.sleep(600)\n"
    )
    program = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); " + STAY
    folder = Path(desk.app("working", program, worker))
    desk.ok("app", "launch", "working", "--detach", "--yes")
    until((folder / "ready").exists, "the worker is there")
    desk.ok("app", "stop", "working")
    assert (folder / "finished").exists()


def test_a_supervisor_killed_takes_its_app_with_it(desk: Desk) -> None:
    desk.app("left", STAY, models=["tiny"])
    desk.ok("app", "launch", "left", "--detach", "--yes")
    state = desk.state("left")
    os.kill(state["supervisor"], signal.SIGKILL)
    until(lambda: not alive(state["pid"]), "the app ended")
    until(lambda: not leases.list_leases(desk.cache / str(desk.port)), "its lease ended")
    assert desk.state("left")["state"] == "stopped"
    stubborn = (
        "import pathlib, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"pathlib.Path('ignores').touch(); {STAY}"
    )
    folder = Path(desk.app("stubborn", stubborn))
    desk.ok("app", "launch", "stubborn", "--detach", "--yes")
    until((folder / "ignores").exists, "it ignores SIGTERM")
    state = desk.state("stubborn")
    os.kill(state["supervisor"], signal.SIGKILL)
    until(lambda: not alive(state["supervisor"]), "the supervisor ended")
    assert alive(state["pid"])
    desk.ok("app", "stop", "stubborn")
    until(lambda: not alive(state["pid"]), "the app was ended by the next command")


def test_launch_stop_restart_and_logs(desk: Desk) -> None:
    port = free_port()
    page = f"http://127.0.0.1:{port}/"
    desk.app("page", SERVE, str(port), launch={"ready": {"http": page, "seconds": 100}})
    assert desk.run("app", "open", "page")[0] == 2
    assert desk.ok("app", "launch", "page", "--detach", "--yes") == "page\n"
    state = desk.state("page")
    assert (state["state"], state["page"]) == ("running", page)
    assert json.loads(desk.ok("app", "open", "page", "--json")) == {"url": page}
    code, _, err = desk.run("app", "launch", "page")
    assert (code, "runs already" in err) == (0, True)
    desk.ok("app", "restart", "page")
    assert desk.state("page")["pid"] not in (None, state["pid"])
    assert not alive(state["pid"])
    assert desk.ok("app", "logs", "page").count("up\n") == 2
    assert desk.ok("app", "logs", "page", "-n", "0") == ""
    desk.ok("app", "stop", "page")
    assert desk.state("page")["state"] == "stopped"
    rows = json.loads(desk.ok("app", "list", "--json", "id,state"))
    assert rows == [{"id": "page", "state": "stopped"}]
    desk.ok("app", "uninstall", "page", "--yes")
    code, _, err = desk.run("app", "uninstall", "./page")
    assert (code, "no app is recorded in" in err) == (1, True)
    assert json.loads(desk.ok("app", "list", "--json", "id")) == []
    assert (desk.base / "page/.svc.yaml").exists(), "a folder of the user's own stays"


def test_an_app_that_is_never_ready_or_does_not_start_is_an_error(desk: Desk) -> None:
    port = free_port()
    desk.app("never", STAY, launch={"ready": {"port": port, "seconds": 1}})
    for words in (["--detach"], []):
        code, _, err = desk.run("app", "launch", "never", "--yes", *words)
        assert (code, f"was not ready within 1 seconds: port {port} does not answer" in err) == (1, True), err
    assert desk.state("never")["state"] == "failed"
    desk.app("early", "raise SystemExit(3)", launch={"ready": {"port": port}})
    code, _, err = desk.run("app", "launch", "early", "--yes", "--detach")
    assert (code, "ended with 3 before it was ready; see: svc app logs early" in err) == (1, True), err
    desk.app("no-program", STAY, launch={"command": ["no-such-program"]})
    code, _, err = desk.run("app", "launch", "no-program", "--yes")
    assert (code, "no-such-program cannot be started: No such file" in err) == (1, True), err
    desk.app("code", "raise SystemExit(7)")
    assert desk.run("app", "launch", "code", "--yes")[0] == 7
    with socket.create_server(("127.0.0.1", 0)) as other:
        held = other.getsockname()[1]
        desk.app("held", STAY, launch={"ready": {"port": held}})
        code, _, err = desk.run("app", "launch", "held", "--yes")
        assert (code, f"port {held}, at which the app becomes ready, is held by" in err) == (1, True), err
        code, out, err = desk.run("app", "check", "held")
        assert (code, "is held by" in out) == (1, True), err


def test_check_and_manifest_tell_what_is_missing(desk: Desk) -> None:
    desk.app("checked", STAY, models=["tiny", "absent/model"], ollama_tag="q8_0")
    checks = json.loads(desk.ok("app", "check", "checked", "--json"))
    rows = {(row["check"], row["detail"].partition(" ")[0]): row["state"] for row in checks}
    assert rows["model", "tiny"] == "ok"
    assert "tiny is used if tiny:q8_0 cannot be pulled" in [row["detail"] for row in checks]
    assert rows["model", "absent/model"] == "missing"
    assert rows["model", "tiny:q8_0"] == "missing"
    shown = json.loads(desk.ok("app", "manifest", "checked", "--json"))
    assert (shown["models"], shown["ollama_tag"], shown["allowed"]) == (
        ["tiny", "absent/model"],
        "q8_0",
        False,
    )
    (desk.base / "checked/.svc.yaml").write_text("launch: {command: python}\n")
    code, out, _ = desk.run("app", "check", "checked")
    assert (code, "launch.command must be a list" in out) == (1, True)
    (desk.base / "empty").mkdir()
    code, _, err = desk.run("app", "launch", "empty")
    assert (code, "cannot be read" in err) == (1, True)
    code, _, err = desk.run("app", "launch")  # what this folder has
    assert (code, ".svc.yaml, which says how an app is launched, cannot be read" in err) == (1, True), err
    code, _, err = desk.run("app", "launch", "nowhere")
    assert (code, "svc app install OWNER/NAME" in err) == (1, True)


@pytest.fixture
def hub(desk: Desk) -> Iterator[Registry]:
    """A registry with the models `small` and `small:big`."""
    registry = Registry()
    for number, tag in enumerate(("latest", "big")):
        data = tiny.model(pad=number + 1)
        registry.put(f"/v2/library/small/manifests/{tag}", registry.blob(data, "model"))
    threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True).start()
    desk.more["SVC_LLM_REGISTRIES"] = f"registry.ollama.ai={registry.origin}"
    yield registry
    registry.shutdown()
    registry.server_close()


def test_only_missing_models_are_pulled_before_the_app_starts(desk: Desk, hub: Registry) -> None:
    look = (
        "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + '/api/tags').read().decode())"
    )
    desk.app("needs", look, "{llm.url}", models=["tiny", "small"])
    out = desk.ok("app", "launch", "needs", "--yes")
    assert {"tiny:latest", "small:latest"} == {model["name"] for model in json.loads(out)["models"]}
    pulled = [path for path, _ in hub.asked if "/manifests/" in path]
    assert pulled == ["/v2/library/small/manifests/latest"]
    desk.ok("app", "launch", "needs")
    assert [path for path, _ in hub.asked if "/manifests/" in path] == pulled


def test_the_preferred_variant_is_used_if_it_is_there_and_else_the_default(desk: Desk, hub: Registry) -> None:
    desk.app("prefers", SHOW, "{model}", models=["small"], ollama_tag="small:big")
    words, _ = json.loads(desk.ok("app", "launch", "prefers", "--yes"))
    assert words == ["small:big"]
    desk.app("misses", SHOW, "{model}", models=["small"], ollama_tag="huge")
    code, out, err = desk.run("app", "launch", "misses", "--yes")
    assert (code, json.loads(out)[0]) == (0, ["small"])
    assert "has no model 'small:huge'; the default of the pack is used: small" in err
    desk.app("lost", SHOW, models=["nope"])
    code, _, err = desk.run("app", "launch", "lost", "--yes", "--detach")
    assert (code, "has no model 'nope'" in err) == (1, True), err


def test_a_manifest_chooses_no_server(desk: Desk) -> None:
    desk.app("far", SHOW, models=["other.example/bob/model"])
    for signed_in in ({"SVC_SERVER": "http://127.0.0.1:1"}, {}):
        code, _, err = desk.run("app", "launch", "far", "--yes", **signed_in)
        assert (code, "a model of another server" in err) == (2, True), err
    assert not [model for model in Models(desk.cache).all() if model.name.host]
    assert Models(desk.cache).find(parse("tiny"))


class _Unwell(BaseHTTPRequestHandler):
    """A server that is not healthy at first: it answers 503 until it was asked three times."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        healthy = self.asked > 3
        body = b'{"models": [{"name": "tiny:latest"}]}' if healthy else b"{}"
        self.send_response(200 if healthy else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def test_the_app_starts_once_the_server_is_healthy(desk: Desk) -> None:
    with ThreadingHTTPServer(("127.0.0.1", desk.port), _Unwell) as unwell:
        threading.Thread(target=unwell.serve_forever, args=(0.05,), daemon=True).start()
        desk.app("waits", SHOW, models=["tiny"])
        desk.ok("app", "launch", "waits", "--yes")
        assert _Unwell.asked > 3
        unwell.shutdown()
    assert desk.keeper() is None


def _of_group(group: int) -> list[int]:
    """The living processes of a group."""
    members = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.append(int(file.parent.name))
    return members


def test_an_app_is_installed_launched_updated_and_uninstalled(alice: Svc, tmp_path: Path) -> None:
    full = f"{os.environ['TEST_HANDLE']}/tool"
    assert alice("repo", "create", "tool", "--kind", "app").code == 0
    assert alice("repo", "clone", full, "tool").code == 0
    Path("tool/.svc.yaml").write_text("kind: app\n")
    with contextlib.chdir("tool"):
        assert alice("push", "-m", "First").code == 0
    refused = alice("app", "install", full)
    assert (refused.code, "has no launch:" in refused.err) == (1, True), refused.err
    assert alice("app", "list", "--json", "id").out.strip() == "[]"
    Path("tool/.svc.yaml").write_text("kind: app\nlaunch: {command: [./run]}\n")
    Path("tool/run").write_text("#!/bin/sh\nexit 5\n")
    Path("tool/run").chmod(0o755)
    with contextlib.chdir("tool"):
        assert alice("push", "-m", "Second").code == 0
    assert alice("app", "install", full).code == 0
    assert "is installed already" in alice("app", "install", full).err
    (row,) = json.loads(alice("app", "list", "--json", "id,state,folder").out)
    assert (row["id"], row["state"]) == (full, "stopped")
    assert (Path(row["folder"]) / "run").read_text() == "#!/bin/sh\nexit 5\n"
    assert alice("app", "launch", full).code == 2, "it is asked about"
    Path("tool/.svc.yaml").write_text("kind: app\nlaunch: {command: [sh, run]}\n")
    with contextlib.chdir("tool"):
        assert alice("push", "-m", "Third").code == 0
    updated = json.loads(alice("app", "update", full, "--json").out)
    assert (updated["changed"], updated["asks"]) == (1, True)
    assert alice("app", "launch", "tool", "--yes", "--detach").code == 1, "it ended with 5"
    assert json.loads(alice("app", "status", full, "--json", "state,code").out) == {
        "state": "ended",
        "code": 5,
    }
    assert alice("app", "uninstall", full).code == 2
    assert alice("app", "uninstall", full, "--yes").code == 0
    assert not Path(row["folder"]).exists()
    assert Path("tool/run").exists()


def test_an_app_whose_removal_was_cut_is_installed_whole(alice: Svc) -> None:
    full = f"{os.environ['TEST_HANDLE']}/cut"
    assert alice("repo", "create", "cut", "--kind", "app").code == 0
    assert alice("repo", "clone", full, "cut").code == 0
    Path("cut/.svc.yaml").write_text("kind: app\nlaunch: {command: [./run]}\n")
    Path("cut/run").write_text("#!/bin/sh\nexit 5\n")
    with contextlib.chdir("cut"):
        assert alice("push", "-m", "First").code == 0
    assert alice("app", "install", full).code == 0
    (row,) = json.loads(alice("app", "list", "--json", "folder").out)
    files = Path(row["folder"])
    assert alice("app", "uninstall", full, "--yes").code == 0
    assert alice("app", "install", full).code == 0
    assert (files / "run").exists()
    (files / "run").unlink()  # as what was killed leaves it
    (files.parent / "app.json").unlink()
    again = alice("app", "install", full)
    assert again.code == 0, again.err
    assert (files / "run").read_text() == "#!/bin/sh\nexit 5\n"
    assert alice("app", "uninstall", full, "--yes").code == 0
    assert not list(files.parent.parent.iterdir())
