"""Loads models into runners, which are processes, lends runners to requests, and ends runners that are not
needed.

A runner that is answering is never ended to load another model; the other model waits. A runner that dies or
hangs is dropped, and the next request loads its model again.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from importlib.util import find_spec
from typing import TypeVar

import msgspec

from llm.environment import clean_environment
from llm.problem import Died, Refused
from llm.task import KEY_VARIABLE, Started, Task
from llm.upstream import Answer, Broken, ask
from localstore.models.errors import ModelChanged
from localstore.models.gguf import Header
from localstore.models.store import Installed, Models
from svc.console.table import size
from svc.flows.llm import memory

T = TypeVar("T")
LOAD_SECONDS = 600.0
END_SECONDS = 5.0
BATCH = 512  # of a model that generates: how much is still read for a client that has left
SILENT_SECONDS = 45.0  # without a byte of an answer until the runner is asked whether it lives
HEALTH_SECONDS = 10.0
INSTALL = "install the engine: pip install 'svc[llm]'"


def embeds_only(header: Header) -> bool:
    """Whether the model can only make embeddings. The header of such a model names a way of pooling, by which
    the embeddings of tokens are joined to one."""
    return f"{header.architecture}.pooling_type" in header.fields


class Runner:
    """The process of one loaded model. `plan`: how the model was loaded. `busy`: number of requests that use
    it now. `keep`: seconds for which the model stays loaded without requests."""

    def __init__(self, installed: Installed, plan: memory.Plan, context: int | None) -> None:
        self.installed, self.plan, self._asked = installed, plan, context
        self.name = str(installed.name)
        self.busy = 0
        self.keep = 0.0
        self.idle_since = time.time()
        self.expiry: asyncio.TimerHandle | None = None
        self.load_ns = 0
        self.port = 0
        self.key = secrets.token_urlsafe(24)
        self.process: asyncio.subprocess.Process | None = None
        self.heard = time.monotonic()
        self.hung = self._broken = False
        self.watchdog: asyncio.Task[None] | None = None

    @property
    def batch(self) -> int:
        """How many tokens of a prompt the engine reads at once. A text for an embedding cannot be longer."""
        return (
            self.plan.context if embeds_only(self.installed.about.header) else min(BATCH, self.plan.context)
        )

    @property
    def ended(self) -> bool:
        if self._broken or self.process is None or self.process.returncode is not None:
            return True
        # Its end is reported a little later than it comes.
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # its end is being reported
            return True

    def serves(self, installed: Installed, context: int | None) -> bool:
        """Whether this runner can answer a request for this model. `context`: the length of context that the
        request needs, in tokens; None for any length."""
        if self.ended or installed.record != self.installed.record:
            return False
        if context is None or context == self._asked:
            return True
        return min(context, memory.trained_context(installed.about.header)) == self.plan.context

    @property
    def expires_at(self) -> float:
        """When the model will be unloaded, in Unix seconds; infinite if it stays loaded."""
        return (
            math.inf if self.keep == math.inf else (time.time() if self.busy else self.idle_since) + self.keep
        )

    async def ask(self, method: str, path: str, body: bytes = b"") -> Answer:
        """Send a request to the engine, and return its answer, whose body is not read yet. Raises Refused if
        the runner dies or hangs."""
        try:
            answer = await ask(self.port, self.key, method, path, body)
        except Broken:
            raise self.mark_dead() from None
        self.heard = time.monotonic()
        return answer

    async def pieces(self, answer: Answer) -> AsyncIterator[bytes]:
        """Yields the body of an answer as it arrives. Raises Refused if the runner dies or hangs."""
        try:
            async for piece in answer.pieces():
                self.heard = time.monotonic()
                yield piece
        except Broken:
            raise self.mark_dead() from None

    async def whole(self, answer: Answer) -> bytes:
        return b"".join([piece async for piece in self.pieces(answer)])

    async def watch_silence(self) -> None:
        """Kill the runner if it does not respond while requests wait. The connections of these requests then
        break."""
        while True:
            await asyncio.sleep(max(self.heard + SILENT_SECONDS - time.monotonic(), HEALTH_SECONDS / 10))
            if time.monotonic() - self.heard < SILENT_SECONDS:
                continue
            try:
                async with asyncio.timeout(HEALTH_SECONDS):
                    answer = await ask(self.port, self.key, "GET", "/health")
                    answer.close()
                self.heard = time.monotonic()
            except (TimeoutError, Broken):
                self.hung = True
                if self.process is not None and self.process.returncode is None:
                    self.process.kill()
                return

    def mark_dead(self) -> Died:
        """Mark the runner as unusable, and return the error for a request whose connection to it broke."""
        self._broken = True
        what = "did not answer and was ended" if self.hung else "ended unexpectedly"
        name = self.installed.name.short
        return Died(500, f"the process of model '{name}' {what}; ask again, and it is loaded again")


class Runners:
    """All runners of a front. `say`: writes a line to the server's log."""

    def __init__(self, models: Models, say: Callable[[str], None]) -> None:
        self._models, self._say = models, say
        self._loaded: dict[str, Runner] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._loading = asyncio.Lock()
        self._changed = asyncio.Condition()

    @property
    def loaded(self) -> list[Runner]:
        return [runner for runner in self._loaded.values() if not runner.ended]

    async def answer(
        self,
        installed: Installed,
        context: int | None,
        keep: float,
        use: Callable[[Runner], AsyncGenerator[T, None]],
    ) -> AsyncGenerator[T, None]:
        """Call `use` with a runner of the model, and yield the items of its result. If the runner dies before
        the first item, another runner is tried, once. `context`: the length of context that is needed, in
        tokens; None for any. `keep`: seconds for which the model stays loaded afterwards without requests."""
        for last in (False, True):
            begun = False
            try:
                async with self.lend(installed, context, keep) as runner, aclosing(use(runner)) as items:
                    async for item in items:
                        begun = True
                        yield item
                    return
            except Died:
                if begun or last or runner.hung:
                    raise

    @asynccontextmanager
    async def lend(self, installed: Installed, context: int | None, keep: float) -> AsyncIterator[Runner]:
        """A context that yields a runner with the model loaded. Until the context ends, the runner counts as
        busy. `context`: the length of context that is needed, in tokens; None for any. `keep`: seconds for
        which the model stays loaded afterwards without requests. Raises Refused."""
        runner = await self._acquire(installed, context)
        try:
            runner.keep = keep
            yield runner
        finally:
            await asyncio.shield(self._release(runner))

    async def unload(self, name: str) -> bool:
        """End the runner of the model `name` as soon as no request uses it. Returns whether there was such a
        runner."""
        async with self._lock(name):
            runner = self._loaded.get(name)
            if runner is None:
                return False
            await self._until(lambda: not runner.busy)
            await self._end(runner)
            return True

    async def close(self) -> None:
        await asyncio.gather(*(self._end(runner) for runner in list(self._loaded.values())))

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    async def _until(self, ready: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(ready)

    async def _acquire(self, installed: Installed, context: int | None) -> Runner:
        name = str(installed.name)
        async with self._lock(name):
            runner = self._loaded.get(name)
            if runner is not None and not runner.serves(installed, context):
                old = runner
                await self._until(lambda: old.ended or not old.busy)
                await self._end(old)
                runner = None
            if runner is None:
                runner = await self._load(installed, context)
            runner.busy += 1
            if runner.watchdog is None:
                runner.heard = time.monotonic()
                runner.watchdog = asyncio.create_task(runner.watch_silence())
            if runner.expiry is not None:
                runner.expiry.cancel()
                runner.expiry = None
            return runner

    async def _release(self, runner: Runner) -> None:
        runner.busy -= 1
        if not runner.busy:
            if runner.watchdog is not None:
                runner.watchdog.cancel()
                runner.watchdog = None
            runner.idle_since = time.time()
            if runner.ended or runner.keep == 0:
                await self._end(runner)
            elif runner.keep != math.inf:
                loop = asyncio.get_running_loop()
                runner.expiry = loop.call_later(runner.keep, lambda: loop.create_task(self._expire(runner)))
        async with self._changed:
            self._changed.notify_all()

    async def _expire(self, runner: Runner) -> None:
        if not runner.busy:
            self._say(f"unloading {runner.name}: nobody used it for {runner.keep:.0f} s")
            await self._end(runner)

    async def _load(self, installed: Installed, context: int | None) -> Runner:
        if find_spec("xllamacpp") is None:
            raise Refused(501, f"generating needs an engine, and none is installed; {INSTALL}")
        async with self._loading:
            plan = await self._room(installed, context)
            runner = Runner(installed, plan, context)
            began = time.monotonic_ns()
            try:
                await self._start(runner)
            except BaseException:
                await asyncio.shield(self._end(runner))
                raise
            runner.load_ns = time.monotonic_ns() - began
            self._loaded[runner.name] = runner
            self._say(
                f"loaded {runner.name} in {runner.load_ns / 1e9:.2f} s: context {plan.context}, "
                f"{plan.slots} at once, process {runner.process.pid if runner.process else 0}"
            )
            return runner

    async def _room(self, installed: Installed, context: int | None) -> memory.Plan:
        """Free enough memory for the model, by ending idle runners and waiting for busy ones. Returns the
        plan for loading the model. Raises Refused if the model does not fit even without other models."""
        while True:
            plan = memory.plan(installed, context, memory.available())
            if plan is not None:
                return plan
            idle = [runner for runner in self.loaded if not runner.busy]
            if idle:
                oldest = min(idle, key=lambda runner: runner.idle_since)
                self._say(f"unloading {oldest.name}: {installed.name} needs its memory")
                await self._end(oldest)
            elif self.loaded:
                await self._until(lambda: not all(runner.busy for runner in self.loaded))
            else:
                need, free = size(memory.smallest_need(installed)), size(memory.available() or 0)
                raise Refused(
                    500,
                    f"model '{installed.name.short}' does not fit: it needs {need} of memory, and {free} are "
                    "free; end other programs, or use a smaller quantisation",
                )

    async def _start(self, runner: Runner) -> None:
        installed, plan = runner.installed, runner.plan
        try:
            model, projector = self._models.files_to_load(installed)
        except ModelChanged as error:
            raise Refused(500, error.detail) from None
        header = installed.about.header
        task = Task(
            path=str(model),
            name=installed.name.short,
            context=plan.context,
            slots=plan.slots,
            threads=max(1, _cores() - 1),
            batch=runner.batch,
            projector=str(projector or ""),
            template=installed.record.template or "",
            mean_pooling=not embeds_only(header),
            cache_mib=plan.cache_mib,
        )
        runner.process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "llm.runner", msgspec.json.encode(task).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**clean_environment(), KEY_VARIABLE: runner.key},
        )  # fmt: skip
        asyncio.get_running_loop().create_task(self._watch(runner, runner.process))
        started = await self._first_words(runner.process)
        if started.error:
            raise Refused(500, f"model '{installed.name.short}' cannot be loaded: {started.error}")
        runner.port = int(started.url.rpartition(":")[2])

    async def _first_words(self, process: asyncio.subprocess.Process) -> Started:
        if process.stdout is None:
            return Started(error="it has no output")
        try:
            async with asyncio.timeout(LOAD_SECONDS):
                while line := await process.stdout.readline():
                    with suppress(msgspec.MsgspecError):  # libraries may print before
                        return msgspec.json.decode(line, type=Started)
        except TimeoutError:
            return Started(error=f"it was not ready within {LOAD_SECONDS:.0f} s")
        code = await process.wait()
        illegal = " (this processor lacks AVX2, FMA or F16C, which the engine needs)" if code == -4 else ""
        return Started(error=f"its process ended with {code}{illegal}; the log says more: svc llm logs")

    async def _watch(self, runner: Runner, process: asyncio.subprocess.Process) -> None:
        """Wait until the runner's process has ended, then drop the runner."""
        code = await process.wait()
        if self._loaded.get(runner.name) is runner:
            del self._loaded[runner.name]
            self._say(f"the process of {runner.name} ended with {code}")
        async with self._changed:
            self._changed.notify_all()

    async def _end(self, runner: Runner) -> None:
        if runner.expiry is not None:
            runner.expiry.cancel()
            runner.expiry = None
        if self._loaded.get(runner.name) is runner:
            del self._loaded[runner.name]
        process = runner.process
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _cores() -> int:
    """The number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
