"""A row by its key: as the last commit left it, and also where the connection at hand cannot read it."""

from __future__ import annotations

import pytest

from relay.db import repo
from relay.db.engine.sqlite import SqliteDatabase
from tests.relay.conftest import Relay


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
        assert db._near is not None
        db._near.set_progress_handler(lambda: 1, 1)  # every statement ends in an OperationalError
        try:
            return await _id_of(relay, "member")
        finally:
            db._near.set_progress_handler(None, 0)

    assert relay.run(interrupted()) == member.id
