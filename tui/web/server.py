"""The server of `svc tui --web`, on the loopback interface. It serves its page, the files of the terminal,
and a WebSocket for each page."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import textual_serve
from aiohttp import WSMsgType, web

from localstore.core.errors import ClientError
from localstore.core.numbers import whole_number
from tui.web.child import Child
from tui.web.guard import AGAIN, Guard

HERE = Path(__file__).parent
STATICS = Path(textual_serve.__file__).parent / "static"
PAGES = 8  # that may be open at a time: each is an app of 60 to 90 MB
MESSAGE = 1024 * 1024  # bytes that a page sends at once: what somebody pastes
HEARTBEAT = 20.0  # seconds
CLOSE_SECONDS = 2.0  # that connections have to end by themselves
_TYPES = {".css": "text/css", ".js": "text/javascript"}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Serving:
    """What the server runs and shows. `words`: the command line of the app. `theme`, `title`: theme and title
    of the page around the app."""

    words: Sequence[str]
    theme: str
    title: str


def listen(port: int) -> socket.socket:
    """Returns a listening socket on loopback. Port 0 stands for any free port. Raises ClientError if the port
    is not available."""
    try:
        return socket.create_server(("127.0.0.1", port), backlog=64)
    except OSError as error:
        why = error.strerror or str(error)
        raise ClientError(f"port {port} of this machine cannot be used ({why}); omit --port") from None


def serve(
    serving: Serving, listening: socket.socket, ready: Callable[[str], None], note: Callable[[str], None]
) -> None:
    """Serve until ctrl+c or a signal, and end every app. `ready`: called with the URL. `note`: called with
    the last sentence of an app that has failed."""
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL)  # requests that it cannot read are answered
    asyncio.run(_Server(serving, listening, note).run(ready))


class _Server:
    def __init__(self, serving: Serving, listening: socket.socket, note: Callable[[str], None]) -> None:
        self._serving, self._socket, self._note = serving, listening, note
        self._port: int = listening.getsockname()[1]
        self._guard = Guard(self._port)
        self._open: set[web.WebSocketResponse] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    async def run(self, ready: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
            with suppress(NotImplementedError):  # Windows: KeyboardInterrupt cancels this
                loop.add_signal_handler(number, self._ended.set)
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=CLOSE_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            ready(self._guard.url)
            await self._ended.wait()
        finally:
            self._ended.set()
            if self._running:
                await asyncio.wait(self._running)
            await runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(middlewares=[self._admit], client_max_size=1024)
        at = self._guard.path
        application.router.add_get("/", self._exchange)
        application.router.add_get(at, self._page)
        application.router.add_get(f"{at}ws", self._socket_of_page)
        for name in ("page.css", "page.js"):
            application.router.add_get(f"{at}{name}", self._file)
        application.router.add_static(f"{at}static", STATICS)
        return application

    @web.middleware
    async def _admit(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request by calling `handler`. If its sender must not see the app, refuse the request. The
        headers of the answer tell the browser not to show it in a frame of another page, not to cache it, and
        not to guess its type."""
        why = self._guard.refusal(request)
        if why:
            response: web.StreamResponse = web.Response(status=403, text=f"{why}\n")
        else:
            try:
                response = await handler(request)
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=f"{error.reason}\n")
        if not response.prepared:
            response.headers.update(self._headers())
        return response

    def _headers(self) -> dict[str, str]:
        sockets = " ".join(f"ws://{name}:{self._port}" for name in ("127.0.0.1", "localhost"))
        policy = (
            f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; "
            f"img-src data:; connect-src {sockets}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return {
            "Content-Security-Policy": policy,
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    async def _exchange(self, request: web.Request) -> web.Response:
        """Exchange the token for the cookie, and answer with a page that sends the browser on to the app. A
        redirect would not work: after it, a browser that came from another site would not send the cookie."""
        give = self._guard.exchange(request)
        if give is None:
            why = f"The address of the app counts once: it was used, or lacks its token. {AGAIN}"
            return web.Response(status=403, text=f"{why}\n")
        lead = f'<meta http-equiv="refresh" content="0; url={self._guard.path}">'
        response = web.Response(text=f"<!DOCTYPE html><title>svc</title>{lead}", content_type="text/html")
        give(response)
        return response

    async def _page(self, request: web.Request) -> web.Response:
        values = {
            "@THEME@": self._serving.theme,
            "@TITLE@": self._serving.title,
            "@SOCKET@": f"ws://{request.headers['Host']}{self._guard.path}ws",
        }
        text = (HERE / "page.html").read_text("utf-8")
        for mark, value in values.items():
            text = text.replace(mark, html.escape(value))
        return web.Response(text=text, content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        file = HERE / request.path.rpartition("/")[2]
        return web.Response(text=file.read_text("utf-8"), content_type=_TYPES[file.suffix])

    async def _socket_of_page(self, request: web.Request) -> web.StreamResponse:
        page = web.WebSocketResponse(heartbeat=HEARTBEAT, max_msg_size=MESSAGE)
        if len(self._open) >= PAGES:  # told in the page: a browser shows no answer to a socket
            await page.prepare(request)
            await _say(page, f"The app is open in {PAGES} windows, and in no more at a time; close one.")
            await _close(page)
            return page
        self._open.add(page)
        app = asyncio.ensure_future(self._life(request, page))
        self._running.add(app)
        app.add_done_callback(self._running.discard)
        try:
            await asyncio.shield(app)  # a page that leaves has its app ended, not torn off
        finally:
            self._open.discard(page)
        return page

    async def _life(self, request: web.Request, page: web.WebSocketResponse) -> None:
        """Run the app for a page, from its start to its end."""
        await page.prepare(request)
        child = Child(self._serving.words)
        try:
            size = [_number(request.query.get(side, "")) for side in ("width", "height")]
            await child.start(*size)
        except OSError as error:
            await _say(page, f"the app does not start: {error.strerror or error}")
            return
        ways = [
            asyncio.create_task(way) for way in (_listen(page, child), _draw(page, child), _wait(self._ended))
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            last = await child.end()
            if last:
                self._note(last)
                await _say(page, last)
            await _close(page)


async def _close(page: web.WebSocketResponse) -> None:
    with suppress(Exception):
        await asyncio.wait_for(page.close(), CLOSE_SECONDS)


async def _wait(ended: asyncio.Event) -> None:
    await ended.wait()


async def _draw(page: web.WebSocketResponse, child: Child) -> None:
    async for text in child.output():
        await page.send_bytes(text)


async def _listen(page: web.WebSocketResponse, child: Child) -> None:
    """Pass the messages of the page on to the app, until the page closes. Invalid messages are ignored."""
    async for message in page:
        if message.type != WSMsgType.TEXT:
            continue
        with suppress(ValueError, TypeError, LookupError, RecursionError):
            kind, *more = json.loads(message.data)
            await _hand_on(page, child, kind, more[0] if more else None)


async def _hand_on(page: web.WebSocketResponse, child: Child, kind: str, value: Any) -> None:
    if kind == "stdin" and isinstance(value, str):
        await child.send_input(value)
    elif kind == "resize" and all(type(value[side]) is int for side in ("width", "height")):
        await child.resize(value["width"], value["height"])
    elif kind in ("focus", "blur"):
        await child.tell(kind)
    elif kind == "ping" and isinstance(value, str):
        await page.send_json(["pong", value[:40]])


async def _say(page: web.WebSocketResponse, sentence: str) -> None:
    """Show a sentence in the page in place of the app."""
    with suppress(Exception):
        await page.send_bytes(f"\x1bc{sentence}\r\n".encode())


def _number(typed: str) -> int:
    """Reads a number of columns or rows from the URL. Returns 80 if the text is no number: the page sends its
    size again once the app runs."""
    cells = whole_number(typed, 5)
    return 80 if cells is None else cells
