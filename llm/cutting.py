"""Shortens a prompt that is longer than the context, if the client wants that, by dropping its oldest
part."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from llm.engine import error_of, text_of, tokens_of, too_long
from llm.runners import Runner

_ROUNDS = 8


class Cut(NamedTuple):
    """How a prompt was shortened: its number of tokens before and after."""

    before: int
    after: int


def _room(body: dict[str, Any], runner: Runner) -> int:
    """The number of tokens that a prompt may have, so that the context also has space for an answer."""
    holds = runner.plan.context
    most = body.get("max_tokens") or 0
    return holds - min(max(int(most), holds // 8, 1), holds // 2)


async def cut_chat(body: dict[str, Any], runner: Runner) -> Cut:
    """Shorten the chat in `body` until it fits the context. The oldest messages are dropped first, then the
    beginning of the last message; system messages stay. Returns the numbers of tokens before and after."""
    room = _room(body, runner)
    before = count = await _count(body, runner)
    messages = body["messages"]
    while count > room:
        old = next(
            (
                at
                for at, message in enumerate(messages[:-1])
                if message["role"] not in ("system", "developer")
            ),
            None,
        )
        if old is None:
            break
        del messages[old]
        count = await _count(body, runner)
    for _ in range(_ROUNDS):
        if count <= room:
            return Cut(before, count)
        last = messages[-1]
        tokens = await tokens_of(runner, last["content"]) if isinstance(last["content"], str) else []
        if len(tokens) <= count - room:
            break
        last["content"] = await text_of(runner, tokens[count - room + 1 :])
        count = await _count(body, runner)
    raise too_long(count, runner.plan.context, runner)


async def cut_tokens(body: dict[str, Any], runner: Runner) -> Cut:
    """Shorten the prompt in `body`, which has no chat, by dropping the prompt's beginning. Returns the
    numbers of tokens before and after."""
    prompt = body.get("prompt")
    tokens = prompt if isinstance(prompt, list) else await tokens_of(runner, str(prompt or ""), special=True)
    room = _room(body, runner)
    body["prompt"] = tokens[-room:]
    return Cut(len(tokens), min(len(tokens), room))


async def _count(body: dict[str, Any], runner: Runner) -> int:
    template_input = {
        name: body[name] for name in ("messages", "tools", "chat_template_kwargs") if name in body
    }
    answer = await runner.ask("POST", "/apply-template", msgspec.json.encode(template_input))
    data = await runner.whole(answer)
    if answer.status != 200:
        raise error_of(data, answer.status, runner)
    return len(await tokens_of(runner, str(msgspec.json.decode(data)["prompt"]), special=True))
