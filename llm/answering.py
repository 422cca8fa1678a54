"""Generates text for /api/chat and /api/generate. It makes a request to the engine from the client's body,
and turns the engine's events into the lines that the client reads."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from llm import wire
from llm.cutting import Cut, cut_chat, cut_tokens
from llm.engine import error_of, events, tokens_of
from llm.problem import Refused
from llm.runners import Runner, embeds_only
from llm.upstream import Answer
from llm.wire import Chat, Generate, Message
from localstore.core.times import rfc3339_now
from localstore.models.gguf import Header
from localstore.models.store import Installed

CHAT, COMPLETION, INFILL = "/v1/chat/completions", "/completion", "/infill"


class Work(msgspec.Struct, kw_only=True):
    """A request to the engine, and how to answer the client.

    `chat`: whether the lines of the answer have the form of /api/chat. `truncate`: whether to shorten a
    prompt that is too long. `before`: tokens of an earlier conversation that the prompt continues.
    `keeps_context`: whether the last line of the answer contains all tokens of the conversation, so that the
    client can continue it."""

    path: str
    body: dict[str, Any]
    label: str
    chat: bool
    truncate: bool
    before: list[int] = []
    keeps_context: bool = False


def capabilities(installed: Installed) -> list[str]:
    """What the model can do, in Ollama's words (`completion`, `tools`, `embedding` …). It follows from the
    header of the model's file and from the chat template."""
    header = installed.about.header
    template = template_of(installed)
    abilities = ["embedding"] if embeds_only(header) else ["completion"]
    if "tools" in template:
        abilities.append("tools")
    if "<think>" in template or "enable_thinking" in template or "reasoning_content" in template:
        abilities.append("thinking")
    if installed.projector is not None:
        abilities.append("vision")
    if _can_insert(header):
        abilities.append("insert")
    return abilities


def _can_insert(header: Header) -> bool:
    return any(
        name in header.fields
        for name in ("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id")
    )


def template_of(installed: Installed) -> str:
    return installed.record.template or installed.about.header.text("tokenizer.chat_template")


def work_of_chat(request: Chat, installed: Installed, label: str) -> Work:
    """Make the request to the engine from a body of /api/chat. `label`: name of the model in the answer.
    Raises Refused for an invalid body."""
    earlier = [msgspec.convert(message, Message) for message in installed.record.messages]
    messages = [*earlier, *(request.messages or [])]
    if installed.record.system and not any(message.role == "system" for message in messages):
        messages.insert(0, Message(role="system", content=installed.record.system))
    body = _body(request, installed)
    body["messages"] = _messages(messages, installed)
    if request.tools:
        _require(installed, "tools", "take tools")
        body["tools"] = request.tools
    return Work(path=CHAT, body=body, label=label, chat=True, truncate=bool(request.truncate))


def work_of_generate(request: Generate, installed: Installed, label: str) -> Work:
    """Make the request to the engine from a body of /api/generate. `label`: name of the model in the answer.
    Raises Refused for an invalid body."""
    if request.template:
        raise Refused(
            400, "template: the template of a request is not used; make a model with it: /api/create"
        )
    body, prompt = _body(request, installed), request.prompt or ""
    common: dict[str, Any] = {"label": label, "chat": False, "truncate": bool(request.truncate)}
    if request.suffix:
        _require(installed, "insert", "insert between a prompt and a suffix")
        body |= {"input_prefix": prompt, "input_suffix": request.suffix, "prompt": ""}
        return Work(path=INFILL, body=body, **common)
    if request.raw:
        if request.images:
            raise Refused(400, "images: a raw prompt takes none")
        return Work(path=COMPLETION, body={**body, "prompt": prompt}, **common)
    system = request.system if request.system is not None else installed.record.system
    messages = [Message(role="system", content=system)] if system else []
    messages.append(Message(role="user", content=prompt, images=request.images))
    body["messages"] = _messages(messages, installed)
    return Work(
        path=CHAT, body=body, before=request.context or [], keeps_context=not request.images, **common
    )


