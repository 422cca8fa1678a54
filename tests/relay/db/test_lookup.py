"""Rows by their keys: as the last commit left them, and also where the connection at hand cannot read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from sqlalchemy import bindparam, delete, select

from relay.db import repo
from relay.db.engine.sqlite import SqliteDatabase
from relay.db.schema.account import account
from tests.relay.conftest import Relay

_AMONG = account.c.id.in_(bindparam("ids", expanding=True))
_SOME = select(account.c.id).where(_AMONG)
_FORGET = delete(account).where(_AMONG)


async def _id_of(relay: Relay, handle: str) -> str | None:
    found = await relay.node.db.lookup(repo.OWNER_ID, handle=handle)
    return found[0] if found else None


def test_a_lookup_sees_what_was_committed(relay: Relay) -> None:
    assert relay.run(_id_of(relay, "newcomer")) is None
    newcomer = relay.account("newcomer")
    assert relay.run(_id_of(relay, "newcomer")) == newcomer.id


def test_a_lookup_that_the_file_refuses_at_once_takes_the_way_of_other_reads(relay: Relay) -> None:
    db = relay.node.db
    if not isinstance(db, SqliteDatabase):
        pytest.skip("PostgreSQL has one way")
    member = relay.account("member")

    async def interrupted() -> str | None:
        with _interrupted(db):
            return await _id_of(relay, "member")

    assert relay.run(interrupted()) == member.id


def test_a_near_read_sees_what_was_committed_and_writes_nothing(relay: Relay) -> None:
    people = [relay.account(handle) for handle in ("first", "second")]

    async def read() -> set[str]:
        async with relay.node.db.read(near=True) as tx:
            return {row[0] for row in await tx.all(_SOME, ids=[person.id for person in people])}

    async def write() -> None:
        async with relay.node.db.read(near=True) as tx:
            await tx.run(_FORGET, ids=[people[0].id])

    assert relay.run(read()) == {person.id for person in people}
    with pytest.raises(Exception, match=r"readonly|read-only"):
        relay.run(write())
    assert relay.run(read()) == {person.id for person in people}


def test_a_near_read_that_the_file_refuses_at_once_takes_the_way_of_other_reads(relay: Relay) -> None:
    db = relay.node.db
    if not isinstance(db, SqliteDatabase):
        pytest.skip("PostgreSQL has one way")
    people = [relay.account(handle) for handle in ("third", "fourth")]

    async def interrupted() -> list[int]:
        with _interrupted(db):
            async with db.read(near=True) as tx:
                rows = await tx.all(_SOME, ids=[person.id for person in people])
                return [len(rows), len([row async for row in tx.stream(_SOME, ids=[people[0].id])])]

    assert relay.run(interrupted()) == [2, 1]


@contextlib.contextmanager
def _interrupted(db: SqliteDatabase) -> Iterator[None]:
    """A context in which every statement on the event loop's connection ends in an OperationalError."""
    assert db._near is not None
    db._near.set_progress_handler(lambda: 1, 1)
    try:
        yield
    finally:
        db._near.set_progress_handler(None, 0)
