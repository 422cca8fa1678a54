"""The command `python -m llm.front FD PORT`: answers the API of Ollama and the /v1 of OpenAI. FD is the
listening socket, which the keeper opened. The process ends when its standard input closes.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
from sanic import Sanic
from sanic.exceptions import SanicException
from sanic.request import Request
from sanic.response import HTTPResponse

from llm import listing, making, pulling, wire
from llm.answering import Work, lines, work_of_chat, work_of_generate
from llm.compatible import Compatible
from llm.embedding import embed_texts
from llm.guard import headers_for, require_local
from llm.leases import Idle
from llm.problem import Refused
from llm.runners import Runner, Runners
from localstore.core.errors import SvcError
from localstore.core.model.limits import LLM_BODY, LLM_REQUESTS, in_words
from localstore.core.times import rfc3339_now
from localstore.disk_errors import FULL, disk_error
from localstore.errors import DiskError
from localstore.models.errors import ModelMissing
from localstore.models.names import ModelName, parse
from localstore.models.place import llm_home
from localstore.models.store import Installed, Models

API = "0.17.4"  # whose routes and shapes these are
ENDED_IDLE = 10
WATCHED = "/api/ps"
_BODY_SECONDS = 60.0  # without a byte of a body
_NDJSON = "application/x-ndjson"
_ABSENT = {
    "/api/push": "pushing models this way is not in this version of svc; push them as a repository: svc push",
}
Handler = Callable[..., Coroutine[Any, Any, Any]]


class Front:
    """The routes of the server. `home`: SVC_LLM_HOME, the folder of models; `port`: the port on which it
    answers."""

    def __init__(self, home: Path, port: int) -> None:
        self.models = Models(home)
        self.runners = Runners(self.models, say)
        self.idle = Idle(home, port)
        self._compatible = Compatible(self)
        self._open = self._needing = 0  # requests: all, and those that need the server

    def build(self) -> Sanic[Any, Any]:
        app: Sanic[Any, Any] = Sanic("llm", configure_logging=False)
        app.config.update(
            {
                "REQUEST_MAX_SIZE": LLM_BODY,
                "RESPONSE_TIMEOUT": 86400.0,
                "REQUEST_TIMEOUT": 60.0,
                "KEEP_ALIVE_TIMEOUT": 75.0,
                "FALLBACK_ERROR_FORMAT": "json",
            }
        )
        routes: list[tuple[str, str, Handler]] = [
            ("GET", "/", self._root),
            ("GET", "/api/version", self._version),
            ("GET", "/api/tags", self._tags),
            ("GET", WATCHED, self._ps),
            ("POST", "/api/show", self._show),
            ("POST", "/api/generate", self._generate),
            ("POST", "/api/chat", self._chat),
            ("POST", "/api/embed", self._embed),
            ("POST", "/api/embeddings", self._embeddings),
            ("POST", "/api/copy", self._copy),
            ("DELETE", "/api/delete", self._delete),
            ("POST", "/api/create", self._create),
            ("POST", "/api/pull", self._pull),
            ("HEAD", "/api/blobs/<digest:str>", self._has_blob),
            ("POST", "/api/blobs/<digest:str>", self._take_blob),
            *(("POST", path, self._absent) for path in _ABSENT),
            *self._compatible.routes(),
        ]
        for method, path, handler in routes:
            methods = ["GET", "HEAD"] if method == "GET" else [method]
            name = f"{method}{path}".replace("/", "-").replace("<", "").replace(">", "").replace(":", "-")
            app.add_route(self._guard(handler), path, methods=methods, name=name, stream=True)
        app.error_handler.add(Exception, self._answer_failure)
        return app

    def _guard(self, handler: Handler) -> Handler:
        async def answer(request: Request, **parts: str) -> Any:
            request.ctx.headers = {}
            try:
                _admit(request)
                if self._open >= LLM_REQUESTS:
                    raise Refused(503, f"{LLM_REQUESTS} requests wait already; try again later")
                # Who watches what is loaded needs no server: one that nobody uses ends nevertheless.
                needed = int(request.path != WATCHED)
                self._open, self._needing = self._open + 1, self._needing + needed
                if needed:
                    self.idle.set_open_requests(self._needing)
                try:
                    return await handler(request, **parts)
                finally:
                    self._open, self._needing = self._open - 1, self._needing - needed
                    if needed:
                        self.idle.set_open_requests(self._needing)
            except (Refused, SvcError) as error:
                return self._refuse(request, error)
            except OSError as error:
                if error.errno not in FULL:
                    raise
                return self._refuse(request, disk_error(error, self.models.root))

        return answer

    async def _answer_failure(self, request: Request, error: Exception) -> HTTPResponse:
        """The answer to a request for which no handler answers: for an unknown path or method, a broken
        request, or a bug."""
        status = error.status_code if isinstance(error, SanicException) else 500
        request.ctx.headers = {}
        try:
            _admit(request)
        except Refused as refused:
            return self._refuse(request, refused)
        if request.method == "OPTIONS" and request.headers.get("origin"):
            return HTTPResponse(status=204, headers=request.ctx.headers)
        if status >= 500:
            say(f"{request.method} {request.path}: {type(error).__name__}: {error}")
        sentences = {404: "404 page not found", 405: "405 method not allowed"}
        return self._refuse(request, Refused(status, sentences.get(status, str(error) or "something broke")))

    def _refuse(self, request: Request, error: Refused | SvcError) -> HTTPResponse:
        if isinstance(error, SvcError):
            error = Refused(_status_of(error), error.detail)
        body: dict[str, Any] = {"error": error.sentence}
        if request.path.startswith("/v1/"):
            body = {
                "error": {
                    "message": error.sentence, "type": error.kind, "param": None, "code": None, **error.extra,
                }
            }  # fmt: skip
            if request.path.startswith("/v1/messages"):
                body = {"type": "error", **body}
        return HTTPResponse(
            msgspec.json.encode(body), error.status, request.ctx.headers, content_type="application/json"
        )

    # --- what handlers share

    async def body(self, request: Request, most: int = LLM_BODY) -> bytes:
        """The whole body of the request, at most `most` bytes. Raises Refused if it is longer or does not
        arrive completely."""
        return b"".join([piece async for piece in self.pieces(request, most)])

    async def pieces(self, request: Request, most: int) -> AsyncIterator[bytes]:
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > most:
            raise Refused(413, f"the body is larger than {in_words(most)}")
        received = 0
        stream: Any = request.stream
        while stream is not None:
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    piece = await stream.read()
            except TimeoutError:
                raise Refused(408, f"no byte of the body came for {_BODY_SECONDS:.0f} s") from None
            if piece is None:
                return
            received += len(piece)
            if received > most:
                raise Refused(413, f"the body is larger than {in_words(most)}")
            yield piece

    def find(self, text: str | None) -> Installed:
        """The installed model with this name. Raises Refused if the name is missing or unknown."""
        named = wire.require(text, "model")
        try:
            return self.models.find(self.name(named))
        except ModelMissing:
            raise Refused(404, f"model '{named}' not found") from None

    def name(self, text: str) -> ModelName:
        try:
            return parse(text)
        except SvcError as error:
            raise Refused(400, error.detail) from None

    def json(self, request: Request, value: Any, status: int = 200) -> HTTPResponse:
        data = msgspec.json.encode(value)
        return HTTPResponse(data, status, request.ctx.headers, content_type="application/json; charset=utf-8")

    def empty(self, request: Request, status: int = 200) -> HTTPResponse:
        return HTTPResponse(b"", status, request.ctx.headers)

    async def stream(self, request: Request, source: AsyncGenerator[dict[str, Any], None]) -> None:
        """Send lines of JSON to the client as `source` yields them. An error before the first line is
        answered with its HTTP status, a later error as a line."""
        async with aclosing(source):
            first = await anext(source)
            response = await request.respond(content_type=_NDJSON, headers=request.ctx.headers)
            await response.send(msgspec.json.encode(first) + b"\n")
            # `send` stays outside of the try: its errors are the client's, who has left.
            while (line := await self._next_line(request, source)) is not None:
                await response.send(msgspec.json.encode(line) + b"\n")
            await response.eof()

    async def _next_line(
        self, request: Request, source: AsyncGenerator[dict[str, Any], None]
    ) -> dict[str, Any] | None:
        """The next line of an answer; None after the last line. An error of `source` becomes a line."""
        try:
            return await anext(source, None)
        except Refused as error:
            return {"error": error.sentence}
        except SvcError as error:
            return {"error": error.detail}
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                return {"error": disk_error(error, self.models.root).detail}
            say(f"{request.method} {request.path}: {type(error).__name__}: {error}")
            return {"error": "something broke in the server; the log says more: svc llm logs"}

    # --- models

    async def _root(self, request: Request) -> HTTPResponse:
        return HTTPResponse(
            b"Ollama is running", 200, request.ctx.headers, content_type="text/plain; charset=utf-8"
        )

    async def _version(self, request: Request) -> HTTPResponse:
        return self.json(request, {"version": API})

    async def _tags(self, request: Request) -> HTTPResponse:
        return self.json(request, {"models": [listing.tag(model) for model in self.models.all()]})

    async def _ps(self, request: Request) -> HTTPResponse:
        return self.json(request, {"models": [listing.running(runner) for runner in self.runners.loaded]})

    async def _show(self, request: Request) -> HTTPResponse:
        call = wire.decode(await self.body(request), wire.Show)
        installed = self.find(call.named)
        return self.json(request, listing.show(installed, str(self.models.blob(installed.record.model))))

    async def _copy(self, request: Request) -> HTTPResponse:
        call = wire.decode(await self.body(request), wire.Copy)
        source, target = self.find(call.source), self.name(wire.require(call.destination, "destination"))
        self.models.put(target, source.record)
        return self.empty(request)

    async def _delete(self, request: Request) -> HTTPResponse:
        call = wire.decode(await self.body(request), wire.Named)
        installed = self.find(call.named)
        await self.runners.unload(str(installed.name))
        self.models.remove(installed.name)
        return self.empty(request)

    async def _create(self, request: Request) -> HTTPResponse | None:
        call = wire.decode(await self.body(request), wire.Create)
        target = self.name(call.named)
        record = making.record_of(call, self.models, self.find)
        steps = making.create(self.models, target, record)
        if call.stream is False:
            for step in steps:
                last = step
            return self.json(request, last)
        await self.stream(request, _each(steps))
        return None

    async def _pull(self, request: Request) -> HTTPResponse | None:
        call = wire.decode(await self.body(request), wire.Pull)
        steps = pulling.lines(self.name(call.named).short)
        if call.stream is False:
            async with aclosing(steps):
                async for step in steps:
                    last = step
            return self.json(request, last)
        await self.stream(request, steps)
        return None

    async def _has_blob(self, request: Request, digest: str) -> HTTPResponse:
        about = self.models.about(making.sha256_of(digest))
        return self.empty(request, 200 if about is not None else 404)

    async def _take_blob(self, request: Request, digest: str) -> HTTPResponse:
        await making.take_blob(self.models, making.sha256_of(digest), self.pieces(request, making.LARGEST))
        return self.empty(request, 201)

    async def _absent(self, request: Request) -> HTTPResponse:
        raise Refused(501, _ABSENT[request.path])

    # --- generating

    async def _generate(self, request: Request) -> HTTPResponse | None:
        call = wire.decode(await self.body(request), wire.Generate)
        installed = self.find(call.model)
        empty = not call.prompt and not call.images and not call.suffix
        work = None if empty else work_of_generate(call, installed, call.model or "")
        return await self._run(request, call, installed, work, {"response": ""})

    async def _chat(self, request: Request) -> HTTPResponse | None:
        call = wire.decode(await self.body(request), wire.Chat)
        installed = self.find(call.model)
        work = work_of_chat(call, installed, call.model or "") if call.messages else None
        return await self._run(
            request, call, installed, work, {"message": {"role": "assistant", "content": ""}}
        )

    async def _run(
        self,
        request: Request,
        call: wire.Call,
        installed: Installed,
        work: Work | None,
        empty: dict[str, Any],
    ) -> HTTPResponse | None:
        """Answer a request that uses a model. `call`: the body of the request. `work`: the request to the
        engine. If it is None, no text is generated: the model is only loaded, or unloaded if `keep_alive` is
        0, and the answer has the members in `empty`. Returns the response; None if it was streamed."""
        keep = wire.seconds(call.keep_alive)
        context = wire.context_of({**installed.record.parameters, **(call.options or {})})
        if work is None:
            if keep == 0:
                await self.runners.unload(str(installed.name))
            else:
                async with self.runners.lend(installed, context, keep):
                    pass
            done = {"done": True, "done_reason": "unload" if keep == 0 else "load"}
            return self.json(request, {"model": call.model, "created_at": rfc3339_now(), **empty, **done})
        began = time.monotonic_ns()
        answer_lines = self._lines(work, installed, context, keep, began)
        if call.stream is False:
            return self.json(request, await _join_lines(answer_lines))
        await self.stream(request, answer_lines)
        return None

    async def _lines(
        self, work: Work, installed: Installed, context: int | None, keep: float, began: int
    ) -> AsyncGenerator[dict[str, Any], None]:
        def generate(runner: Runner) -> AsyncGenerator[dict[str, Any], None]:
            return lines(work, runner, began, time.monotonic_ns() - began)

        async with aclosing(self.runners.answer(installed, context, keep, generate)) as source:
            async for line in source:
                yield line

    async def _embed(self, request: Request) -> HTTPResponse:
        call = wire.decode(await self.body(request), wire.Embed)
        installed, began = self.find(call.model), time.monotonic_ns()
        texts = [call.input] if isinstance(call.input, str) else call.input or []
        return self.json(
            request, await embed_texts(self.runners, call, installed, texts, call.dimensions, began)
        )

    async def _embeddings(self, request: Request) -> HTTPResponse:
        call = wire.decode(await self.body(request), wire.Embeddings)
        installed, began = self.find(call.model), time.monotonic_ns()
        texts = [call.prompt] if call.prompt else []
        answer = await embed_texts(self.runners, call, installed, texts, None, began)
        return self.json(request, {"embedding": answer["embeddings"][0] if answer["embeddings"] else []})


def _admit(request: Request) -> None:
    """Set the response headers that let the page of the request read the answer. Raises Refused if the page,
    or the program that sends the request, is not of this machine."""
    origin = request.headers.get("origin")
    require_local(request.headers.get("host", ""), origin)
    request.ctx.headers = headers_for(origin)


def _status_of(error: SvcError) -> int:
    return {ModelMissing: 404, DiskError: 507}.get(type(error), 400)


async def _each(steps: Any) -> AsyncGenerator[dict[str, Any], None]:
    for step in steps:
        yield step


async def _join_lines(source: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    """Join all lines of an answer into one, for a client that does not want a stream."""
    text, thinking, calls, last = [], [], [], {}
    async with aclosing(source):
        async for last in source:
            message = last.get("message", last)
            text.append(message.get("content", message.get("response", "")))
            thinking.append(message.get("thinking", ""))
            calls += message.get("tool_calls", ())
    whole = last.get("message", last)
    whole["response" if whole is last else "content"] = "".join(text)
    if "".join(thinking):
        whole["thinking"] = "".join(thinking)
    if calls:
        whole["tool_calls"] = calls
    return last


def say(line: str) -> None:
    """Write a line to the keeper's log."""
    print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}", file=sys.stderr, flush=True)


