"""Moments as text: RFC 3339 in UTC, with a Z at the end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

Precision = Literal["auto", "seconds", "milliseconds", "microseconds"]


def rfc3339(moment: datetime | float, precision: Precision = "auto") -> str:
    """The moment as text: `2026-01-31T23:59:59.123Z`. `moment`: a datetime with a time zone, or seconds since
    1970. `precision`: "auto" writes microseconds unless they are 0."""
    at = moment.astimezone(UTC) if isinstance(moment, datetime) else datetime.fromtimestamp(moment, UTC)
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def rfc3339_now() -> str:
    """This moment as text, with microseconds."""
    return rfc3339(datetime.now(UTC), "microseconds")
