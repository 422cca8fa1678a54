"""A route as both sides know it: declared once beside the structs of its noun, served by the relay, called by
the client, and the source of the OpenAPI document and the reference.

    CREATE = Endpoint("POST", f"{REPO}/labels", body=LabelCreate, returns=Label, status=201)
    LIST = Endpoint("GET", f"{REPO}/labels", query=PageQuery, returns=Page[Label])
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

T = TypeVar("T")

REPO = "/api/v1/repos/{id}"
_PARAMETER = re.compile(r"\{([a-z0-9_]+)(\.\.\.)?\}")


class Endpoint(msgspec.Struct, Generic[T], frozen=True):
    """`path` has `{name}` for one segment and `{name...}` for the rest of the path. `returns`: the struct of
    the answer, NoneType if it has no body. `repeatable`: the relay
    answers a repeat with its first answer without an Idempotency-Key."""

    method: str
    path: str
    returns: type[T] = type(None)  # type: ignore[assignment]
    body: Any = None
    query: Any = None
    status: int = 200
    repeatable: bool = False

    @property
    def creates(self) -> bool:
        """Whether a request makes something new: the client sends an Idempotency-Key, and the relay answers a
        repeat with its first answer."""
        return (self.method, self.status) == ("POST", 201)

    def target(self, **values: str) -> str:
        """The path with its parameters filled in, percent-encoded. KeyError for one that is missing."""
        return _PARAMETER.sub(lambda found: quote(values[found[1]], safe="/" if found[2] else ""), self.path)
