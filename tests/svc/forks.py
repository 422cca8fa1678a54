"""`svc` without the start of an interpreter: a process that has its code loaded forks for each command.

    python -m tests.svc.forks SOCKET

`program(folder, socket)` writes the command `svc` for a shell: it hands its terminal, folder, environment and
words to that process, passes signals on and ends as the command ends.
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PROGRAM = """#!{python} -IS
import array, json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({path!r})
files = array.array("i", [0, 1, 2, os.open(".", os.O_RDONLY)])
said = json.dumps([sys.argv[1:], dict(os.environ), os.getpid()]).encode("utf-8", "surrogateescape")
line.sendmsg([len(said).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
line.sendall(said)
answers = line.makefile()
process = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(process, number))
code = int(answers.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
os._exit(code)
"""


def program(folder: Path, path: Path) -> Path:
    made = folder / "svc"
    made.write_text(PROGRAM.format(python=sys.executable, path=str(path)))
    made.chmod(0o755)
    return made


@contextmanager
def forking(folder: Path) -> Iterator[Path]:
    """The socket of such a process, until the context is left."""
    path = folder / "forks"
    command = [sys.executable, "-m", "tests.svc.forks", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield path
        finally:
            process.terminate()


def load() -> None:
    """Import once what commands import when they run."""
    import svc.cmd
    import svc.flows

    for package in (svc, svc.cmd, svc.flows):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def serve(path: str) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("ready", flush=True)
    while True:
        line, _ = listener.accept()
        if os.fork():
            line.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            continue
        listener.close()
        _attend(line)


def _attend(line: socket.socket) -> None:
    """Fork the command, and tell the other end its process and how it ended."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    files = array.array("i")
    size, ancillary, _, _ = line.recvmsg(4, socket.CMSG_SPACE(4 * files.itemsize))
    files.frombytes(ancillary[0][2])
    words, environment, _ = json.loads(line.makefile("rb").read(int.from_bytes(size, "big")))
    process = os.fork()
    if process == 0:
        line.close()
        _run(words, environment, list(files))
    for file in (0, 1, 2, *files):
        os.close(file)
    line.sendall(b"%d\n" % process)
    _, status = os.waitpid(process, 0)
    line.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _run(words: list[str], environment: dict[str, str], files: list[int]) -> Any:
    try:
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        os.fchdir(files[3])
        for file in files:
            os.close(file)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["svc", *words]
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - for good
        from svc.__main__ import main

        main()
    finally:
        os._exit(70)


if __name__ == "__main__":
    load()
    gc.freeze()
    serve(sys.argv[1])
