"""Strange bodies and queries on every route of signing in: refused in one sentence, never a 500."""

from __future__ import annotations

import itertools

import pytest

from relay import domain
from relay.http.routing import TABLE

domain.load()
OURS = [
    route
    for route in TABLE
    if route.path.startswith(("/auth/", "/cli/authorize", "/settings", "/api/v1/auth/", "/api/v1/handles"))
    or "device-key" in route.path
]
VALUES = [None, "", "x", "\0", "é" * 300, "A" * 5000, 2**70, -1, 1.5, True, [], {}, "\u202e", "../..", "%00"]
MEMBERS = sorted({name for route in OURS if route.body for name in route.body.__struct_fields__})


@pytest.mark.parametrize("route", OURS, ids=lambda route: route.name)
def test_strange_values(browser, name, route):
    one = browser().sign_up(name())
    path = route.path.replace("{id}", "%00x").replace("{key_id}", "%FF")
    for value in VALUES:
        body = dict.fromkeys(MEMBERS, value)
        query = {
            "cursor": str(value)[:200],
            "limit": "9" * 25,
            "user_code": str(value)[:200],
            "tab": "tokens",
        }
        for answer in (
            one.request(route.method, path, json=body),
            one.request(route.method, path, data={key: str(value) for key in body}),
            one.request(route.method, path, params=query, content=b"\xff{"),
        ):
            assert answer.status_code < 500, (route.name, value, answer.text)
            assert answer.headers["x-content-type-options"] == "nosniff"
        if route.path == "/auth/logout":
            one = browser().sign_up(name())


def test_one_strange_member_at_a_time(terminal):
    one = terminal()
    bodies = {
        route.path: route.body.__struct_fields__ for route in OURS if route.body and "{" not in route.path
    }
    for path, members in bodies.items():
        for member, value in itertools.product(members, ["\0", "A" * 200, 7, None]):
            good = dict.fromkeys(members, "AAAA")
            assert one.send("POST", path, good | {member: value}).status_code < 500, (path, member, value)
