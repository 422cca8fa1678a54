"""A real server with tiny real models, in processes of its own."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from localstore.core.times import rfc3339_now
from localstore.models import names, server
from localstore.models.intake import take_in
from localstore.models.store import Models, Record
from localstore.progress import silent
from svc.flows.llm.talk import Server, probe
from svc.flows.models.local import pull_file
from tests.llm import tiny
from tests.patience import until
from tests.svc.conftest import clean_environment


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def add(home: Path, name: str, mode: str, **how: object) -> None:
    """Put a model into the cache."""
    home.mkdir(parents=True, exist_ok=True)
    models = Models(home)
    file = tiny.write(home / "new.gguf", mode, **how)
    taken = take_in(models, file)
    file.unlink()
    models.put(names.parse(name), Record(model=taken.digest, modified_at=rfc3339_now()))


def add_kinds(home: Path) -> None:
    """Models that think, that see, and that have several files."""
    models = Models(home)
    add(home, "think", "think")
    file = tiny.write(home / "see.gguf")
    (home / "eye.gguf").write_bytes(tiny.projector())
    pull_file(models, file, "see", home / "eye.gguf", silent)
    pull_file(models, tiny.write_shards(home, 3, layers=2)[1], "shards", None, silent)
    for made in home.glob("*.gguf"):
        made.unlink()


class Kept:
    """A server with its keeper."""

    def __init__(
        self,
        home: Path,
        limit: int = resource.RLIM_INFINITY,
        program: Sequence[str] = ("-m", "llm"),
        **more: str,
    ) -> None:
        """`limit`: the largest file, in bytes, that the server may write. `program`: Python's words for the
        keeper. `more`: of its environment."""
        self.home, self.port = home, free_port()
        self.folder = home / str(self.port)
        self.folder.mkdir(parents=True)
        self.process = subprocess.Popen(
            [sys.executable, "-P", *program, str(self.port)],
            env=clean_environment(SVC_LLM_HOME=str(home), OMP_NUM_THREADS="1", **more),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )
        (self.folder / "stays").touch()
        until(lambda: probe(self.port) == "llm" or self.process.poll() is not None, "the server answers")
        assert self.process.poll() is None, self.log()
        self.url = f"http://127.0.0.1:{self.port}"
        self.talk = Server(self.port)

    def log(self) -> str:
        return (self.folder / server.LOG).read_text("utf-8", "replace")

    def below(self, pid: int | None = None) -> list[int]:
        """The processes that the keeper started, and those that they did."""
        found = []
        for task in Path(f"/proc/{pid or self.process.pid}/task").glob("*/children"):
            with suppress(OSError):
                for child in map(int, task.read_text().split()):
                    found += [child, *self.below(child)]
        return found

    def front(self) -> int:
        return self.below()[0]

    def runners(self) -> list[int]:
        return self.below()[1:]

    def close(self) -> None:
        """End it, and see that nothing of it is left."""
        left = [self.process.pid, *self.below()]
        self.process.terminate()
        self.process.wait(60)
        try:
            until(lambda: not any(map(alive, left)), "all of its processes ended")
        finally:
            for pid in filter(alive, left):
                os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def cpu_ticks(pid: int) -> int:
    """CPU time that a process has used, in ticks of the system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """A server that the tests of a process share."""
    home = tmp_path_factory.mktemp("llm")
    add(home, "tiny", "say")
    add(home, "loop", "loop", context=4096)
    add(home, "tool", "tool", context=2048)
    add_kinds(home)
    found = Kept(home)
    yield found
    found.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Kept]:
    """A server of this test's own, which it may kill."""
    add(tmp_path / "llm", "tiny", "say")
    add(tmp_path / "llm", "loop", "loop", context=4096)
    found = Kept(tmp_path / "llm")
    yield found
    found.close()
