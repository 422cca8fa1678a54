"""Base classes of all resources."""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

import msgspec

from localstore.core.model.limits import DESCRIPTION_CHARS, HANDLE_CHARS, LABEL_CHARS, PAGE_MAX
from localstore.core.names import NAME_PATTERN, NAME_RULE

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]
"""A size, or a number that is counted up: what JSON readers everywhere and every database here can hold."""
Size = Annotated[int, msgspec.Meta(ge=1, le=PAGE_MAX)]
"""How many items of a list one page has at most."""
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=LABEL_CHARS)]
"""What people call a device or a token."""
Description = Annotated[str, msgspec.Meta(max_length=DESCRIPTION_CHARS)]
RepoName = Annotated[
    str, msgspec.Meta(min_length=1, max_length=HANDLE_CHARS, pattern=NAME_PATTERN, description=NAME_RULE)
]
"""The name of a repository, or a handle, before it is put into lower case (see `localstore.core.names`)."""


_HIDDEN = r"\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"


def visible(chars: int) -> msgspec.Meta:
    """A msgspec constraint for names on one line: 1 to `chars` visible characters, with no space at the start
    or end."""
    return msgspec.Meta(
        min_length=1,
        max_length=chars,
        pattern=rf"^(?!\s)[^{_HIDDEN}]+(?<!\s)(?!\n)$",
        description=f"1 to {chars} visible characters without a space at either end",
    )


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Base of every resource and answer. Unknown members are ignored, since newer relays may send more."""


class Sent(Model, frozen=True, forbid_unknown_fields=True):
    """Base of every request body. Unknown members are refused, so that a client learns that the relay does
    not know them."""


class Actor(Model, frozen=True):
    """An account, as answers name it."""

    id: str
    handle: str | None = None
    kind: Literal["user", "org", "agent", "guest"] = "user"


class Page(Model, Generic[T], frozen=True):
    """One page of a list. `next_cursor`: the `cursor` with which the next page is requested; None on the last
    page."""

    items: list[T]
    next_cursor: str | None = None


class PageQuery(Model, frozen=True):
    """Which page of a list to return: the items after `cursor`, at most `limit`."""

    cursor: str | None = None
    limit: Size | None = None


class Problem(Model, omit_defaults=True, frozen=True):
    """The body of an error (RFC 9457). `code` is stable. There is no request id, so that all answers 404 have
    equal bytes."""

    title: str
    status: int
    code: str
    type: str = msgspec.field(default="about:blank")
    detail: str = ""
    errors: list[dict[str, str]] = msgspec.field(default_factory=list)
