"""Pages of a keyset, put together, are the list in order: whatever the directions, ties and page sizes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Column, MetaData, String, Table, create_engine, insert, select

from relay.db.engine.keyset import Keyset

ITEM = Table("item", MetaData(), Column("kind", String), Column("at", BigInteger), Column("id", String))
ROWS = st.sets(st.tuples(st.sampled_from("abc"), st.integers(-2, 2), st.sampled_from("xyz")), max_size=20)
ORDERS: list[tuple[str, ...]] = [
    ("kind", "at", "id"),
    ("-kind", "-at", "-id"),
    ("-at", "kind", "id"),
    ("kind", "-at", "id"),
    ("-id", "kind", "-at"),
]


def ordered(rows: set[tuple[Any, ...]], order: tuple[str, ...]) -> list[tuple[Any, ...]]:
    found = sorted(rows)
    for name in reversed(order):
        place = ("kind", "at", "id").index(name.lstrip("-"))
        found.sort(key=lambda row, place=place: row[place], reverse=name.startswith("-"))
    return found


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, size=st.integers(1, 7))
def test_the_pages_are_the_list(order: tuple[str, ...], rows: set[tuple[Any, ...]], size: int) -> None:
    pages = Keyset(select(ITEM.c.kind, ITEM.c.at, ITEM.c.id), *order)
    assert pages.blank == tuple({"kind": "", "at": 0, "id": ""}[name.lstrip("-")] for name in order)
    with create_engine("sqlite://").begin() as connection:
        ITEM.create(connection)
        if rows:
            connection.execute(
                insert(ITEM), [dict(zip(("kind", "at", "id"), row, strict=True)) for row in rows]
            )
        found = [tuple(row) for row in connection.execute(pages.first, {"limit": size})]
        page = found
        while len(page) == size:
            after = dict(zip(pages.names, pages.key(page[-1]), strict=True))
            page = [tuple(row) for row in connection.execute(pages.next, {"limit": size, **after})]
            found += page
    assert found == ordered(rows, order)
