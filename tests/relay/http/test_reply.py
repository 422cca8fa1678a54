"""Conditions, ranges, limits, and the description of the interface."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

from localstore.core.errors import RateLimited
from relay.capacity.limiter import Limiter, Rate
from relay.http.bytes_reply import cut, not_modified, parse_range
from relay.http.router import Router, parameters_of
from relay.http.routing import TABLE


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", (0, 1)),
        ("bytes=2-", (2, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=-99", (0, 10)),
        ("bytes=0-99", (0, 10)),
        ("bytes=5-4", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
    ],
)
def test_span(header, expected):
    assert parse_range(header, None, '"e"', 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=-0", "bytes=99999999999-"])
def test_a_range_outside_is_refused(header):
    with pytest.raises(ValueError, match=r"\*/10"):
        parse_range(header, None, '"e"', 10)


def test_a_stale_if_range_means_everything():
    assert parse_range("bytes=0-1", '"old"', '"new"', 10) is None
    assert parse_range("bytes=0-1", '"new"', '"new"', 10) == (0, 2)


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 90), st.integers(0, 90))
async def test_cut_is_a_slice(parts, one, other):
    start, end = sorted((one, other))

    async def stream():
        for part in parts:
            yield part

    assert b"".join([part async for part in cut(stream(), start, end)]) == b"".join(parts)[start:end]


def test_not_modified():
    assert not_modified('"a", W/"b"', '"b"')
    assert not_modified("*", '"b"')
    assert not not_modified('"a"', '"b"')
    assert not not_modified(None, '"b"')


def test_a_bucket_refills_and_says_when():
    now = [0.0]
    limiter = Limiter(clock=lambda: now[0])
    rate = Rate(burst=3, per_second=0.5)
    for _ in range(3):
        limiter.spend("k", rate, 1)
    with pytest.raises(RateLimited) as refused:
        limiter.spend("k", rate, 1)
    assert refused.value.extra["retry_after"] == 2
    limiter.spend("another", rate, 1)
    now[0] = 2.0
    limiter.spend("k", rate, 1)


def test_ten_thousand_uploads_are_never_limited():
    limiter = Limiter(clock=lambda: 0.0)
    route = next(
        route for route in TABLE_LOADED if route.name == "payload.put_payload" or route.method == "PUT"
    )
    for _ in range(10_000):
        limiter.admit("127.0.0.1", route.cost, route.name, route.per_minute)
        limiter.admit_account("account", route.cost)


def test_static_segments_win_and_the_rest_takes_slashes():
    router: Router[str] = Router()
    for path in ("/r/keys", "/r/{id}", "/r/{id}/x", "/r/{id}/b/{path...}", "/a/{sha}.tar.gz"):
        router.add("GET", path, path)

    def found(path):
        match = router.find(path)
        return match and (match[0]["GET"], match[1])

    assert found("/r/keys") == ("/r/keys", {})
    assert found("/r/keys/x") == ("/r/{id}/x", {"id": "keys"})
    assert found("/r/1/b/c//d") == ("/r/{id}/b/{path...}", {"id": "1", "path": "c//d"})
    assert found("/a/ff.tar.gz") == ("/a/{sha}.tar.gz", {"sha": "ff"})
    assert not any(found(path) for path in ("/r/", "/r/1/b/", "/a/.tar.gz", "r/1"))
    assert parameters_of("/a/{sha}.tar.gz") == ("sha",)


def test_the_openapi_document_is_valid_and_whole(client):
    document = client().get("/api/v1/openapi.json").json()
    OpenAPIV31SpecValidator(document).validate()
    operations = {op["operationId"] for path in document["paths"].values() for op in path.values()}
    assert operations == {route.name for route in TABLE_LOADED if "socket" not in route.wants}


def _loaded():
    from relay import domain

    domain.load()
    return TABLE


TABLE_LOADED = _loaded()
