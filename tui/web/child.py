"""Runs the app for one page in a separate process, and exchanges messages with it over pipes.

A message consists of a letter, a length in four bytes, and that many bytes. The letter D stands for terminal
output or input, and the letter M for a JSON object."""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, cast

from localstore.core.paths import terminal_safe
from tui.web import DRIVER, DRIVER_VARIABLE

BEGINS = b"__GANGLION__\n"  # the line after which messages come
DATA, META = b"D", b"M"
LARGEST = 16 * 1024 * 1024  # bytes of one message; a picture in a large window has a tenth
END_SECONDS = 5.0  # that an app has to end by itself, and again before it is killed
CELLS = 1000  # columns and rows at most: what a window of any screen holds
_HEAD = 5


class Child:
    """The process of the app for one page. `words`: the command line of the app. Call `start`, read `output`
    to its end, and call `end`."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = list(words)
        self._process: Process | None = None
        self._output: deque[bytes] = deque(maxlen=20)
        self._errors: asyncio.Task[None] | None = None

    async def start(self, width: int, height: int) -> None:
        """Start the app in a terminal of this many columns and rows. Raises OSError if the program cannot be
        started."""
        size = {"COLUMNS": str(_cells(width)), "ROWS": str(_cells(height))}
        drawing = {DRIVER_VARIABLE: DRIVER, "TEXTUAL_COLOR_SYSTEM": "truecolor", "TERM": "xterm-256color"}
        self._process = await asyncio.create_subprocess_exec(
            *self._words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**os.environ, **size, **drawing},
            start_new_session=True,  # ctrl+c in the terminal is the server's, which ends this one
        )
        if self._process.stderr is not None:
            self._errors = asyncio.create_task(self._read_errors(self._process.stderr))

    async def output(self) -> AsyncIterator[bytes]:
        """Yields the terminal output of the app, until the app ends."""
        reader = self._reader
        try:
            while (line := await reader.readline()) != BEGINS:
                if not line:
                    return
            while True:
                head = await reader.readexactly(_HEAD)
                size = int.from_bytes(head[1:], "big")
                if size > LARGEST:
                    return
                payload = await reader.readexactly(size)
                if head[:1] == DATA:
                    yield payload
                elif head[:1] == META and json.loads(payload).get("type") == "exit":
                    return
        except (asyncio.IncompleteReadError, ValueError):  # it died, or what it writes are no messages
            return

    async def send_input(self, text: str) -> None:
        """Send keys and clicks to the app, encoded as terminal input."""
        await self._send(DATA, text.encode("utf-8", "replace"))

    async def tell(self, kind: str, **more: Any) -> None:
        """Send an event of the page to the app. `kind`: the event, such as `blur`. `more`: the data of the
        event."""
        await self._send(META, json.dumps({"type": kind, **more}).encode())

    async def resize(self, width: int, height: int) -> None:
        await self.tell("resize", width=_cells(width), height=_cells(height))

    async def end(self) -> str:
        """End the app, whatever it is doing. If it has failed, returns the last sentence of its errors.
        Otherwise returns ""."""
        process = self._running
        await self.tell("quit")
        for harder in (process.terminate, process.kill, lambda: None):
            try:
                await asyncio.wait_for(self._wait_until_gone(), END_SECONDS)
                break
            except TimeoutError:
                with suppress(ProcessLookupError):
                    harder()
        if self._errors is not None:
            await asyncio.wait((self._errors,), timeout=1)  # a program that it started may hold the pipe open
            self._errors.cancel()
        lines = b"".join(self._output).decode("utf-8", "replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), "")
        return terminal_safe(last) if process.returncode else ""

    @property
    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError("start() comes first")
        return self._process

    @property
    def _reader(self) -> asyncio.StreamReader:
        return cast("asyncio.StreamReader", self._running.stdout)

    async def _wait_until_gone(self) -> None:
        """Wait until the process has ended. Its output is read meanwhile, because the process could block on
        it."""
        while await self._reader.read(65536):
            pass
        await self._running.wait()

    async def _send(self, letter: bytes, payload: bytes) -> None:
        writer = self._running.stdin
        with suppress(OSError, RuntimeError):  # it has ended, which `output` says
            if writer is None:
                return
            writer.write(letter + len(payload).to_bytes(4, "big") + payload)
            await writer.drain()

    async def _read_errors(self, reader: asyncio.StreamReader) -> None:
        while piece := await reader.read(4096):
            self._output.append(piece)


def _cells(count: int) -> int:
    return max(1, min(count, CELLS))
