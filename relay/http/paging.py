"""Cursor pages: `?limit` 1..100, default 30; `?cursor` is opaque to everybody else."""

from __future__ import annotations

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid
from localstore.core.limits import PAGE_DEFAULT

_CURSOR_CHARS = 2048
INT64 = 2**63  # what a database column holds


def page_size(limit: int | None) -> int:
    return PAGE_DEFAULT if limit is None else limit


class Cursor:
    """The sort key of the last item of a page."""

    @staticmethod
    def write(*key: str | int) -> str:
        return b64u(msgspec.json.encode(key))

    @staticmethod
    def read(cursor: str | None, *default: str | int) -> tuple[str, ...]:
        """The key, or `default` on a first page. Members must have the default's types."""
        if cursor is None:
            return default  # type: ignore[return-value]
        try:
            if len(cursor) > _CURSOR_CHARS:
                raise Invalid("too long")
            key = msgspec.json.decode(unb64u(cursor), type=list[str | int])
        except (Invalid, msgspec.DecodeError, UnicodeDecodeError):
            key = []
        large = any(isinstance(part, int) and not -INT64 <= part < INT64 for part in key)
        if large or [type(part) for part in key] != [type(part) for part in default]:
            raise Invalid(
                "this cursor does not belong to this list; start again without it", pointer="/cursor"
            )
        return tuple(key)  # type: ignore[arg-type]
