"""Measures the app for many people over SSH at once: first paint, memory, and CPU of the relay and of the
confined processes.

    python -m scripts.bench.ssh [PEOPLE]

It needs root, or Landlock with scopes, and OpenSSH's client.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.relay.ssh.place import Screen, start

SHOWN = "alice/demo"


def _of(pid: int) -> tuple[float, float]:
    """(CPU seconds, MB of anonymous memory) of a process; (0, 0) if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0.0, 0.0
    memory = status.partition("RssAnon:")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds, int(memory[0]) / 1024 if memory else 0.0


def _find_confined_apps() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"svc.remote" in words and b"--try" not in words:
            found.append(int(path.parent.name))
    return found


def main() -> None:
    people = int(sys.argv[1]) if sys.argv[1:] else 50
    with tempfile.TemporaryDirectory(prefix="bench-ssh-") as folder:
        relay = start(Path(folder), TR_SSH_SESSIONS=str(people))
        screens: list[Screen] = []
        try:
            key = relay.key("alice")
            relay.svc("alice", "login", "--device-key", "--handle", "alice")
            relay.register("alice", key)
            relay.svc("alice", "repo", "create", "demo")
            alone = []
            for _ in range(5):
                began = time.monotonic()
                app = Screen(relay.words(key))
                app.until(SHOWN)
                alone.append(time.monotonic() - began)
                app.close()
                while _find_confined_apps():
                    time.sleep(0.1)
            cpu, memory = _of(relay.process.pid)
            began = time.monotonic()
            screens = [Screen(relay.words(key)) for _ in range(people)]
            paints = []
            for app in screens:
                app.until(SHOWN)
                paints.append(time.monotonic() - began)
            time.sleep(3)
            those = [_of(pid) for pid in _find_confined_apps()]
            after = _of(relay.process.pid)
            time.sleep(20)
            rest = sum(_of(pid)[0] for pid in _find_confined_apps()) - sum(one[0] for one in those)
            idle = _of(relay.process.pid)[0] - after[0]
            print(f"first paint alone: median {statistics.median(alone):.2f} s")
            print(f"{people} at once: the last is painted after {max(paints):.1f} s")
            seconds = statistics.median(one[0] for one in those)
            sizes = [one[1] for one in those]
            print(
                f"each: {seconds:.2f} s of CPU, {statistics.median(sizes):.0f} MB, at most {max(sizes):.0f}"
            )
            print(f"relay: {after[0] - cpu:.2f} s of CPU, {memory:.0f} -> {after[1]:.0f} MB")
            print(f"at rest, in 20 s: all of them {rest:.2f} s of CPU, the relay {idle:.2f} s")
        finally:
            for app in screens:
                app.close()
            relay.stop()


if __name__ == "__main__":
    main()
