"""Sends messages between the processes of a database, by LISTEN and NOTIFY. One kind says that the event log
has new rows; the other kind is a short text, which is not stored. Either may get lost.

Notifications are sent outside of transactions, because inside one the commit takes a lock of the whole
server. They are sent at most once in COALESCE seconds. After a lost connection, the process reads the log
again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

COALESCE = 0.01  # seconds
AGAIN_FIRST, AGAIN_LAST = 0.1, 5.0  # seconds between attempts to connect
CHANNEL, TOLD = "relay_events", "relay_told"
WAITING = 1000  # texts for other processes that wait; the oldest are dropped
LOG = logging.getLogger(__name__)


class Waker:
    """One connection that listens for and sends notifications of PostgreSQL. `calls`: functions to call when
    this or another process has written to the event log, or a notification may have been missed."""

    def __init__(self, connect: Callable[[], Awaitable[Any]]) -> None:
        self._connect = connect
        self.calls: list[Callable[[], None]] = []
        self.hears: list[Callable[[str], None]] = []  # what to do with what another process tells
        self._texts: deque[str] = deque(maxlen=WAITING)
        self._written = False
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep_listening())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def wake(self) -> None:
        """Say that the event log has new rows: to this process now, and to other processes shortly after."""
        self._run_calls()
        self._written = True
        self._wanted.set()

    def tell(self, text: str) -> None:
        """Send a text to the other processes, shortly after this call."""
        self._texts.append(text)
        self._wanted.set()

    async def _keep_listening(self) -> None:
        pause = AGAIN_FIRST
        while True:
            try:
                connection = await self._connect()
                try:
                    pause = AGAIN_FIRST
                    await self._serve(connection)
                finally:
                    connection.terminate()
            except (
                asyncpg.PostgresError,
                asyncpg.InterfaceError,
                asyncpg.InternalClientError,
                OSError,
            ) as error:
                LOG.warning("notifications are interrupted (%s); connecting again", error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, AGAIN_LAST)

    async def _serve(self, connection: Any) -> None:
        """Receive notifications, and send those that wait to be sent, until the connection is lost."""
        await connection.add_listener(CHANNEL, self._on_wake_up)
        await connection.add_listener(TOLD, self._on_text)
        connection.add_termination_listener(lambda _: self._wanted.set())
        self._run_calls()
        while not connection.is_closed():
            await self._wanted.wait()
            await asyncio.sleep(COALESCE)
            self._wanted.clear()
            if self._written:
                self._written = False
                await connection.execute(f"NOTIFY {CHANNEL}")
            while self._texts:
                await connection.execute("SELECT pg_notify($1, $2)", TOLD, self._texts.popleft())

    def _on_wake_up(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if pid != connection.get_server_pid():
            self._run_calls()

    def _on_text(self, connection: Any, pid: int, channel: str, payload: object) -> None:
        if pid != connection.get_server_pid() and isinstance(payload, str):
            for call in self.hears:
                call(payload)

    def _run_calls(self) -> None:
        for call in self.calls:
            call()
