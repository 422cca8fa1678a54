"""Writes log lines: one JSON object each on standard error, so that nothing a client sends can forge a line.

The lines of requests are collected and written together, at most `DELAY` seconds after they were made: a
write for each line took a third of the CPU time of a small answer. A warning or an error is written at once,
after the lines that wait.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from localstore.core.errors import SvcError

DELAY = 0.2  # seconds

_FORWARDED = (  # loggers of the standard library; `relay`: of modules that also run without a relay's log
    "relay",
    "sanic.root",
    "sanic.error",
    "sanic.server",
    "sanic.websockets",
    "asyncio",
    "aiosqlite",
    "asyncssh",
)


def configure(level: str) -> None:
    """Set up logging once, at start. `level`: a name of a level in the standard library's logging."""
    number = getattr(logging, level.upper())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _shorten_refusal,
            structlog.processors.format_exc_info,
            _render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: _LINES,
        cache_logger_on_first_use=False,
    )
    _LINES.least_level = number
    handler = _Forward()
    for name in _FORWARDED:
        forwarded = logging.getLogger(name)
        forwarded.handlers = [handler]
        forwarded.propagate = False
        forwarded.setLevel(max(number, logging.WARNING))


class _Lines:
    """Collects log lines and writes them together. `least_level`: the lowest level that is written."""

    def __init__(self) -> None:
        self.least_level = logging.WARNING
        self._waiting: list[str | RequestLine] = []
        self._due: asyncio.TimerHandle | None = None
        atexit.register(self.flush)

    def info(self, line: str | RequestLine) -> None:
        self._waiting.append(line)
        if self._due is None or self._due.cancelled():
            try:
                self._due = asyncio.get_running_loop().call_later(DELAY, self.flush)
            except RuntimeError:  # no loop runs: nobody would come back
                self.flush()

    debug = info

    def warning(self, line: str) -> None:
        self._waiting.append(line)
        self.flush()

    error = critical = warning

    def flush(self) -> None:
        lines, self._waiting, self._due = self._waiting, [], None
        if lines:
            sys.stderr.write("\n".join(map(_text, lines)) + "\n")
            sys.stderr.flush()


_LINES = _Lines()
_JSON = msgspec.json.Encoder(enc_hook=repr)


def _shorten_refusal(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Replace the traceback of a SvcError, which is raised on purpose, by its sentence: a database that is
    stopped for a minute would fill the log."""
    exc_info = event.get("exc_info")
    error = sys.exc_info()[1] if exc_info is True else exc_info
    error = error[1] if isinstance(error, tuple) else error
    if isinstance(error, SvcError):
        del event["exc_info"]
        event["error"] = str(error)
    return event


def _render(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    return _JSON.encode(event).decode("utf-8", "replace")


def logger() -> Any:
    """A structlog logger: `logger().info("event", key=value)`. Never pass it a secret."""
    return structlog.get_logger()


class RequestLine(msgspec.Struct):
    """The log line of one request. `us`: microseconds to the end of the answer."""

    request_id: str
    method: str
    route: str
    status: int
    us: int
    account: str | None
    event: str = "request"
    level: str = "info"
    timestamp: datetime = msgspec.field(default_factory=lambda: datetime.now(UTC))


def request_line(line: RequestLine) -> None:
    """Write the line if its level is enabled. This bypasses structlog, which takes four times as long, and
    encodes the line when it is written, not during the request."""
    if _LINES.least_level <= logging.INFO:
        _LINES.info(line)


def _text(line: str | RequestLine) -> str:
    return line if isinstance(line, str) else _JSON.encode(line).decode()


class _Forward(logging.Handler):
    """Writes records of the standard library's logging in the form of the relay's other lines."""

    def emit(self, record: logging.LogRecord) -> None:
        exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
        method = "error" if record.levelno >= logging.ERROR else "warning"
        getattr(structlog.get_logger(), method)(record.getMessage(), logger=record.name, exc_info=exc_info)
