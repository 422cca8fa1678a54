"""Every call of the client against bodies that are not an answer to it: one sentence, fit for a terminal."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any, get_origin

import pytest

from localstore.core.endpoint import Endpoint
from localstore.core.errors import ServerMisbehaved, SvcError
from localstore.core.model.access import AccessRequested
from localstore.core.model.base import Page
from localstore.core.model.history import CompareQuery
from localstore.core.storage.pack import PackWriter
from svc.api import Api
from svc.http.client import Http
from tests.depth import played
from tests.endpoints import endpoints
from tests.svc.api.hostile import hostile, http
from tests.svc.http.test_client import CREDENTIAL

Call = Callable[[Api], Callable[..., Any]]  # what an API is called by
# Calls to which such an answer may be one: bytes that are verified later, or a status that says it all.
BYTES = {"history.raw", "payload.get", "payload.get_pack", "payload.manifest", "history.proof"}
BYTES |= {name for name, one in endpoints().items() if one.returns in (bytes, type(None), AccessRequested)}

NONSENSE = {
    "lists 100,000 deep": b"[" * 100_000 + b"]" * 100_000,
    "objects 100,000 deep": b'{"items":' * 100_000 + b"1" + b"}" * 100_000,
    "deep in a member that is not asked for": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "no UTF-8": b'{"id": "\xff\xfe"}',
    "half a character": b'{"id": "\\ud800"}',
    "a number of 5000 digits": b'{"missing": [%s]}' % (b"9" * 5000),
    "beyond 64 bits": b'{"id": 18446744073709551616, "missing": [18446744073709551616]}',
    "less than nothing": b'{"missing": [-1], "size": -1, "seq": -1}',
    "infinity": b"1e999",
    "nothing": b"",
    "null": b"null",
    "a list": b"[]",
    "a text": b'"\x1b[2J"',
    "cut off": b'{"id": "1", ',
    "two answers": b"{}{}",
}


def _plain(endpoint: Endpoint[Any], path: dict[str, str]) -> Call:
    if endpoint.returns is bytes:
        return lambda api: partial(api.http.read, endpoint, 1000, **path)
    if get_origin(endpoint.returns) is Page and endpoint.method == "GET":
        return lambda api: partial(api.items, endpoint, **path)
    return lambda api: partial(api.send, endpoint, **path)


def _calls() -> Iterator[tuple[str, Call]]:
    """Every endpoint, called plainly, and every call that does more than its endpoint."""
    for name, endpoint in endpoints().items():
        yield name, _plain(endpoint, dict.fromkeys(re.findall(r"{([a-z0-9_]+)", endpoint.path), "x"))
    api = Api(Http("http://127.0.0.1:9"))
    for noun in ("history", "payload", "repo"):
        for name, _ in inspect.getmembers(getattr(api, noun), inspect.ismethod):
            if not name.startswith("_"):
                yield f"{noun}.{name}", attrgetter(f"{noun}.{name}")


CALLS = dict(_calls())


def arguments(method: Callable[..., Any]) -> dict[str, Any]:
    """Something of the right type for everything that the call needs."""
    if isinstance(method, partial):
        return {}
    needed = inspect.signature(method).parameters.values()
    return {one.name: GIVEN[one.name] for one in needed if one.default is one.empty}


def _pack() -> Any:
    writer = PackWriter()
    packs = [*writer.add(b"\1" * 32, b"x", True), *writer.finish()]
    return packs[0]


GIVEN: dict[str, Any] = {
    "query": CompareQuery(head="main"),
    "repo_id": "r",
    "owner": "a",
    "name": "b",
    "full_name": "a/b",
    "digest": b"\1" * 32,
    "digests": [b"\1" * 32],
    "parts": lambda: iter((b"x",)),
    "length": 1,
    "raw": b"x",
    "pack": _pack(),
    "sha": "s",
    "seal_id": "s",
    "path": "p",
    "cap": 1000,
    "limit": 1,
}


def consume(answer: Any) -> None:
    """Have all of it, however it comes."""
    if isinstance(answer, Iterator):
        list(answer)
    elif hasattr(answer, "__enter__"):
        with answer as pieces:
            list(pieces)


def refused(api: Api, name: str) -> SvcError | None:
    method = CALLS[name](api)
    try:
        consume(method(**arguments(method)))
    except SvcError as error:
        return error
    return None


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE.keys())
def test_an_answer_that_is_none_is_one_sentence(body: bytes) -> None:
    with hostile(http("200 OK", body)) as server:
        for name in CALLS:
            error = refused(Api(Http(server.origin, CREDENTIAL)), name)
            assert (error is None) <= (name in BYTES), (name, body[:60])
            if error is not None:
                assert type(error) is ServerMisbehaved, (name, error)
                assert error.detail.isprintable(), (name, error.detail)
                assert len(error.detail) < 500, name


STATUSES = ["200 OK", "299 Odd", "400 No", "401 No", "404 No", "418 Tea", "500 Oh", "999 X"]


@pytest.mark.parametrize("status", STATUSES)
def test_a_problem_that_is_none_is_one_sentence(status: str) -> None:
    """In the suite each call meets each document once, with one of the statuses."""
    documents = [
        b'{"code": "not_found", "detail": ["\\u001b[2J"], "status": "x"}',
        b'{"code": "\\u001b[2J\\u202e", "detail": "\\u001b]0;x\\u0007", "title": {}}',
        b'{"code": "stale_head", "head": 5, "ref": [[]]}',
        b'{"code": "' + b"x" * 5000 + b'", "errors": {"a": 1}}',
        b"[" * 100_000,
    ]
    for number, document in enumerate(documents, STATUSES.index(status)):
        names = [name for at, name in enumerate(CALLS) if played(at, number, one_in=len(STATUSES))]
        with hostile(http(status, document, "application/problem+json")) as server:
            for name in names:
                error = refused(Api(Http(server.origin, CREDENTIAL, sleep=lambda _: None)), name)
                if error is not None:
                    assert str(error.detail).isprintable(), (name, error.detail)
                    assert error.exit in (1, 4)
                assert (error is None) <= (name in BYTES and status[0] == "2"), (name, status)


def test_a_history_that_is_no_archive_is_one_sentence() -> None:
    for body in (b"", b"x" * 512, b"\0" * 10_000, b"manifest.jsonl" + b"\0" * 5000):
        with (
            hostile(http("200 OK", body, "application/x-tar")) as server,
            pytest.raises(ServerMisbehaved, match="history pack"),
        ):
            Api(Http(server.origin)).history.seal("r", "s")
