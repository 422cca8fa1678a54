"""Computes embeddings of texts, for /api/embed and /api/embeddings."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from llm import wire
from llm.engine import TOO_LONG, error_of, text_of, tokens_of
from llm.problem import Refused
from llm.runners import Runner, Runners
from llm.wire import Call
from localstore.models.store import Installed

_TEXTS = 2048


async def embed_texts(
    runners: Runners, call: Call, installed: Installed, texts: list[str], dimensions: int | None, began: int
) -> dict[str, Any]:
    """Compute the embeddings of these texts. Returns the answer of /api/embed. `call`: the body of the
    request. `dimensions`: length of the vectors; None for the length that the model makes. `began`: when the
    request came (`time.monotonic_ns`). Raises Refused."""
    keep = wire.seconds(call.keep_alive)
    context = wire.context_of({**installed.record.parameters, **(call.options or {})})
    if len(texts) > _TEXTS:
        raise Refused(400, f"input: at most {_TEXTS} texts are embedded at once")
    if dimensions is not None and dimensions < 1:
        raise Refused(400, "dimensions must be a whole number above 0")
    vectors: list[list[float]] = []
    count = load_ns = 0

    async def use(runner: Runner) -> AsyncGenerator[None, None]:
        nonlocal vectors, count, load_ns
        load_ns = time.monotonic_ns() - began
        if texts:
            vectors, count = await _vectors(runner, texts, cut=call.truncate is True)
        yield

    async for _ in runners.answer(installed, context, keep, use):
        pass
    return {
        "model": call.model,
        "embeddings": [_shorten(vector, dimensions) for vector in vectors],
        "total_duration": time.monotonic_ns() - began,
        "load_duration": load_ns,
        "prompt_eval_count": count,
    }


async def _vectors(runner: Runner, texts: list[str], *, cut: bool) -> tuple[list[list[float]], int]:
    try:
        return await _request_vectors(runner, texts)
    except Refused as error:
        if not cut or error.kind != TOO_LONG:
            raise
    room = runner.batch - 2
    shorter = []
    for text in texts:
        tokens = await tokens_of(runner, text)
        shorter.append(text if len(tokens) <= room else await text_of(runner, tokens[:room]))
    return await _request_vectors(runner, shorter)


async def _request_vectors(runner: Runner, texts: list[str]) -> tuple[list[list[float]], int]:
    answer = await runner.ask("POST", "/v1/embeddings", msgspec.json.encode({"input": texts}))
    try:
        data = await runner.whole(answer)
    finally:
        answer.close()
    if answer.status != 200:
        raise error_of(data, answer.status, runner)
    decoded = msgspec.json.decode(data)
    return [item["embedding"] for item in decoded["data"]], decoded.get("usage", {}).get("prompt_tokens", 0)


def _shorten(vector: list[float], dimensions: int | None) -> list[float]:
    """The first `dimensions` numbers of the vector, scaled to length 1. The vector is returned unchanged if
    it is not longer, or if `dimensions` is None."""
    if dimensions is None or dimensions >= len(vector):
        return vector
    shortened = vector[:dimensions]
    length = math.sqrt(sum(number * number for number in shortened)) or 1.0
    return [number / length for number in shortened]
