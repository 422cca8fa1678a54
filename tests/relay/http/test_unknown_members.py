"""A body with a member that its route does not know is refused, whatever its depth, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from localstore.core.model.advisory import Affected, Package, Range, RangeEvent
from localstore.core.model.auth import TokenRequest
from localstore.core.model.seal import SealChange
from relay import domain
from relay.http.routing import TABLE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create

domain.load()
# Read by clients in answers too, so that an older one has to take what a newer relay adds; a change of a seal
# is a list without names. RFC 6749 (3.2) has members of a request for a token ignored.
TOLERANT = {SealChange, Affected, RangeEvent, Package, Range, TokenRequest}


def structs(kind: Any) -> Iterator[type[msgspec.Struct]]:
    match kind:
        case inspect.StructType(cls=cls, fields=fields):
            yield cls
            for field in fields:
                yield from structs(field.type)
        case inspect.UnionType(types=types):
            for one in types:
                yield from structs(one)
        case (
            inspect.Metadata(type=inner)
            | inspect.ListType(item_type=inner)
            | inspect.DictType(value_type=inner)
        ):
            yield from structs(inner)


def test_every_body_refuses_members_that_it_does_not_know() -> None:
    bodies = {cls for route in TABLE if route.body for cls in structs(inspect.type_info(route.body))}
    assert len(bodies) > 60
    lenient = {cls for cls in bodies if not cls.__struct_config__.forbid_unknown_fields}
    assert lenient == TOLERANT


@pytest.fixture
def repo(relay: Relay, account: Callable[..., Account]) -> Iterator[Repository]:
    owner = account()
    with relay.client(owner) as http:
        made = create(http, owner, "strict")
        made.seal({"a.txt": b"one\n"})
        yield made


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("refs", {"type": "branch", "name": "topic", "from": "0" * 64}, "/from"),
        ("issues", {"title": "x", "labels": [], "asignees": ["bob"]}, "/asignees"),
    ],
)
def test_what_was_meant_is_not_guessed(
    repo: Repository, path: str, body: dict[str, Any], pointer: str
) -> None:
    answer = repo.http.post(f"{repo.url}/{path}", json=body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["errors"][0]["pointer"] == pointer
    assert f"has no member '{pointer[1:]}'; it has " in problem["detail"]
    assert [one["name"] for one in repo.get("/refs?type=branch")["items"]] == ["main"]


def test_a_name_of_a_member_is_repeated_in_part(repo: Repository) -> None:
    answer = repo.http.post(f"{repo.url}/issues", json={"title": "x", "y" * 10_000: 1})
    assert answer.status_code == 422
    assert len(answer.content) < 1000


@pytest.mark.parametrize(
    ("method", "path", "typo"),
    [
        ("GET", "/issues", "labell"),
        ("GET", "/refs", "typ"),
        ("GET", "/commits", "shaa"),
        ("DELETE", "/refs/branch/kept", "expected_haed"),
    ],
)
def test_a_query_refuses_parameters_that_it_does_not_know(
    repo: Repository, method: str, path: str, typo: str
) -> None:
    start = repo.get("/refs/branch/main")["head"]
    made = repo.http.post(f"{repo.url}/refs", json={"type": "branch", "name": "kept", "head": start})
    assert made.status_code == 201
    answer = repo.http.request(method, f"{repo.url}{path}", params={typo: "0" * 64})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert f"the query has no parameter '{typo}'; it has " in answer.json()["detail"]
    assert repo.get("/refs/branch/kept")["head"] == start


def test_a_page_takes_parameters_of_others(relay: Relay) -> None:
    with relay.client() as http:
        assert http.get("/auth/login", params={"utm_source": "elsewhere"}).status_code != 422
