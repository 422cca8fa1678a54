"""A real relay beside the tests, and machines that talk to it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from svc.cmd.frame.app import run
from tests import buckets, databases
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
QUIET = {
    "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
    "NO_COLOR": "1",
    # No test asks a registry of the internet; nothing listens on port 9.
    "SVC_LLM_REGISTRIES": "registry.ollama.ai=http://127.0.0.1:9 hf.co=http://127.0.0.1:9",
}


def clean_environment(**settings: str) -> dict[str, str]:
    """This process's environment without anything of svc's, and `settings`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    return {**kept, **QUIET, "PYTHONPATH": str(ROOT), **settings}


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a development relay with a process of its own. It limits no rates: hundreds of tests
    make an account from one address, and would wait for each other."""
    data = tmp_path_factory.mktemp("relay")
    with (data / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "relay", "serve", "--dev", "--port", "0", "--data", str(data / "data")],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env={
                **os.environ,
                **databases.variables(data),
                **buckets.variables(data),
                "TR_RATE_LIMITS": "off",
            },
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "listening on " in line, (data / "log").read_text()[-3000:]
        yield line.split("listening on ")[1].strip()
        process.terminate()
        process.wait(PATIENCE)


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Svc = Callable[..., Answer]


@cache
def held_port() -> socket.socket:
    """A socket with a port, so that no command starts a local LLM server or finds a person's own."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held


def llm_environment(folder: Path) -> dict[str, str]:
    """A cache of models of its own, and a port that is held."""
    return {"SVC_LLM_HOME": str(folder), "SVC_LLM_PORT": str(held_port().getsockname()[1])}


@pytest.fixture
def svc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Svc:
    """Run commands in this process, in a pipe, as a fresh machine in an empty folder."""
    for name in list(os.environ):
        if name.startswith("SVC_"):
            monkeypatch.delenv(name)
    person = (
        tmp_path / "person"
    )  # what a command lets git keep stays out of the configuration of whoever tests
    person.mkdir()
    own = {"SVC_HOME": str(tmp_path / "home"), "HOME": str(person), **llm_environment(tmp_path / "llm")}
    for name, value in {**QUIET, **own}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def call(*words: str) -> Answer:
        capsys.readouterr()
        code = run(list(words))
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return call


@pytest.fixture
def alice(svc: Svc, node: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Svc:
    """The same, signed in to the node under a handle of this test's own."""
    monkeypatch.setenv("SVC_SERVER", node)
    handle = "t-" + "".join(c if c.isalnum() else "-" for c in request.node.name.lower())[:40].strip("-")
    assert svc("login", "--device-key", "--handle", handle).code == 0
    monkeypatch.setenv("TEST_HANDLE", handle)
    return svc