async def serve(front: Front, bound: socket.socket, ended: asyncio.Event) -> int:
    """Answer requests on the socket `bound`. Returns the exit code when `ended` is set or the server is not
    needed any more."""
    app = front.build()
    server: Any = await app.create_server(
        sock=bound, return_asyncio_server=True, access_log=False, backlog=1024, noisy_exceptions=False
    )
    await server.startup()
    await server.start_serving()
    idle = asyncio.create_task(front.idle.wait())
    waiting = asyncio.create_task(ended.wait())
    gc.collect()
    gc.freeze()
    try:
        await asyncio.wait({idle, waiting}, return_when=asyncio.FIRST_COMPLETED)
        return ENDED_IDLE if idle.done() else 0
    finally:
        for task in (idle, waiting):
            task.cancel()
        server.close()
        await front.runners.close()
        Sanic.unregister_app(app)


async def _main(bound: socket.socket, port: int) -> int:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ended.set)
    loop.add_reader(sys.stdin.fileno(), ended.set)  # nothing is ever sent; it closes with the keeper
    return await serve(Front(llm_home(), port), bound, ended)


def main() -> None:
    bound = socket.socket(fileno=int(sys.argv[1]))
    bound.setblocking(False)
    code = asyncio.run(_main(bound, int(sys.argv[2])))
    sys.stderr.flush()
    os._exit(code)  # a thread that reads a large file would keep it


if __name__ == "__main__":
    main()
