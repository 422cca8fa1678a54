"""Base classes of all resources."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]
"""A size, or a number that is counted up: what JSON readers everywhere and every database here can hold."""


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of every resource and body."""


class Actor(Model, frozen=True):
    """An account as readers see it."""

    id: str
    handle: str | None = None
    kind: Literal["user", "org", "agent", "guest"] = "user"


class Page(Model, Generic[T], frozen=True):
    """One page of a list. `next_cursor` is opaque; None on the last page."""

    items: list[T]
    next_cursor: str | None = None


class PageQuery(Model, frozen=True):
    """Which page of a list: after `cursor`, at most `limit` items."""

    cursor: str | None = None
    limit: int | None = None


class Problem(Model, omit_defaults=True, frozen=True):
    """RFC 9457 problem document. `code` is stable. It has no request id, so that two 404s are byte-equal."""

    title: str
    status: int
    code: str
    type: str = msgspec.field(default="about:blank")
    detail: str = ""
    errors: list[dict[str, str]] = msgspec.field(default_factory=list)
