"""Pages of lists: `?limit` is 1 to 100, by default 30; `?cursor` is opaque to clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import Invalid
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.limits import PAGE_DEFAULT
from relay.db.engine.database import Row, Tx
from relay.db.engine.keyset import Keyset

T = TypeVar("T")

_CURSOR_CHARS = 2048
INT64 = 2**63  # what a database column holds


def page_size(limit: int | None) -> int:
    return PAGE_DEFAULT if limit is None else limit


async def read_page(
    tx: Tx, rows: Keyset, query: PageQuery, to_wire: Callable[[Row], T], **params: Any
) -> Page[T]:
    """Read the page of a list that `query` asks for. `rows`: the SQL statements that read the list.
    `to_wire`: turns a row into an item of the page. `params`: the values of all SQL parameters except the
    limit and the position."""
    size = page_size(query.limit)
    if query.cursor is None:
        page_rows = await tx.all(rows.first, **params, limit=size + 1)
    else:
        after = dict(zip(rows.names, Cursor.read(query.cursor, *rows.blank), strict=True))
        page_rows = await tx.all(rows.next, **params, **after, limit=size + 1)
    items = [to_wire(row) for row in page_rows[:size]]
    more = len(page_rows) > size
    return Page(items=items, next_cursor=Cursor.write(*rows.key(page_rows[size - 1])) if more else None)


class Cursor:
    """The sort key of the last item of a page."""

    @staticmethod
    def write(*key: str | int) -> str:
        return b64u(msgspec.json.encode(key))

    @staticmethod
    def read(cursor: str | None, *default: str | int) -> tuple[str, ...]:
        """Decode the sort key in `cursor`; returns `default` if there is no cursor, as on the first page.
        Raises Invalid unless the key has as many values as `default`, of the same types."""
        if cursor is None:
            return default  # type: ignore[return-value]
        try:
            if len(cursor) > _CURSOR_CHARS:
                raise Invalid("too long")
            key = msgspec.json.decode(unb64u(cursor), type=list[str | int])
        except (Invalid, msgspec.DecodeError, UnicodeDecodeError):
            key = []
        large = any(isinstance(part, int) and not -INT64 <= part < INT64 for part in key)
        large |= any(isinstance(part, str) and "\0" in part for part in key)  # no database text holds it
        if large or [type(part) for part in key] != [type(part) for part in default]:
            raise Invalid(
                "this cursor does not belong to this list; start again without it", pointer="/cursor"
            )
        return tuple(key)  # type: ignore[arg-type]
