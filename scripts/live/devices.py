"""Devices of one account, each with its own SVC_HOME, folder and agent; and a relay for them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 120.0


class Device:
    """A device, with its own SVC_HOME, folder and agent."""

    def __init__(self, base: Path, name: str, server: str) -> None:
        self.name, self.home, self.folder = name, base / f"home-{name}", base / name
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("SVC_")},
            "SVC_HOME": str(self.home),
            "SVC_SERVER": server,
            "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
            "PYTHONPATH": str(ROOT),
            "NO_COLOR": "1",
        }

    def run(self, *words: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run `svc WORDS` on this device, in its folder or in the folder `where`."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "svc", *words],
            cwd=where or (self.folder if self.folder.exists() else self.folder.parent),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def svc(self, *words: str, where: Path | None = None, fails: bool = False) -> str:
        """Run `svc WORDS` on this device. Returns its output. If the command fails, SystemExit is raised;
        with `fails`, it may fail."""
        done = self.run(*words, where=where)
        if done.returncode and not fails:
            raise SystemExit(
                f"{self.name}: svc {' '.join(words)} ended with {done.returncode}: {done.stderr}"
            )
        return done.stdout

    def state(self) -> dict[str, Any]:
        """The state of the folder, as `svc watch list` prints it; {} if it is not watched."""
        found = json.loads(self.svc("watch", "list", "--json", "folder,light,queued,why,people"))
        return found[0] if found else {}

    def wait_for(self, light: str, seconds: float = WAIT_SECONDS) -> float:
        """Wait until the folder has this light and nothing is queued. Returns the seconds that passed. Raises
        SystemExit if it takes too long."""
        began = time.monotonic()
        while time.monotonic() < began + seconds:
            state = self.state()
            if state.get("light") == light and not state.get("queued"):
                return time.monotonic() - began
            time.sleep(0.1)
        raise SystemExit(f"{self.name}: not {light} within {seconds:g} s: {self.state()}")

    def wait_for_queue(self, length: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait until the folder is offline and `length` edits are queued. Raises SystemExit if it takes too
        long."""
        until = time.monotonic() + seconds
        while (state := self.state()).get("light") != "offline" or state.get("queued") != length:
            if time.monotonic() > until:
                raise SystemExit(f"{self.name}: not {length} edits waiting within {seconds:g} s: {state}")
            time.sleep(0.1)

    def agent_pid(self) -> int | None:
        """The process id of the device's agent; None if none runs."""
        try:
            words = (self.home / "agent.lock").read_text().split()
        except FileNotFoundError:
            return None
        return int(words[0]) if words else None

    def end_agent(self, number: int = 15) -> None:
        """Send the agent the signal `number`, and wait until the agent ends."""
        pid = self.agent_pid()
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            until = time.monotonic() + 20
            while time.monotonic() < until and Path(f"/proc/{pid}").exists():
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                    return
                time.sleep(0.01)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A context in which the folder is watched. At its end the agent is ended."""
        self.svc("watch", "--detach")
        try:
            yield
        finally:
            self.end_agent()


def pair_devices(base: Path, server: str, fill: Callable[[Path], object]) -> tuple[Device, Device]:
    """Make two devices of one account with the same repository. `fill`: writes the first files into a
    folder."""
    first, second = Device(base, "first", server), Device(base, "second", server)
    base.mkdir(parents=True, exist_ok=True)
    first.svc("login", "--device-key", "--handle", "ann")
    first.svc("repo", "create", "app")
    first.folder.mkdir()
    fill(first.folder)
    first.svc("repo", "init", "ann/app")
    first.svc("push", "-m", "One")
    join(first, second)
    return first, second


def join(known: Device, new: Device) -> None:
    """Sign the new device in to the account of the known one, and clone the repository there."""
    code = known.svc("auth", "device", "add").split()[0]
    new.svc("login", "--device-key", "--handle", "ann", "--pair", code)
    new.svc("repo", "clone", "ann/app", str(new.folder))


class Relay:
    """A development relay that can be killed and started again at the same address. `variables`: its
    additional environment variables, such as those for a database outside of its data folder."""

    def __init__(self, base: Path, variables: Mapping[str, str] | None = None) -> None:
        self._base, self._port, self.server = base, 0, ""
        self._variables = dict(variables or {})
        self._process: subprocess.Popen[str] | None = None
        base.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        words = ["serve", "--dev", "--port", str(self._port), "--data", str(self._base / "data")]
        with (self._base / "log").open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "relay", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT), **self._variables},
                start_new_session=True,
            )
        line = self._process.stdout.readline() if self._process.stdout else ""
        if "listening on " not in line:
            raise SystemExit(f"the relay did not start: {(self._base / 'log').read_text()[-2000:]}")
        self.server = line.split("listening on ")[1].strip()
        self._port = int(self.server.rpartition(":")[2])

    def kill(self) -> None:
        """Kill the relay and its signer at once, by killing the process group that `start` made."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None
