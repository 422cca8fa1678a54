"""The key `launch` of `.svc.yaml`, which says how an app is started.

    launch:
      command: [python, app.py, --port, "8000"]   # words, no shell; run in the app's folder
      env: {MODEL: "{model}", LLM: "{llm.url}"}
      ready: {http: "http://127.0.0.1:8000/"}     # or {port: 8000}, or {seconds: 5}

In the words of `command` and the values of `env`, the placeholders `{llm.url} {llm.host} {llm.port} {model}`
are replaced. Other braces stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import urlsplit

import msgspec

from localstore.core.model.limits import LAUNCH_SECONDS, LAUNCH_TEXT, LAUNCH_VARIABLES, LAUNCH_WORDS

PLACEHOLDERS = ("llm.url", "llm.host", "llm.port", "model")
READY_SECONDS = 60  # for http and port, without `seconds`
_PLACEHOLDER = re.compile(r"\{(llm\.[^{}]*|model[^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class BadLaunch(Exception):
    """A key of `launch:` has a wrong value. `expected`: a description of a valid value."""

    def __init__(self, key: str, expected: str) -> None:
        super().__init__(key)
        self.key, self.expected = key, expected


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """The condition under which an app counts as started. `http`: the URL of a page on this machine, which
    must answer. `port`: a port of this machine, which must accept connections. `seconds`: how long to wait
    for the page or port; if neither is set, the app counts as started after this time."""

    http: str | None = None
    port: int | None = None
    seconds: int = READY_SECONDS


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """How an app is started. `env`: pairs of a name and a value."""

    command: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    ready: Ready | None = None

    @property
    def placeholders(self) -> set[str]:
        """The placeholders that the command and the values of `env` contain, without braces."""
        texts = (*self.command, *(value for _, value in self.env))
        return {match[1] for text in texts for match in _PLACEHOLDER.finditer(text)}

    @property
    def page(self) -> str | None:
        """The URL of the app's page, derived from `ready`. None if `ready` names neither a page nor a
        port."""
        if self.ready is None:
            return None
        return self.ready.http or (f"http://127.0.0.1:{self.ready.port}/" if self.ready.port else None)


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders replaced by their `values`. Raises KeyError for a placeholder that has
    no value."""
    return _PLACEHOLDER.sub(lambda match: values[match[1]], text)


def parse(value: Any) -> Launch | None:
    """Reads the value of `launch:` (plain lists, dicts and texts of YAML). Returns None for no value. Raises
    BadLaunch."""
    if value is None or value in ("", "~", "null"):
        return None
    if not isinstance(value, dict):
        _bad("launch", "a mapping with command, env and ready")
    _only(value, "launch", ("command", "env", "ready"))
    return Launch(command=_command(value), env=_env(value.get("env")), ready=_ready(value.get("ready")))


def _command(value: dict[str, Any]) -> tuple[str, ...]:
    words = value.get("command")
    if not isinstance(words, list) or not 1 <= len(words) <= LAUNCH_WORDS:
        _bad("launch.command", f"a list of 1 to {LAUNCH_WORDS} words, such as [python, app.py]")
    for word in words:
        _require_text(word, "launch.command")
    if not words[0].strip() or _PLACEHOLDER.search(words[0]):
        _bad("launch.command", "a list whose first word is a program")
    return tuple(words)


def _env(value: Any) -> tuple[tuple[str, str], ...]:
    if value is None or value in ("", "~", "null"):
        return ()
    if not isinstance(value, dict) or len(value) > LAUNCH_VARIABLES:
        _bad("launch.env", f"a mapping of at most {LAUNCH_VARIABLES} variables")
    for name, text in value.items():
        if not isinstance(name, str) or not _VARIABLE.fullmatch(name):
            _bad("launch.env", "a mapping whose names are letters, digits and _")
        _require_text(text, "launch.env")
    return tuple(value.items())


def _ready(value: Any) -> Ready | None:
    if value is None or value in ("", "~", "null"):
        return None
    if not isinstance(value, dict) or not value or {"http", "port"} <= value.keys():
        _bad("launch.ready", "a mapping with http or port, or seconds")
    _only(value, "launch.ready", ("http", "port", "seconds"))
    seconds = _integer(value, "seconds", LAUNCH_SECONDS)
    address = value.get("http")
    if address is not None and not _is_local(address):
        _bad("launch.ready.http", "an address of this machine, such as http://127.0.0.1:8000/")
    return Ready(http=address, port=_integer(value, "port", 65535), seconds=seconds or READY_SECONDS)


def _is_local(address: Any) -> bool:
    if not isinstance(address, str) or len(address) > LAUNCH_TEXT:
        return False
    if not address.isascii() or not address.isprintable() or " " in address:
        return False  # browsers map letters and cut blanks that urlsplit leaves
    try:
        parts = urlsplit(address)
        return (
            parts.scheme == "http"
            and parts.hostname in _LOOPBACK
            and parts.username is None
            and bool(parts.port)
        )
    except ValueError:
        return False


def _integer(value: dict[str, Any], key: str, largest: int) -> int | None:
    text = value.get(key)
    if text is None:
        return None
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,9}", text) or not 1 <= int(text) <= largest:
        _bad(f"launch.ready.{key}", f"a whole number from 1 to {largest}")
    return int(text)


def _require_text(text: Any, key: str) -> None:
    if not isinstance(text, str) or len(text) > LAUNCH_TEXT or "\0" in text:
        _bad(key, f"of texts of at most {LAUNCH_TEXT} characters")
    for match in _PLACEHOLDER.finditer(text):
        if match[1] not in PLACEHOLDERS:
            names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            _bad(key, f"without {match[0][:60]!r}: what is replaced is {names}")


def _only(value: dict[Any, Any], key: str, names: tuple[str, ...]) -> None:
    if any(name not in names for name in value):
        _bad(key, "a mapping with " + ", ".join(names) + " alone")


def _bad(key: str, expected: str) -> NoReturn:
    raise BadLaunch(key, expected)
