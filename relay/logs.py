"""Log lines: one JSON object each on standard error, so that nothing a client sends can forge a line."""

from __future__ import annotations

import logging
import sys
from typing import Any

import structlog

_LIBRARIES = ("sanic.root", "sanic.error", "sanic.server", "sanic.websockets", "asyncio", "aiosqlite")


def configure(level: str) -> None:
    """Set up once, at start. `level` is a name of the standard library's logging."""
    number = getattr(logging, level.upper())
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = _Forward()
    for name in _LIBRARIES:
        library = logging.getLogger(name)
        library.handlers = [handler]
        library.propagate = False
        library.setLevel(max(number, logging.WARNING))


def logger() -> Any:
    """A structlog logger: `logger().info("event", key=value)`. Never pass it a secret."""
    return structlog.get_logger()


class _Forward(logging.Handler):
    """Libraries log through the standard library; their lines take the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
        method = "error" if record.levelno >= logging.ERROR else "warning"
        getattr(structlog.get_logger(), method)(record.getMessage(), library=record.name, exc_info=exc_info)
