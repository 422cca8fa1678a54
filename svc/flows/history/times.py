"""Parses times that people type: a date, a moment, or how long ago."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from localstore.core.errors import UsageError

_AGO = re.compile(r"([0-9]{1,6})[ .]?([a-z]+?)s?(?:[ .]ago)?", re.ASCII | re.IGNORECASE)
_UNITS: dict[str, float] = {
    **dict.fromkeys(("s", "sec", "second"), 1),
    **dict.fromkeys(("m", "min", "minute"), 60),
    **dict.fromkeys(("h", "hour"), 3600),
    **dict.fromkeys(("d", "day"), 86400),
    **dict.fromkeys(("w", "week"), 7 * 86400),
    "month": 30 * 86400,
    **dict.fromkeys(("y", "year"), 365 * 86400),
}


def moment(typed: str, now: datetime, option: str, end: bool = False) -> datetime:
    """Return the moment that the user typed as `2026-03-01`, `2026-03-01T12:00`, `today`, `yesterday`, `3
    days ago` or `3d`. If no UTC offset is typed, the moment has the offset of `now`. A day means its
    beginning or, with `end`, its last moment. Raises UsageError, which names the `option`."""
    text = " ".join(typed.split())
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    named = {"now": now, "today": day, "yesterday": day - timedelta(days=1)}
    whole_day = text in ("today", "yesterday") or _is_day(text)
    instant = named.get(text)
    try:
        if instant is None and (match := _AGO.fullmatch(text)) and match[2].lower() in _UNITS:
            instant = now - timedelta(seconds=int(match[1]) * _UNITS[match[2].lower()])
        if instant is None:
            instant = datetime.fromisoformat(text)
            instant = instant if instant.tzinfo else instant.replace(tzinfo=now.tzinfo)
        return instant + timedelta(days=1, microseconds=-1) if end and whole_day else instant
    except (ValueError, OverflowError):
        raise UsageError(
            f"{typed} is not a time; say {option} 2026-03-01, {option} yesterday or {option} '3 days ago'"
        ) from None


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
