"""Runs git processes, each of which can read only its repository. They have an environment of their own, no
configuration but the relay's, no hooks and little memory. They use only processor time that other processes
leave.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, TypeVar

from localstore.core.model.limits import GIB
from relay.base import git
from relay.base.logs import logger
from relay.base.threads import to_end

T = TypeVar("T")
MEMORY = 1 * GIB  # of one process, beside the files that it maps
NICE = 10
# Readers of packs come and go by the hundred: starting and ending them must not wait for what builds a pack,
# nor hold the threads that all of the relay shares.
_START = ThreadPoolExecutor(max_workers=2, thread_name_prefix="git-start")
_BUILD = ThreadPoolExecutor(max_workers=2, thread_name_prefix="git-build")
_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.bigFileThreshold": "8m",  # larger files are neither kept in memory nor compared
    "core.packedGitWindowSize": "16m",
    "core.packedGitLimit": "256m",
    "pack.threads": "1",
    "pack.windowMemory": "64m",
    "pack.deltaCacheSize": "32m",
    "safe.directory": "*",  # the data folder may belong to another user of the operator's
    "uploadpack.allowFilter": "true",
    "uploadpack.allowReachableSHA1InWant": "true",
    "uploadpack.allowAnySHA1InWant": "false",
}


def environment_of(protocol: str = "") -> dict[str, str]:
    """The complete environment of a git process. `protocol`: GIT_PROTOCOL as the reader sent it."""
    return {
        "PATH": os.defpath if git.find_program() is None else str(Path(str(git.find_program())).parent),
        "HOME": "/nonexistent",
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PROTOCOL": protocol,
    }


def start(
    *words: str, protocol: str = "", locks: tuple[int, ...] = (), **files: Any
) -> subprocess.Popen[bytes]:
    """Start git with these arguments, in a process group of its own. `locks`: descriptors that git keeps
    open; if git survives the relay, it still holds their locks. `files`: passed to Popen."""
    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    process = subprocess.Popen(
        [git.find_program() or "git", *settings, *words],
        env=environment_of(protocol),
        cwd="/",
        process_group=0,
        pass_fds=locks,
        **{"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **files},
    )
    with contextlib.suppress(OSError):  # it has ended already
        os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        if sys.platform == "linux":
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (MEMORY, MEMORY))
    return process


def end(process: subprocess.Popen[bytes]) -> int:
    """Kill a process, if it still runs, with its children. Returns its exit code."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


def run(*words: str, seconds: float, locks: tuple[int, ...] = ()) -> None:
    """Run git and wait until it ends. `locks`: descriptors that git keeps open, so that it holds their locks.
    Raises OSError if git fails, or if it is killed after `seconds`."""
    process = start(*words, locks=locks, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        logger().error("git took too long", words=list(words), seconds=seconds)
        raise OSError(f"git {' '.join(words[:2])} took more than {seconds:g} seconds") from None
    finally:
        end(process)
        assert process.stderr is not None  # noqa: S101  # it is a pipe
        process.stderr.close()
    if process.returncode != 0:
        logger().error(
            "git failed",
            words=list(words),
            code=process.returncode,
            said=stderr[-2000:].decode("utf-8", "replace"),
        )
        raise OSError(f"git {' '.join(words[:2])} ended with {process.returncode}")


async def in_start(call: Callable[..., T], *arguments: object) -> T:
    """Run a short call, such as the start or end of a process, on the pool of threads for short calls."""
    return await asyncio.get_running_loop().run_in_executor(_START, call, *arguments)


async def in_build(call: Callable[..., T], *arguments: object) -> T:
    """Run a step of building on the pool of threads for building. Returns only after the step has ended, even
    if the task is cancelled."""
    return await to_end(asyncio.get_running_loop().run_in_executor(_BUILD, call, *arguments))


class ObjectReader:
    """Reads objects of a bare repository, through one process that runs until `close`."""

    def __init__(self, folder: Path, locks: tuple[int, ...] = ()) -> None:
        self._process = start(
            "-C",
            str(folder),
            "cat-file",
            "--batch",
            locks=locks,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def read(self, object_id: bytes) -> bytes | None:
        """The bytes of an object; None if the repository lacks it. Raises OSError if the process has
        ended."""
        requests, answers = self._pipes
        requests.write(object_id.hex().encode() + b"\n")
        requests.flush()
        line = answers.readline()
        if line.endswith(b" missing\n"):
            return None
        if not line:
            raise OSError("git cat-file ended")
        size = int(line.split()[2])
        data = answers.read(size + 1)
        if len(data) != size + 1:
            raise OSError("git cat-file ended")
        return data[:-1]

    def close(self) -> None:
        for pipe in self._pipes:
            with contextlib.suppress(OSError):
                pipe.close()
        end(self._process)

    @property
    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        process = self._process
        assert process.stdin is not None  # noqa: S101  # both are pipes
        assert process.stdout is not None  # noqa: S101
        return process.stdin, process.stdout
