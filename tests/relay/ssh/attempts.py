"""`python attempts.py FOLDER DATA PID OWN`: confines itself and tries what a confined process may not do.
Prints a JSON object: attempt → whether it worked. PID: a process of somebody else."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from svc.remote.confine import confine

NEW_USER = 0x10000000


def _clone() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_USER):
        raise OSError(ctypes.get_errno(), "unshare")


def _call(number: int, *arguments: Any) -> Callable[[], None]:
    def call() -> None:
        if ctypes.CDLL(None, use_errno=True).syscall(number, *arguments) < 0:
            raise OSError(ctypes.get_errno(), f"{number}")

    return call


def main() -> None:
    folder, data, pid, own = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "1"
    ours, _theirs = socket.socketpair()
    confine(folder, own)
    attempts: dict[str, Callable[[], Any]] = {
        "own file": lambda: (folder / "x").write_text("x"),
        "socketpair": socket.socketpair,
        "a library": lambda: __import__("calendar"),
        "python": lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True),
        "own limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
        "data folder": lambda: list(data.iterdir()),
        "data file": lambda: (data / "secret").read_text(),
        "passwd": lambda: Path("/etc/passwd").read_text(),
        "root": lambda: list(Path("/").iterdir()),
        "tmp": lambda: list(Path("/tmp").iterdir()),
        "write tmp": lambda: Path("/tmp/attempt-of-svc").write_text("x"),
        "environ of others": lambda: Path(f"/proc/{pid}/environ").read_bytes(),
        "own environ": lambda: Path("/proc/self/environ").read_bytes(),
        "memory of others": lambda: os.open(f"/proc/{pid}/mem", os.O_RDWR),
        "kill": lambda: os.kill(pid, signal.SIGCONT),
        "ptrace": _call(101, 16, pid, 0, 0),
        "limits of others": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, 64)),
        "priority of others": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
        "inet": lambda: socket.socket(socket.AF_INET),
        "inet6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
        "unix": lambda: socket.socket(socket.AF_UNIX),
        "netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "datagrams": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        "connect": lambda: ours.connect(b"\0any"),
        "io_uring": _call(425, 8, None),
        "user namespace": _clone,
        "clone of a namespace": _call(56, NEW_USER | signal.SIGCHLD, 0, 0, 0, 0),
        "keyring": _call(250, 0, -3, 0),
        "shell": lambda: subprocess.run(["/bin/sh", "-c", "true"], check=True),
        "own program": lambda: _own_program(folder),
        "core": lambda: resource.setrlimit(resource.RLIMIT_CORE, (1, 1)),
    }
    worked = {}
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, ValueError, subprocess.SubprocessError):
            worked[name] = False
        else:
            worked[name] = True
    print(json.dumps(worked))


def _own_program(folder: Path) -> None:
    path = folder / "program"
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o700)
    subprocess.run([str(path)], check=True)


if __name__ == "__main__":
    main()
