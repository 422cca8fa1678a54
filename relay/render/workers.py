"""The processes that render: started when needed, killed and replaced when a job takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from relay.render.jobs import Job, Rendered

SECONDS = 1.0  # for one job
PATIENCE = 1.0  # seconds for which a job waits for a free process
STARTS_WITHIN = 10.0  # seconds of a process that has just been started, with its first job
ANSWER_BYTES = 16 * 1024 * 1024


class Workers:
    """At most `count` processes. A job fails if no process becomes free in time, or if it takes too long."""

    def __init__(self, count: int = 2) -> None:
        self._free = asyncio.Semaphore(count)
        self._idle: list[Process] = []
        self._decoder = msgspec.msgpack.Decoder(Rendered)

    async def render(self, job: Job) -> Rendered:
        """The result of a job; empty if no process is free in time."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._free.acquire()
        except TimeoutError:
            return Rendered(None)
        try:
            return await self._answer(job)
        finally:
            self._free.release()

    async def close(self) -> None:
        """End the idle processes; busy ones end with their jobs."""
        while self._idle:
            await _end(self._idle.pop())

    async def _answer(self, job: Job) -> Rendered:
        try:
            process, seconds = (self._idle.pop(), SECONDS) if self._idle else (await _start(), STARTS_WITHIN)
        except OSError:  # the machine has no room for another process now
            return Rendered(None)
        try:
            async with asyncio.timeout(seconds):
                raw = await _ask(process, msgspec.msgpack.encode(job))
        except (TimeoutError, OSError, EOFError):
            await _end(process)
            return Rendered(None)
        except BaseException:  # who asked has gone: the process is in the middle of a job
            await _end(process)
            raise
        self._idle.append(process)
        return self._decoder.decode(raw)


async def _start() -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "relay.render.worker"), stdin=PIPE, stdout=PIPE, start_new_session=True
    )


async def _ask(process: Process, job: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101 - both are pipes
    process.stdin.write(len(job).to_bytes(4) + job)
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(4))
    if size > ANSWER_BYTES:
        raise EOFError
    return await process.stdout.readexactly(size)


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
