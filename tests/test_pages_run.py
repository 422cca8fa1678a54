"""The commands of README's "Use it" run as they stand there, on two machines: two network namespaces with the
address that README names. Without root or `ip` the second address is one of the loopback range."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.svc import forks
from tests.svc.conftest import ROOT, clean_environment

README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide" / "getting-started.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ (.*?)(?:\s{2,}#.*)?$", re.MULTILINE)
NAMED = "192.168.1.10"  # the address in README


def blocks(page: Path, heading: str = "") -> list[list[str]]:
    """The commands of each console block, of one section or of all."""
    text = page.read_text("utf-8")
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [TYPED.findall(block) for block in BLOCK.findall(text)]


class Host:
    """A machine: a network of its own where that can be, a home and a shell."""

    def __init__(self, base: Path, name: str, network: str | None, *, forked: bool) -> None:
        """`forked`: its svc is a fork that has the code loaded already."""
        self.folder = base / name
        self.folder.mkdir()
        self.prefix = ["ip", "netns", "exec", network] if network else []
        self.environment = clean_environment(HOME=str(self.folder), SVC_HOME=str(self.folder / "svc-home"))
        real = Path(os.environ.get("VIRTUAL_ENV") or ROOT / ".venv")
        if not forked:
            (self.folder / ".venv").symlink_to(real)
            return
        tools = self.folder / ".venv" / "bin"
        tools.mkdir(parents=True)
        (tools / "activate").write_text(f'export PATH="{tools}:{real}/bin:$PATH"\n')
        forks.program(tools, forks.forking())

    def shell(self, lines: list[str]) -> str:
        """Type the lines into one shell that ends at the first failure; what was printed."""
        typed = [*self.prefix, "bash", "-ec", "\n".join(lines)]
        done = subprocess.run(
            typed, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, (lines, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def serve(self, lines: list[str]) -> subprocess.Popen[str]:
        """The same for a block that ends in a server; it listens now."""
        log = (self.folder / "relay.log").open("w")
        server = subprocess.Popen(
            [*self.prefix, "bash", "-ec", "\n".join([*lines[:-1], f"exec {lines[-1]}"])],
            cwd=self.folder, env=self.environment, stdout=log, stderr=log, text=True, start_new_session=True,
        )  # fmt: skip
        log.close()
        for _ in range(600):
            said = (self.folder / "relay.log").read_text()
            if "listening on" in said:
                return server
            assert server.poll() is None, said
            time.sleep(0.05)
        raise AssertionError(said)


def end(server: subprocess.Popen[str]) -> None:
    os.killpg(server.pid, signal.SIGTERM)
    server.wait(30)


def ip(*words: str) -> bool:
    return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0


def busy(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[Host, Host, str]]:
    """Two machines with svc as it is installed, and the first one's address for the second."""
    with two_hosts(tmp_path, forked=False) as found:
        yield found


@contextmanager
def two_hosts(tmp_path: Path, *, forked: bool) -> Iterator[tuple[Host, Host, str]]:
    first, second = f"svc-a-{os.getpid()}", f"svc-b-{os.getpid()}"
    made = os.geteuid() == 0 and shutil.which("ip") is not None and ip("netns", "add", first)
    try:
        if made and ip("netns", "add", second):
            a, b = f"sa{os.getpid()}", f"sb{os.getpid()}"
            assert ip("link", "add", a, "netns", first, "type", "veth", "peer", "name", b, "netns", second)
            for network, device, address in ((first, a, NAMED), (second, b, "192.168.1.11")):
                assert ip("-n", network, "addr", "add", f"{address}/24", "dev", device)
                assert ip("-n", network, "link", "set", device, "up")
                assert ip("-n", network, "link", "set", "lo", "up")
            yield (
                Host(tmp_path, "first", first, forked=forked),
                Host(tmp_path, "second", second, forked=forked),
                NAMED,
            )
        elif busy("127.0.0.1", 8080):
            pytest.skip("no network namespaces here, and the port that the pages name is taken")
        else:
            yield (
                Host(tmp_path, "first", None, forked=forked),
                Host(tmp_path, "second", None, forked=forked),
                "127.0.0.2",
            )
    finally:
        for network in (first, second):
            if made:
                ip("netns", "del", network)


def project(host: Host) -> None:
    folder = host.folder / "my-project"
    folder.mkdir()
    (folder / "README.md").write_text("# My project\n")
    (folder / "logo.bin").write_bytes(b"\0logo")


def test_readme_on_two_machines(hosts: tuple[Host, Host, str]) -> None:
    first, second, address = hosts
    serve, use, serve_again, code, join = [
        [line.replace(NAMED, address) for line in block] for block in blocks(README, "Use it")
    ]
    project(first)
    assert serve[-1].startswith("relay serve")
    server = first.serve(serve)
    try:
        said = first.shell([serve[0], *use])
        assert "Sealed" in said
    finally:
        end(server)
    server = first.serve([serve[0], *serve_again])
    try:
        told = first.shell([serve[0], "cd my-project", *code])
        pair = re.search(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}-[A-Z0-9]{4}\b", told)
        assert pair is not None, told
        assert f"--server http://{address}:8080" in told
        second.shell([line.replace("CODE", pair[0]) for line in join])
        copy = second.folder / "my-project"
        assert (copy / "logo.bin").read_bytes() == b"\0logo"
        (copy / "README.md").write_text("# My project\n\nFrom the second machine.\n")
        activate = "source .venv/bin/activate"
        second.shell([activate, "cd my-project", 'svc push -m "From the second machine"'])
        first.shell([activate, "cd my-project", "svc pull"])
        assert "second machine" in (first.folder / "my-project/README.md").read_text()
    finally:
        end(server)


def test_getting_started(hosts: tuple[Host, Host, str]) -> None:
    first, _, _ = hosts
    serve, *rest = blocks(GUIDE)
    project(first)
    activate = "source .venv/bin/activate"
    server = first.serve([activate, *serve])
    try:
        change = 'echo "changed" >> README.md'
        *before, last = rest
        lines = [line for block in before for line in block] + [last[0], change, *last[1:]]
        said = first.shell([activate, *lines])
        assert said.count("Sealed") == 2
    finally:
        end(server)


def test_the_example_of_svcignore_is_right_when_copied() -> None:
    from localstore.core.ignore import matcher

    page = (ROOT / "docs/guide/working-copies.md").read_text("utf-8")
    example = page.partition("\n```\n")[2].partition("```")[0]
    files = {".svcignore": example, ".gitignore": "!*.parquet\n"}

    def out(path: str) -> bool:
        found = matcher.explain(path, False, lambda folder: {} if folder else files)
        return found is not None and found.ignored

    assert [out(path) for path in ("dist/app.js", "build/keep.txt", "build/x", "a.parquet")] == [
        False, False, True, True,
    ]  # fmt: skip
