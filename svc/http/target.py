"""What a request asks for: its path and query, percent-encoded."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode

Query = Mapping[str, "str | int | bool | None"]


def segment(text: str) -> str:
    """One path segment, percent-encoded whole: a slash in a branch name is part of the name."""
    return quote(text, safe="")


def segments(text: str) -> str:
    """The rest of a path, percent-encoded between its slashes."""
    return quote(text, safe="/")


def full_target(path: str, query: Query | None) -> str:
    """The path with the query that is not None."""
    given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _text(value: str | int | bool) -> str:
    return ("1" if value else "0") if isinstance(value, bool) else str(value)