def _body(request: Generate | Chat, installed: Installed) -> dict[str, Any]:
    body = wire.options_of({**installed.record.parameters, **(request.options or {})})
    body |= wire.format_of(request.format)
    if request.think is not None and request.think is not False:
        _require(installed, "thinking", "think")
    if isinstance(request.think, bool):
        body["chat_template_kwargs"] = {"enable_thinking": request.think}
    elif request.think:
        body["chat_template_kwargs"] = {"reasoning_effort": request.think}
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


def _require(installed: Installed, capability: str, words: str) -> None:
    if capability not in capabilities(installed):
        raise Refused(400, f"model '{installed.name.short}' does not {words}")


def _messages(messages: list[Message], installed: Installed) -> list[dict[str, Any]]:
    """The messages of a chat as the engine expects them. Raises Refused if one is invalid."""
    encoded: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for message in messages:
        entry: dict[str, Any] = {"role": message.role, "content": message.content or ""}
        if message.role not in ("system", "user", "assistant", "tool", "developer"):
            raise Refused(
                400, f"messages: the role {message.role[:40]!r} is none of system, user, assistant, tool"
            )
        if message.images:
            _require(installed, "vision", "take images")
            entry["content"] = [
                {"type": "text", "text": message.content or ""},
                *map(wire.picture, message.images),
            ]
        if message.thinking:
            entry["reasoning_content"] = message.thinking
        if message.tool_calls:
            entry["tool_calls"] = [_call(call) for call in message.tool_calls]
            open_calls = [call["id"] for call in entry["tool_calls"]]
        if message.role == "tool":
            entry["tool_call_id"] = message.tool_call_id or (open_calls.pop(0) if open_calls else "call")
            if message.tool_name:
                entry["name"] = message.tool_name
        encoded.append(entry)
    return encoded


def _call(call: wire.ToolCall) -> dict[str, Any]:
    arguments = call.function.arguments
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments or {}).decode()
    call_id = call.id or f"call_{secrets.token_hex(4)}"
    return {"id": call_id, "type": "function", "function": {"name": call.function.name, "arguments": text}}


async def lines(work: Work, runner: Runner, began: int, load_ns: int) -> AsyncGenerator[dict[str, Any], None]:
    """Send the request to the runner, and yield the lines of the answer; the last one has `done`. `began`:
    when the request came (`time.monotonic_ns`); `load_ns`: how long the model took to load. Raises Refused if
    the engine refuses or fails."""
    answer: Answer | None = None
    cut: Cut | None = None
    prompt: list[int] = []
    if work.path == CHAT and work.before:
        prompt = await _replace_chat_by_tokens(work, runner)
    try:
        answer = await runner.ask("POST", work.path, msgspec.json.encode(work.body))
        if answer.status != 200:
            error = error_of(await runner.whole(answer), answer.status, runner)
            if not (work.truncate and error.kind == "exceed_context_size_error"):
                raise error
            answer.close()
            cut = await (cut_chat if work.path == CHAT else cut_tokens)(work.body, runner)
            answer = await runner.ask("POST", work.path, msgspec.json.encode(work.body))
            if answer.status != 200:
                raise error_of(await runner.whole(answer), answer.status, runner)
        reply = _AnswerLines(work)
        async with aclosing(events(runner, answer)) as source:
            async for event in source:
                for line in reply.hear(event):
                    yield line
    finally:
        if answer is not None:
            answer.close()
    context = await _context(work, runner, prompt, reply.text) if work.keeps_context else None
    yield reply.last(began, load_ns, cut, context)


