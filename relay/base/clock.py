"""Times of the relay: integers in milliseconds in its code and database, RFC 3339 UTC in answers."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z, the last moment with a year of four digits


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@lru_cache(4096)  # whoever asks for a repository or a seal again asks for its moments again
def rfc3339(ms: int) -> str:
    """The time as text: `2026-11-21T06:30:00.123Z`."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def to_milliseconds(moment: datetime) -> int:
    """Convert a datetime that has a time zone to milliseconds since 1970."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def rfc3339_or_none(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)
