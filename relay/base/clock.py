"""Time as the relay writes it: integer milliseconds inside, RFC 3339 UTC outside."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@lru_cache(4096)  # whoever asks for a repository or a seal again asks for its moments again
def rfc3339(ms: int) -> str:
    """The time as text: `2026-11-21T06:30:00.123Z`."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def rfc3339_or_none(ms: int | None) -> str | None:
    return None if ms is None else rfc3339(ms)
