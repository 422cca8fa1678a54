"""An endpoint: one route, declared once beside the structs of its noun. The relay serves it, the client calls
it, and the OpenAPI document and the reference are made from it.

    CREATE = Endpoint("POST", f"{REPO}/labels", body=LabelCreate, returns=Label, status=201)
    LIST = Endpoint("GET", f"{REPO}/labels", query=PageQuery, returns=Page[Label])
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from localstore.core.identity.request_signature import SAFE_METHODS
from localstore.core.model.limits import JSON_ANSWER

T = TypeVar("T")

REPO = "/api/v1/repos/{id}"
_PARAMETER = re.compile(r"\{([a-z0-9_]+)(\.\.\.)?\}")


class Endpoint(msgspec.Struct, Generic[T], frozen=True):
    """An endpoint of the API. `path`: `{name}` in it stands for one segment, `{name...}` for the rest of the
    path.

    - `returns`: the struct of the answer; `bytes` for an answer that is not JSON, NoneType for one without a
      body.
    - `instead`: another struct, which the relay returns if a member of the query asks for it.
    - `repeatable`: the relay answers a repeated request with its first answer, even without an
      Idempotency-Key.
    - `keyed`: False if requests never have an Idempotency-Key. Such requests come before an account is signed
      in, or their body is stored under its own digest, so that a repetition changes nothing.
    - `cap`: how many bytes of the answer a client reads at most."""

    method: str
    path: str
    returns: type[T] = type(None)  # type: ignore[assignment]
    body: Any = None
    query: Any = None
    status: int = 200
    instead: Any = None
    repeatable: bool = False
    keyed: bool = True
    cap: int = JSON_ANSWER

    @property
    def takes_key(self) -> bool:
        """Whether a request may have an Idempotency-Key, because it changes something. With such a key the
        relay answers a repeated request with its first answer. Clients send one unless the endpoint is
        `repeatable`."""
        return self.keyed and self.method not in SAFE_METHODS

    @property
    def shape(self) -> Any:
        """The type of the answer's JSON: `returns`, or a union if the endpoint also has `instead`. None if
        the answer is not JSON."""
        if self.returns in (type(None), bytes):
            return None
        return self.returns if self.instead is None else self.returns | self.instead

    def target(self, **values: str) -> str:
        """The path with its parameters filled in, percent-encoded. Raises KeyError if a parameter is
        missing."""
        return _PARAMETER.sub(lambda match: quote(values[match[1]], safe="/" if match[2] else ""), self.path)
