"""Reads the answers of the engine (the library that generates text): its stream of events, its errors, and
the tokens of a text."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from llm.problem import Refused
from llm.runners import Runner
from llm.upstream import Answer
from svc.flows.llm import memory

_TOO_LARGE = re.compile(r"input \((\d+) tokens\) is too large")
TOO_LONG = "exceed_context_size_error"


async def events(runner: Runner, answer: Answer) -> AsyncGenerator[dict[str, Any], None]:
    """Yields the events of the engine's answer. Raises Refused if an event is an error, or if the answer ends
    too early."""
    rest = b""
    ended = False
    async for piece in runner.pieces(answer):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            if not line.startswith((b"data: ", b"error: ")):
                continue
            name, _, data = line.partition(b": ")
            if data == b"[DONE]":
                ended = True
                continue
            event = msgspec.json.decode(data)
            if name == b"error" or "error" in event:
                raise error_of(data, 500, runner)
            ended = ended or bool(event.get("stop"))
            yield event
    if not ended:
        raise runner.mark_dead()


def error_of(data: bytes, status: int, runner: Runner) -> Refused:
    """The error with which the client is answered when the engine reports an error. `data`: body of the
    engine's answer."""
    try:
        answer = msgspec.json.decode(data)
        error = answer.get("error", answer)
        sentence, kind = str(error.get("message", "")), str(error.get("type", ""))
        status = int(error.get("code", status))
    except (msgspec.MsgspecError, AttributeError, TypeError, ValueError):
        return Refused(500, data[:300].decode("utf-8", "replace") or f"the engine answered {status}")
    if kind == TOO_LONG:
        tokens, holds = error.get("n_prompt_tokens", 0), error.get("n_ctx", 0)
        return too_long(int(tokens), int(holds), runner)
    large = _TOO_LARGE.match(sentence)
    if large is not None:
        return Refused(
            400,
            f"the text has {large[1]} tokens and this model embeds at most {runner.batch}; send less, or cut "
            'it: "truncate": true',
            TOO_LONG,
        )
    if not 400 <= status < 600:
        status = 500
    return Refused(status, sentence or f"the engine answered {status}", kind)


def too_long(tokens: int, holds: int, runner: Runner) -> Refused:
    most = memory.trained_context(runner.installed.about.header)
    raise_it = (
        f"raise it with options.num_ctx (at most {most})" if most > holds else "the model holds no more"
    )
    return Refused(
        400,
        f"the prompt has {tokens} tokens and the context holds {holds}; {raise_it}, or cut the prompt: "
        '"truncate": true',
        TOO_LONG,
        n_prompt_tokens=tokens,
        n_ctx=holds,
    )


async def tokens_of(runner: Runner, text: str, *, special: bool = False) -> list[int]:
    """The tokens of a text, made by the model's tokenizer. `special`: whether a text such as `<|im_end|>`
    becomes the control token of that name; otherwise it is plain text."""
    body = {"content": text, "parse_special": special, "add_special": False}
    answer = await runner.ask("POST", "/tokenize", msgspec.json.encode(body))
    data = await runner.whole(answer)
    if answer.status != 200:
        raise error_of(data, answer.status, runner)
    return list(msgspec.json.decode(data)["tokens"])


async def text_of(runner: Runner, tokens: list[int]) -> str:
    answer = await runner.ask("POST", "/detokenize", msgspec.json.encode({"tokens": tokens}))
    data = await runner.whole(answer)
    if answer.status != 200:
        raise error_of(data, answer.status, runner)
    return str(msgspec.json.decode(data)["content"])
