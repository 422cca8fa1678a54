"""The operator's socket, by which `relay gc`, `audit` and `backup` run on a running relay.

The socket `admin.sock` in the data folder (0600) takes one request for each connection, a line of JSON. It
answers in lines: `{"line": …}` during the work, then `{"exit": …}` or `{"error": …}`. Closing the connection
stops the work.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec

from localstore.core.errors import SvcError, Unavailable
from relay.base.logs import logger
from relay.db.engine.damage import find_damage
from relay.run.maintenance import Maintenance

SOCKET_NAME = "admin.sock"
REQUEST_BYTES = 16 * 1024


class Gc(msgspec.Struct, tag_field="do", tag="gc", forbid_unknown_fields=True):
    dry_run: bool = False


class Audit(msgspec.Struct, tag_field="do", tag="audit", forbid_unknown_fields=True):
    repair: bool = False


class Backup(msgspec.Struct, tag_field="do", tag="backup", forbid_unknown_fields=True):
    folder: str


class AdminLine(msgspec.Struct, omit_defaults=True):
    """A line of the relay's answer to a request on the operator's socket. The last line has `exit` or
    `error`."""

    line: str | None = None
    exit: int | None = None
    error: str | None = None


Request = Gc | Audit | Backup
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Gc | Audit | Backup)
_answers = msgspec.json.Decoder(AdminLine)


async def carry_out(maintenance: Maintenance, request: Request, say: Callable[[str], None]) -> int:
    """Carry out the request. Returns the exit code. `say`: called with the lines of the report."""
    if isinstance(request, Gc):
        return await maintenance.gc(say, request.dry_run)
    if isinstance(request, Audit):
        return await maintenance.audit(say, request.repair)
    return await maintenance.backup(Path(request.folder), say)


class Admin:
    """The operator's socket of a relay. It is not opened if another process already answers on it."""

    def __init__(self, data: Path, maintenance: Maintenance) -> None:
        self._path, self._maintenance = data / SOCKET_NAME, maintenance
        self._server: asyncio.Server | None = None
        self._working: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_unix_connection(self._path)
            writer.close()
            return
        self._path.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX)
        mask = os.umask(0o177)  # nothing else runs until it is put back
        try:
            listening.bind(os.fsencode(self._path))
        finally:
            os.umask(mask)
        self._server = await asyncio.start_unix_server(self._answer, sock=listening, limit=REQUEST_BYTES)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        self._path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # the server made it
        self._working.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.LimitOverrunError):
            pass  # the client disconnected or sent something else
        finally:
            self._working.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(line: str) -> None:
            writer.write(msgspec.json.encode(AdminLine(line=line)) + b"\n")

        raw = await reader.readline()
        work = asyncio.create_task(self._work(raw, say))
        gone = asyncio.create_task(reader.read(1))
        try:
            await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not work.done():
                work.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)
        if not work.cancelled():
            writer.write(msgspec.json.encode(work.result()) + b"\n")
            await writer.drain()

    async def _work(self, raw: bytes, say: Callable[[str], None]) -> AdminLine:
        try:
            return AdminLine(exit=await carry_out(self._maintenance, _requests.decode(raw), say))
        except msgspec.MsgspecError as error:
            return AdminLine(error=f"the request cannot be read: {error}")
        except SvcError as error:
            return AdminLine(error=error.detail)
        except Exception as error:
            if (damage_text := find_damage(error)) is not None:
                return AdminLine(
                    error=f"the database is damaged ({damage_text}); restore a backup: relay restore"
                )
            logger().error("operator's request failed", exc_info=True)
            return AdminLine(error=f"{type(error).__name__}; the relay's log says more")


async def ask(data: Path, request: Request, say: Callable[[str], None]) -> int | None:
    """Send the request to the running relay. `say`: called with the lines of the report. Returns the exit
    code, or None if no relay serves this folder. Raises Unavailable if the relay refuses or stops."""
    try:
        reader, writer = await asyncio.open_unix_connection(data / SOCKET_NAME)
    except OSError:
        return None
    try:
        writer.write(msgspec.json.encode(request) + b"\n")
        while raw := await reader.readline():
            answer = _answers.decode(raw)
            if answer.error is not None:
                raise Unavailable(answer.error)
            if answer.exit is not None:
                return answer.exit
            say(answer.line or "")
    except (OSError, msgspec.MsgspecError) as error:
        raise Unavailable(f"the relay failed: {error}") from None
    finally:
        writer.close()
    raise Unavailable("the relay stopped before the work was finished")
