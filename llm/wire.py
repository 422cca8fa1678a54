"""The bodies of requests to /api, and the translation of their members for requests to the engine."""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any, TypeVar

import msgspec

from llm.problem import Refused

T = TypeVar("T")
KEEP_SECONDS = 300.0
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")


class Named(msgspec.Struct, kw_only=True):
    """A body that names a model. `name`: an older name of the member `model`."""

    model: str | None = None
    name: str | None = None

    @property
    def named(self) -> str:
        return require(self.model or self.name, "model")


class Call(msgspec.Struct, kw_only=True):
    """The members that bodies of requests for text and for embeddings have in common."""

    model: str | None = None
    stream: bool | None = None
    keep_alive: float | str | None = None
    options: dict[str, Any] | None = None
    truncate: bool | None = None


class Generate(Call, kw_only=True):
    prompt: str | None = None
    suffix: str | None = None
    system: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None
    format: Any = None
    images: list[str] | None = None
    think: bool | str | None = None


class Function(msgspec.Struct, kw_only=True):
    name: str
    arguments: Any = None


class ToolCall(msgspec.Struct, kw_only=True):
    function: Function
    id: str | None = None


class Message(msgspec.Struct, kw_only=True):
    role: str
    content: str | None = None
    thinking: str | None = None
    images: list[str] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_name: str | None = None
    tool_call_id: str | None = None


class Chat(Call, kw_only=True):
    messages: list[Message] | None = None
    tools: list[dict[str, Any]] | None = None
    format: Any = None
    think: bool | str | None = None


class Embed(Call, kw_only=True):
    input: str | list[str] | None = None
    dimensions: int | None = None


class Embeddings(Call, kw_only=True):
    prompt: str | None = None


class Pull(Named, kw_only=True):
    stream: bool | None = None


class Show(Named, kw_only=True):
    verbose: bool | None = None


class Copy(msgspec.Struct, kw_only=True):
    source: str | None = None
    destination: str | None = None


class Create(Named, kw_only=True):
    from_: str | None = msgspec.field(name="from", default=None)
    files: dict[str, str] | None = None
    stream: bool | None = None
    system: str | None = None
    template: str | None = None
    license: str | list[str] | None = None
    parameters: dict[str, Any] | None = None
    messages: list[Message] | None = None
    quantize: str | None = None
    adapters: dict[str, str] | None = None


class OfEngine(msgspec.Struct, kw_only=True):
    """The members of a body of /v1 that the front reads. The whole body is passed on unchanged."""

    model: str | None = None
    messages: Any = None
    input: Any = None
    prompt: Any = None
    stream: bool | None = None
    keep_alive: float | str | None = None
    options: dict[str, Any] | None = None


def decode(data: bytes, kind: type[T]) -> T:
    """Decode the body of a request from JSON as the struct `kind`. Raises Refused if the body is not valid
    for it."""
    if not data.strip():
        raise Refused(400, "missing request body")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(400, f"the body is not what this route takes: {error}") from None


def require(value: str | None, member: str) -> str:
    if not value:
        raise Refused(400, f"{member} is required")
    return value


def seconds(value: float | str | None) -> float:
    """The seconds for which a model stays loaded without requests. `value`: seconds, or a duration such as
    `5m` or `1h30m`. A negative value means for ever; None means the default. Raises Refused for other
    values."""
    if value is None:
        return KEEP_SECONDS
    if isinstance(value, str):
        text = value.strip()
        sign = -1.0 if text.startswith("-") else 1.0
        text = text.lstrip("+-")
        parts = _DURATION.findall(text)
        if text == "0":
            value = 0.0
        elif not parts or "".join(number + unit for number, unit in parts) != text:
            raise Refused(
                400, f'keep_alive: invalid duration "{value[:80]}"; write seconds, or 5m, 1h30m, -1'
            )
        else:
            value = sign * sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not math.isfinite(value):
        raise Refused(400, "keep_alive: it must be a number of seconds")
    return math.inf if value < 0 else min(float(value), 10 * 365 * 86400.0)


_NUMBER, _WHOLE = (int, float), (int,)
_OPTIONS: dict[str, tuple[str, tuple[type, ...]]] = {
    "num_predict": ("max_tokens", _WHOLE),
    "temperature": ("temperature", _NUMBER),
    "top_k": ("top_k", _WHOLE),
    "top_p": ("top_p", _NUMBER),
    "min_p": ("min_p", _NUMBER),
    "typical_p": ("typical_p", _NUMBER),
    "seed": ("seed", _WHOLE),
    "repeat_last_n": ("repeat_last_n", _WHOLE),
    "repeat_penalty": ("repeat_penalty", _NUMBER),
    "presence_penalty": ("presence_penalty", _NUMBER),
    "frequency_penalty": ("frequency_penalty", _NUMBER),
    "num_keep": ("n_keep", _WHOLE),
}
_LARGEST = 1 << 31


def options_of(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a request, named as the engine names them. Options that the engine lacks are left out.
    Raises Refused for a wrong value."""
    engine_options: dict[str, Any] = {}
    for name, (theirs, kinds) in _OPTIONS.items():
        value = options.get(name)
        if value is None:
            continue
        if kinds is _WHOLE and isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, (int, float)) or not isinstance(value, kinds) or isinstance(value, bool):
            value = _LARGEST
        if not abs(value) < _LARGEST:
            raise Refused(400, f"options.{name} must be a {'whole ' if kinds is _WHOLE else ''}number")
        engine_options[theirs] = int(value) & 0xFFFFFFFF if name == "seed" else value
    stop = options.get("stop")
    if stop is not None:
        stop = [stop] if isinstance(stop, str) else stop
        if not isinstance(stop, list) or len(stop) > 64 or not all(isinstance(text, str) for text in stop):
            raise Refused(400, "options.stop must be a text or a list of at most 64 texts")
        engine_options["stop"] = [text for text in stop if text]
    return engine_options


def context_of(options: dict[str, Any]) -> int | None:
    """The length of the context in tokens from the option `num_ctx`; None if the option is missing or 0.
    Raises Refused for a wrong value."""
    value = options.get("num_ctx")
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LARGEST:
        raise Refused(400, "options.num_ctx must be a whole number of tokens")
    return max(value, 16) if value else None


def format_of(shape: Any) -> dict[str, Any]:
    """Make the member `response_format` of a request to the engine. `shape`: the member `format` of the
    client's body. Returns {} if the client wants no format. Raises Refused for a wrong value."""
    if shape is None or shape == "":
        return {}
    if shape == "json":
        return {"response_format": {"type": "json_object"}}
    if isinstance(shape, dict):
        return {
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": shape}}
        }
    raise Refused(400, 'invalid format: expected "json" or a JSON Schema object')


_IMAGES = ((b"\x89PNG", "png"), (b"\xff\xd8", "jpeg"), (b"GIF8", "gif"), (b"BM", "bmp"), (b"RIFF", "webp"))


def picture(data: str) -> dict[str, Any]:
    """Make a picture of a message into the form that the engine expects. `data`: base64, or a `data:` URL
    with base64. Raises Refused if it is no picture."""
    text = data.partition(",")[2] if data.startswith("data:") else data
    try:
        head = base64.b64decode(text[:64] + "=" * (-len(text[:64]) % 4), validate=True)
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(400, "an image is not base64") from None
    kind = next((name for magic, name in _IMAGES if head.startswith(magic)), "")
    if not kind:
        raise Refused(400, "an image is none of PNG, JPEG, GIF, BMP and WebP")
    return {"type": "image_url", "image_url": {"url": f"data:image/{kind};base64,{text}"}}
