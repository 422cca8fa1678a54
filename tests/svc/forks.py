"""`svc` without the start of an interpreter: a process that has its code loaded forks for each command.

    python -m tests.svc.forks SOCKET

`ask` hands a command's words, environment, files and folder to that process. `program(folder, socket)` writes
the command `svc` for a shell, which does that, passes signals on and ends as the command ends.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import gc
import importlib
import marshal
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, NoReturn

ROOT = Path(__file__).resolve().parents[2]

# Without a module of Python's own: those that it names anyway would cost 20 ms a command.
PROGRAM = """#!{python} -IS
import _signal, _socket, marshal, posix, sys
line = _socket.socket(_socket.AF_UNIX)
line.connect({path!r})
files = [0, 1, 2, posix.open(".", posix.O_RDONLY)]
try:
    files.append(posix.open("/proc/self/ns/net", posix.O_RDONLY))
except OSError:
    pass
sent = b"".join(file.to_bytes(4, sys.byteorder) for file in files)
said = marshal.dumps((sys.argv[1:], posix.environ))
line.sendmsg([len(said).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, sent)])
line.sendall(said)
told = b""
def answer():
    global told
    while b"\\n" not in told:
        told += line.recv(64) or posix._exit(70)
    first, _, told = told.partition(b"\\n")
    return int(first)
process = answer()
for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
    _signal.signal(number, lambda number, _: posix.kill(process, number))
code = answer()
if code < 0:
    _signal.signal(-code, _signal.SIG_DFL)
    posix.kill(posix.getpid(), -code)
posix._exit(code)
"""


def program(folder: Path, path: Path) -> Path:
    made = folder / "svc"
    made.write_text(PROGRAM.format(python=sys.executable, path=str(path)))
    made.chmod(0o755)
    return made


def ask(
    path: Path, words: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
) -> socket.socket:
    """Start a command. `files`: its standard streams, its folder and, where it is another one, its network.
    The process's id is said first, its exit code at its end, a line each."""
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(path))
    said = marshal.dumps((list(words), {os.fsencode(k): os.fsencode(v) for k, v in environment.items()}))
    size = len(said).to_bytes(4, "big")
    line.sendmsg([size], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
    line.sendall(said)
    return line


@cache
def forking() -> Path:
    """The socket of such a process, which ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="forks"))
    command = [sys.executable, "-m", "tests.svc.forks", str(folder / "socket")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdout as told:
        assert told.readline() == b"ready\n"

    def end(stdin: IO[bytes] = process.stdin) -> None:
        stdin.close()
        process.wait(10)
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return folder / "socket"


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
    print("ready", flush=True)
    while listener in select.select([listener, 0], [], [])[0]:  # the other end of 0 is whoever started us
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
    files = array.array("i")
    size, ancillary, _, _ = line.recvmsg(4, socket.CMSG_SPACE(5 * files.itemsize))
    files.frombytes(ancillary[0][2])
    words, given = marshal.loads(line.makefile("rb").read(int.from_bytes(size, "big")))
    environment = {os.fsdecode(name): os.fsdecode(value) for name, value in given.items()}
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


def _enter(network: int) -> None:
    """Be in this network from now on."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    if not os.path.sameopenfile(own, network) and ctypes.CDLL(None, use_errno=True).setns(network, 0):
        raise OSError(ctypes.get_errno(), "svc does not come into the network of its shell")
    os.close(own)


def _run(words: list[str], environment: dict[str, str], files: list[int]) -> NoReturn:
    try:
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        os.fchdir(files[3])
        if len(files) > 4:
            _enter(files[4])
        for file in files:
            os.close(file)
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.argv = ["svc", *words]
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - for good
        from svc.__main__ import main

        main()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)


if __name__ == "__main__":
    load()
    gc.freeze()
    serve(sys.argv[1])
