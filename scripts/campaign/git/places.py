"""Tools of the campaigns with git: a relay on a data folder, a git program, and checks of clones."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.relay.conftest import Account, Relay, Signed

ROOT = Path(__file__).resolve().parents[3]

VARIABLES = {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_REPO_MERGE_ENABLED": "on"}


class CheckFailed(Exception):
    """Raised if a check fails; the message names the check."""


class GitProgram:
    """A git program that uses none of this machine's settings and never prompts."""

    def __init__(self, home: Path, program: str = "git") -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.program = program
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            **{
                f"GIT_{who}_{what}": "t@example.org"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }

    def try_command(self, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.words(*words), env=self.environment, capture_output=True)

    def words(self, *words: str | Path) -> list[str]:
        """The command line of a git command, for `Popen`."""
        return [self.program, *(str(word) for word in words)]

    def __call__(self, *words: str | Path, stdin: bytes = b"") -> str:
        """Run a git command, with `stdin` as its standard input. Returns its output. Raises CheckFailed if
        the command fails."""
        done = subprocess.run(self.words(*words), env=self.environment, input=stdin, capture_output=True)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise CheckFailed(f"git {' '.join(map(str, words))} ended with {done.returncode}: {said}")
        return done.stdout.decode("utf-8", "surrogateescape")


@contextlib.contextmanager
def relay_on(folder: Path, **variables: str) -> Iterator[Relay]:
    """A context that runs a relay in this process, with its data in `folder`."""
    relay = Relay(folder, {**VARIABLES, **variables})
    relay.start()
    try:
        yield relay
    finally:
        relay.stop()


class RestartableRelay:
    """A relay in its own process on a data folder. Its address stays the same when it is started again.
    `close` ends it, `kill` kills it with SIGKILL."""

    def __init__(self, folder: Path, program: str = "git") -> None:
        """`program`: the git that the relay uses."""
        self.folder, self._port = folder, 0
        path = f"{Path(program).parent}:{os.environ['PATH']}" if "/" in program else os.environ["PATH"]
        mine = {"PYTHONPATH": str(ROOT), "DATABASE_URL": f"sqlite:///{folder / 'relay.db'}", "PATH": path}
        outside = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
        self._environment = {**outside, **VARIABLES, **mine}
        self.start()

    def start(self) -> None:
        words = ["serve", "--dev", "--port", str(self._port), "--data", str(self.folder)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "relay", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=self._environment,
        )
        line = self.process.stdout.readline() if self.process.stdout else ""
        require("listening on " in line, f"the relay starts, and says so instead of {line!r}")
        self.url = line.split("listening on ")[1].strip()
        self._port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self._wait()

    def close(self) -> None:
        self.process.terminate()
        self._wait()

    def client(self, who: Account) -> httpx.Client:
        """An HTTP client that signs its requests as the account `who`, which already exists on this relay's
        data folder."""
        signed = Signed(who, self.url.removeprefix("http://"))
        return httpx.Client(base_url=self.url, auth=signed, trust_env=False, timeout=120.0)

    def _wait(self) -> None:
        self.process.wait(60)
        if self.process.stdout:
            self.process.stdout.close()


def history(git: GitProgram, clone: Path) -> str:
    """The refs of a clone, and the id, tree and parents of each commit, as text. Raises CheckFailed if `git
    fsck --strict` finds a fault."""
    checked = git.try_command("-C", clone, "fsck", "--strict", "--full", "--no-progress")
    if checked.returncode or checked.stdout or checked.stderr:
        raise CheckFailed(f"git fsck --strict of {clone}: {(checked.stdout + checked.stderr).decode()}")
    refs = git("-C", clone, "for-each-ref", "--format=%(objectname) %(refname)")
    commits = git("-C", clone, "log", "--all", "--topo-order", "--format=%H %T %P")
    return f"{refs}\n{commits}"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def require(holds: bool, what: str) -> None:
    """Raise CheckFailed with the message `what` unless `holds`."""
    if not holds:
        raise CheckFailed(what)
