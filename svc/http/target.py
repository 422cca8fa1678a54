"""Builds the target of a request: its path and query, percent-encoded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from svc.http.checked import require_valid

Query = Mapping[str, "str | int | bool | None"]


def query_of(query: msgspec.Struct | None) -> dict[str, Any]:
    """Return the members of a query struct as a dict, with their names in requests. Raises UsageError if one
    is invalid."""
    return {} if query is None else msgspec.to_builtins(require_valid(query))


def full_target(path: str, query: Query | None) -> str:
    """Return the path followed by the query. Members of the query that are None are left out."""
    given = {name: _text(value) for name, value in (query or {}).items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _text(value: str | int | bool) -> str:
    return ("1" if value else "0") if isinstance(value, bool) else str(value)
