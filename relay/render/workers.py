"""The processes that render. They are started when needed, and killed and replaced when a job takes too
long.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE, Process

import msgspec

from relay.render.jobs import Job, Rendered

SECONDS = 1.0  # for one job
PATIENCE = 1.0  # seconds for which a job waits for a free process
STARTS_WITHIN = 10.0  # seconds until a process that was started takes jobs
ANSWER_BYTES = 16 * 1024 * 1024


class RenderWorkers:
    """Manages at most `count` render processes. If a job takes too long, its result is empty. If no process
    becomes free in time, the job is not tried."""

    def __init__(self, count: int = 2) -> None:
        self._free = asyncio.Semaphore(count)
        self._idle: list[Process] = []
        self._decoder = msgspec.msgpack.Decoder(Rendered)

    async def render(self, job: Job) -> Rendered | None:
        """Do a job in a render process. Its result is empty if the job takes too long. Returns None if no
        process becomes free in time, or none can be started."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._free.acquire()
        except TimeoutError:
            return None
        try:
            return await self._answer(job)
        finally:
            self._free.release()

    async def close(self) -> None:
        """End the idle processes. Busy ones end after their jobs."""
        while self._idle:
            await _end(self._idle.pop())

    async def _answer(self, job: Job) -> Rendered | None:
        process = self._idle.pop() if self._idle else await _start()
        if process is None:
            return None
        try:
            async with asyncio.timeout(SECONDS):
                raw = await _ask(process, msgspec.msgpack.encode(job))
        except (TimeoutError, OSError, EOFError):
            await _end(process)
            return Rendered(None)
        except BaseException:  # who asked has gone: the process is in the middle of a job
            await _end(process)
            raise
        self._idle.append(process)
        return self._decoder.decode(raw)


async def _start() -> Process | None:
    """Start a render process, and wait until it is ready for jobs. So the time that it needs for loading does
    not count against its first job. Returns None if the machine cannot run another process now."""
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "relay.render.worker"), stdin=PIPE, stdout=PIPE, start_new_session=True
        )
    except OSError:
        return None
    try:
        async with asyncio.timeout(STARTS_WITHIN):
            await _read_message(process)
    except (TimeoutError, OSError, EOFError):
        await _end(process)
        return None
    except BaseException:
        await _end(process)
        raise
    return process


async def _ask(process: Process, job: bytes) -> bytes:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    process.stdin.write(len(job).to_bytes(4) + job)
    await process.stdin.drain()
    return await _read_message(process)


async def _read_message(process: Process) -> bytes:
    assert process.stdout is not None  # noqa: S101 - it is a pipe
    size = int.from_bytes(await process.stdout.readexactly(4))
    if size > ANSWER_BYTES:
        raise EOFError
    return await process.stdout.readexactly(size)


async def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    await process.wait()
