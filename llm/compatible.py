"""The /v1 routes of OpenAI. They pass each body to the engine and its answer back to the client, byte for
byte."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from sanic.request import Request
from sanic.response import HTTPResponse

from llm import listing, wire
from llm.engine import error_of
from llm.problem import Refused
from llm.runners import Runner

if TYPE_CHECKING:
    from llm.front import Front

_PASSED = {
    "/v1/chat/completions": "messages",
    "/v1/completions": "prompt",
    "/v1/responses": "input",
    "/v1/messages": "messages",
    "/v1/messages/count_tokens": "messages",
    "/v1/embeddings": "input",
}
"""Path → the member of the body without which the engine would break."""


class Compatible:
    """The handlers of the /v1 routes."""

    def __init__(self, front: Front) -> None:
        self._front = front

    def routes(self) -> list[tuple[str, str, Callable[..., Coroutine[Any, Any, Any]]]]:
        return [
            ("GET", "/v1/models", self._models),
            ("GET", "/v1/models/<model:path>", self._model),
            *(("POST", path, self._pass) for path in _PASSED),
        ]

    async def _models(self, request: Request) -> HTTPResponse:
        models = [listing.of_openai(model) for model in self._front.models.all()]
        return self._front.json(request, {"object": "list", "data": models})

    async def _model(self, request: Request, model: str) -> HTTPResponse:
        return self._front.json(request, listing.of_openai(self._front.find(unquote(model))))

    async def _pass(self, request: Request) -> None:
        data = await self._front.body(request)
        call = wire.decode(data, wire.OfEngine)
        installed = self._front.find(call.model)
        member = _PASSED[request.path]
        given = getattr(call, member)
        shape = list if member == "messages" else (list, str)
        if not isinstance(given, shape) or not given:
            raise Refused(
                400,
                f"'{member}' is required, and must be {'a list' if shape is list else 'a text or a list'}",
            )
        if member == "messages" and not all(isinstance(item, dict) for item in given):
            raise Refused(400, "'messages' must be a list of objects")
        keep = wire.seconds(call.keep_alive)
        context = wire.context_of({**installed.record.parameters, **(call.options or {})})

        ask_engine = partial(_ask_engine, request.path, data)
        response: Any = None
        async with aclosing(self._front.runners.answer(installed, context, keep, ask_engine)) as pieces:
            async for kind, piece in pieces:
                if response is None:
                    response = await request.respond(content_type=kind, headers=request.ctx.headers)
                await response.send(piece)
        if response is None:
            raise Refused(500, "the engine answered nothing")
        await response.eof()


async def _ask_engine(path: str, body: bytes, runner: Runner) -> AsyncGenerator[tuple[str, bytes], None]:
    """Send the body to the engine. Yields its answer in pieces: (content type, bytes). Raises the error that
    the engine answered."""
    answer = await runner.ask("POST", path, body)
    try:
        if answer.status != 200:
            raise error_of(await runner.whole(answer), answer.status, runner)
        kind = answer.headers.get("content-type", "application/json")
        async for piece in runner.pieces(answer):
            yield kind, piece
    finally:
        answer.close()