class _AnswerLines:
    """Turns the engine's events into lines of an answer, and collects counts and times for the last line."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.text = ""
        self._reason = "stop"
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}
        self._calls: dict[int, dict[str, str]] = {}

    def hear(self, event: dict[str, Any]) -> list[dict[str, Any]]:
        self._timings = event.get("timings") or self._timings
        if "content" in event and "choices" not in event:  # of /completion
            if event.get("stop"):
                self._usage = {
                    "prompt_tokens": event.get("tokens_evaluated", 0),
                    "completion_tokens": event.get("tokens_predicted", 0),
                }
                self._reason = "length" if event.get("stop_type") == "limit" else "stop"
            return self._spoken(event["content"], "")
        self._usage = event.get("usage") or self._usage
        output: list[dict[str, Any]] = []
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            self._reason = choice.get("finish_reason") or self._reason
            for call in delta.get("tool_calls") or ():
                gathered = self._calls.setdefault(
                    call.get("index", 0), {"name": "", "arguments": "", "id": ""}
                )
                function = call.get("function") or {}
                gathered["id"] += call.get("id") or ""
                gathered["name"] += function.get("name") or ""
                gathered["arguments"] += function.get("arguments") or ""
            output += self._spoken(delta.get("content") or "", delta.get("reasoning_content") or "")
        return output

    def _spoken(self, text: str, thinking: str) -> list[dict[str, Any]]:
        if not text and not thinking:
            return []
        self.text += text
        return [{**self.line(text, thinking), "done": False}]

    def line(self, text: str, thinking: str = "", calls: list[Any] | None = None) -> dict[str, Any]:
        more: dict[str, Any] = {"thinking": thinking} if thinking else {}
        if calls:
            more["tool_calls"] = calls
        base = {"model": self._work.label, "created_at": rfc3339_now()}
        if self._work.chat:
            return {**base, "message": {"role": "assistant", "content": text, **more}}
        return {**base, "response": text, **more}

    def last(self, began: int, load_ns: int, cut: Cut | None, context: list[int] | None) -> dict[str, Any]:
        timings, usage = self._timings, self._usage
        line = {
            **self.line("", calls=self._finish_calls()),
            "done": True,
            "done_reason": "length" if self._reason == "length" else "stop",
            "total_duration": time.monotonic_ns() - began,
            "load_duration": load_ns,
            "prompt_eval_count": usage.get("prompt_tokens", 0),
            "prompt_eval_duration": int((timings.get("prompt_ms") or 0) * 1e6),
            "eval_count": usage.get("completion_tokens", 0),
            "eval_duration": int((timings.get("predicted_ms") or 0) * 1e6),
        }
        if context is not None:
            line["context"] = context
        if cut is not None:
            line["truncated"] = {"prompt_tokens": cut.before, "kept_tokens": cut.after}
        return line

    def _finish_calls(self) -> list[dict[str, Any]]:
        calls = []
        for index, call in sorted(self._calls.items()):
            try:
                arguments = msgspec.json.decode(call["arguments"] or "{}")
            except msgspec.MsgspecError:  # cut by num_predict
                arguments = {"": call["arguments"]}
            function = {"index": index, "name": call["name"], "arguments": arguments}
            calls.append({**({"id": call["id"]} if call["id"] else {}), "function": function})
        return calls


async def _replace_chat_by_tokens(work: Work, runner: Runner) -> list[int]:
    """Replace the chat in the request by a prompt in tokens: the tokens of the earlier conversation, then
    those of the chat. Returns the prompt."""
    prompt = work.before + await _render_chat(work, runner)
    for name in ("messages", "chat_template_kwargs"):
        work.body.pop(name, None)
    work.path, work.body["prompt"] = COMPLETION, prompt
    schema = work.body.pop("response_format", {})
    if schema:
        work.body["json_schema"] = schema.get("json_schema", {}).get("schema", {})
    return prompt


async def _render_chat(work: Work, runner: Runner) -> list[int]:
    """The tokens of the chat in the request. The model's template first turns the chat's messages into
    text."""
    template_input = {
        name: work.body[name] for name in ("messages", "tools", "chat_template_kwargs") if name in work.body
    }
    answer = await runner.ask("POST", "/apply-template", msgspec.json.encode(template_input))
    data = await runner.whole(answer)
    if answer.status != 200:
        raise error_of(data, answer.status, runner)
    return await tokens_of(runner, str(msgspec.json.decode(data)["prompt"]), special=True)


async def _context(work: Work, runner: Runner, prompt: list[int], text: str) -> list[int]:
    prompt = prompt or await _render_chat(work, runner)
    return prompt + await tokens_of(runner, text)
