"""Cursors that nobody was given: each list refuses them, or goes on behind them, and nothing else happens."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import closing

import pytest

from localstore.core.encoding import b64u
from localstore.core.model.rights import CALLERS
from relay.base.edition import EDITION
from relay.http.routing import Route
from tests.relay.conftest import Relay
from tests.relay.histories import ok
from tests.relay.nouns.organisation import founded
from tests.relay.rights.test_matrix import ACCOUNTS, MISSING, OURS, Place, World, name, url_of

NONSENSE = [
    "%21%21%21",
    "A" * 5000,
    b64u(b"null"),
    b64u(b"[]"),
    b64u(b'{"id": 1}'),
    b64u(b"[null]"),
    b64u(b"[[1]]"),
    b64u(b"[1.5]"),
    b64u(b"[9223372036854775808]"),
    b64u(b"[" + b"9" * 400 + b"]"),
    b64u(b'["a", 1, "b", 2, "c"]'),
    b64u(b'["\xff"]'),
    b64u(b"[" * 1000),
]
FORGED = [b64u(b'["zzz"]'), b64u(b"[0]"), b64u(b'["\\u0000"]'), b64u(b'["a\' OR 1=1 --"]'), b64u(b"[-1]")]
"""These fit some lists."""
LISTS = [
    one
    for one in (*OURS, *ACCOUNTS)
    if one.method == "GET" and one.query is not None and "cursor" in one.query.__struct_fields__
    if one.operation.in_edition(EDITION)
]


@pytest.fixture(scope="module")
def place(relay: Relay) -> Iterator[tuple[World, Place]]:
    people = {who: relay.account(f"c{secrets.token_hex(5)}") for who in CALLERS if who != "anonymous"}
    world = World(relay, {who: relay.client(one) for who, one in people.items()}, people, {})
    here = world.place("public")
    here.org = founded(world.clients["owner"])
    here.user = people["owner"].id
    made = world.clients["owner"].post("/api/v1/documents", json={"title": "Plan"})
    here.document = ok(made)["id"]
    yield world, here
    for client in world.clients.values():
        client.close()


def test_there_are_lists() -> None:
    assert len(LISTS) > 20


@pytest.mark.parametrize("route", LISTS, ids=name)
def test_a_forged_cursor_is_refused_or_leads_behind_it(place: tuple[World, Place], route: Route) -> None:
    if name(route) in MISSING:
        pytest.skip("there is nothing to list")
    world, here = place
    with closing(world.relay.client(world.people["owner"])) as http:
        url = url_of(route, here)
        for cursor in NONSENSE:
            answer = http.get(f"{url}?cursor={cursor}")
            assert answer.status_code == 422, (cursor[:40], answer.status_code, answer.text[:200])
        for cursor in FORGED:
            answer = http.get(f"{url}?cursor={cursor}")
            assert answer.status_code in (200, 422), (cursor, answer.status_code, answer.text[:200])
