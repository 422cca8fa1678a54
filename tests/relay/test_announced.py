"""Every route that changes something leaves an event, with its author, in the transaction of its effect."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from relay.db.schema import tables
from relay.events.log import KIND, LEVEL
from tests.relay.mutations import CHANGING, MUTATIONS, QUIET, READS, REFUSED, World, world

__all__ = ["world"]  # the fixture
TRIED = sorted(MUTATIONS.keys() - QUIET.keys())
LONG = 300  # characters; a title or a body would be longer one day


def logged(world: World) -> list[dict[str, Any]]:
    event = tables["event"]

    async def read() -> list[dict[str, Any]]:
        async with world.relay.node.db.read() as tx:
            found = await tx.all(select(event).order_by(event.c.id))
            return [dict(zip(event.c.keys(), row, strict=True)) for row in found]

    return world.relay.run(read())


def test_every_changing_route_is_tried_or_says_why_not() -> None:
    assert MUTATIONS.keys() | READS.keys() | QUIET.keys() | REFUSED.keys() == CHANGING.keys()
    assert not READS.keys() & QUIET.keys()


@pytest.mark.parametrize("route", TRIED, ids=" ".join)
def test_it_is_announced_with_its_author(world: World, route: tuple[str, str]) -> None:
    asked = MUTATIONS[route](world)
    before = {row["id"] for row in logged(world)}
    answer = asked.send(world, route[0], {"Svc-Turn": "turn 7"})
    assert answer.status_code < 400, answer.text
    fresh = [row for row in logged(world) if row["id"] not in before]
    assert fresh, "it succeeded and left no event"
    for row in fresh:
        assert KIND.fullmatch(row["kind"])
        assert row["audience"] in LEVEL
        assert (row["repo_id"] is None) != (row["account_id"] is None)
        assert row["turn"] == "turn 7"
        assert row["actor"]
        data = msgspec.json.decode(row["data"])
        assert all(len(str(value)) < LONG for value in data.values())
        if asked.http is None:
            assert (row["actor"], row["device_key_id"]) == (world.who.id, world.who.key.id)
        if row["repo_id"] is None:
            assert row["audience"] == "owner"


def test_what_is_refused_leaves_none(world: World) -> None:
    repo = world.repo
    before = len(logged(world))
    assert world.http.post(f"{repo.url}/refs", json={"type": "tag", "name": "v1"}).status_code == 422
    assert world.http.patch(repo.url, json={"default_branch": "none"}).status_code == 409
    assert len(logged(world)) == before


@pytest.mark.parametrize("turn", ["", "x" * 201, "\xe4"])
def test_a_turn_is_short_and_printable(world: World, turn: str) -> None:
    answer = world.http.post(
        "/api/v1/repos", json={"name": "x"}, headers={"Svc-Turn": turn.encode("latin-1")}
    )
    assert answer.status_code == 422
    assert "a turn is named by" in answer.text
