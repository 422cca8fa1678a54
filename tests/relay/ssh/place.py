"""A relay that answers ssh, machines of people, and OpenSSH's client."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pyte

from tests.patience import PATIENCE, until
from tests.svc.conftest import ROOT, clean_environment

UIDS = 2_000_200_000 + os.getpid() % 700_000 * 200  # a relay ends every process of its uids


def opened() -> list[str]:
    """Words before a command that give other uids the interpreter, where it is in somebody's home: a name
    space of mounts in which that home has nothing but the interpreter."""
    prefix = Path(sys.base_prefix).resolve()
    blocked = next((one for one in reversed(prefix.parents) if not one.stat().st_mode & 1), None)
    if blocked is None:
        return []
    script = (
        f"set -e; d=$(mktemp -d); mount --bind {shlex.quote(str(prefix))} $d; "
        f"mount -t tmpfs -o mode=755 none {shlex.quote(str(blocked))}; mkdir -p {shlex.quote(str(prefix))}; "
        f'mount --bind $d {shlex.quote(str(prefix))}; umount $d; rmdir $d; exec "$@"'
    )
    return ["unshare", "-m", "bash", "-c", script, "bash"]


@dataclass
class Relay:
    """`folder`: homes and keys of everybody; `temporary`: where the relay makes the folders of sessions."""

    url: str
    port: int
    data: Path
    folder: Path
    temporary: Path
    process: subprocess.Popen[str]
    uids: str

    def svc(self, who: str, *words: str, agent: Path | None = None) -> str:
        """What a command prints on the machine of `who`."""
        done = self.run(who, *words, agent=agent)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, who: str, *words: str, agent: Path | None = None) -> subprocess.CompletedProcess[str]:
        settings = {"SVC_HOME": str(self.folder / who), "SVC_SERVER": self.url}
        if agent is not None:
            settings["SSH_AUTH_SOCK"] = str(agent)
        return subprocess.run(
            [sys.executable, "-m", "svc", *words],
            env=clean_environment(**settings),
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def key(self, name: str, kind: str = "ed25519") -> Path:
        """A new key pair."""
        path = self.folder / f"key-{name}"
        if not path.exists():
            subprocess.run(
                ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", name, "-f", str(path)], check=True
            )
        return path

    def register(self, who: str, key: Path) -> str:
        """Register the key with the account of `who`, by an agent. Returns its id."""
        with self.agent(key) as socket:
            return self.svc(who, "auth", "device", "ssh", "--jq", ".id", agent=socket).strip()

    @contextmanager
    def agent(
        self, *keys: Path, options: tuple[str, ...] = (), environment: dict[str, str] | None = None
    ) -> Iterator[Path]:
        """The socket of an ssh-agent that holds these keys. `options` of ssh-add."""
        folder = Path(tempfile.mkdtemp(dir="/tmp"))
        place = folder / "agent"
        words = ["ssh-agent", "-D", "-a", str(place)]
        agent = subprocess.Popen(
            words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
        )
        try:
            until(lambda: _answers(place), "the agent answers")
            for key in keys:
                add = ["ssh-add", "-q", *options, str(key)]
                subprocess.run(add, env={"SSH_AUTH_SOCK": str(place)}, check=True)
            yield place
        finally:
            agent.terminate()
            agent.wait()
            shutil.rmtree(folder, ignore_errors=True)

    def words(self, key: Path, *words: str, user: str = "", options: tuple[str, ...] = ()) -> list[str]:
        fixed = {
            "UserKnownHostsFile": str(self.folder / "known"),
            "StrictHostKeyChecking": "accept-new",
            "LogLevel": "ERROR",
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "BatchMode": "yes",
        }
        found = [f"-o{name}={value}" for name, value in fixed.items()]
        place = f"{user}@127.0.0.1" if user else "127.0.0.1"
        # of an option that is given twice, ssh takes the first
        return ["ssh", "-F", "none", *options, *found, "-i", str(key), "-p", str(self.port), place, *words]

    def ssh(
        self, key: Path, *words: str, user: str = "", options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(key, *words, user=user, options=options),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
        )

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.temporary)
        Path(f"/run/svc-ssh-{self.uids}.lock").unlink(missing_ok=True)


def start(folder: Path, **settings: str) -> Relay:
    """A development relay with SSH."""
    data = folder / "data"
    temporary = Path(tempfile.mkdtemp(dir="/tmp"))  # other users reach it
    temporary.chmod(0o755)
    fixed = {"TR_SSH_PORT": "0", "TR_SSH_UIDS": str(UIDS), "TR_RATE_LIMITS": "off", "TMPDIR": str(temporary)}
    environment = clean_environment(**{**fixed, **settings})
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [
                *opened(),
                sys.executable,
                "-m",
                "relay",
                "serve",
                "--dev",
                "--port",
                "0",
                "--data",
                str(data),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=ROOT,
            env=environment,
        )
    assert process.stdout is not None
    lines = []
    port = None
    while port is None and (line := process.stdout.readline()):
        lines.append(line)
        port = re.search(r"port (\d+), host key SHA256:", line)
    if port is None:
        process.wait(PATIENCE)
        shutil.rmtree(temporary)
        raise AssertionError((folder / "log").read_text()[-3000:])
    return Relay(
        lines[0].split("listening on ")[1].strip(),
        int(port[1]),
        data,
        folder,
        temporary,
        process,
        environment["TR_SSH_UIDS"],
    )


def _answers(place: Path) -> bool:
    """Whether a program takes connections at this socket: its file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as line:
        return line.connect_ex(str(place)) == 0


class Screen:
    """A program on a terminal of its own."""

    def __init__(self, words: list[str], columns: int = 80, rows: int = 24) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                _size(0, columns, rows)
                os.environ["TERM"] = "xterm-256color"
                os.execvp(words[0], words)
            finally:
                os._exit(1)
        self.code: int | None = None

    def until(self, text: str) -> None:
        """Wait until the screen shows this."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if text in "\n".join(self.screen.display):
                return
            assert self._read(), f"it ended: {self.raw[-2000:]!r}"
        raise AssertionError(f"{text!r} did not come: {self.screen.display}")

    def until_gone(self, text: str) -> None:
        """Wait until the screen does not show this."""
        end = time.monotonic() + PATIENCE
        while text in "\n".join(self.screen.display):
            assert time.monotonic() < end
            assert self._read()

    def until_wide(self, columns: int) -> None:
        """Wait until a line reaches behind this column."""
        end = time.monotonic() + PATIENCE
        while not any(len(line.rstrip()) > columns for line in self.screen.display):
            assert time.monotonic() < end
            assert self._read()

    def send(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        self.screen.resize(rows, columns)
        _size(self._fd, columns, rows)
        os.kill(self.pid, signal.SIGWINCH)

    def wait(self) -> int:
        """Read to the end. Returns the exit code."""
        end = time.monotonic() + PATIENCE
        while self._read():
            assert time.monotonic() < end, f"it goes on: {self.screen.display}"
        self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def close(self) -> None:
        if self.code is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def _read(self) -> bool:
        if not select.select([self._fd], [], [], 0.2)[0]:
            return True
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.raw += data
        self._stream.feed(data)
        return bool(data)


def _size(fd: int, columns: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
