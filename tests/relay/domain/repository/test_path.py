"""The path policy: set by the owner, seen by writers, and in force on every route at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from localstore.core.model import limits
from localstore.core.tree.policy import Policy
from relay.base.clock import now_ms
from relay.db.schema import tables
from tests.relay.conftest import Relay
from tests.relay.domain.checks.runs import refused
from tests.relay.histories import create, ok

FILES = {"secret/plan.txt": b"planned\n", "secret/open/a.txt": b"open\n", "main.txt": b"main\n"}


class World:
    """A public repository with FILES; its owner, a writer, a reader by name and a stranger."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        owner = relay.account(f"o{secrets.token_hex(5)}")
        self.owner = relay.client(owner)
        self.repo = create(self.owner, owner, "partly", visibility="public")
        (self.seal,) = self.repo.seal(FILES)
        self.url = f"{self.repo.url}/paths"
        self.writer = self._member("write")
        self.reader, self.stranger = self._member("read"), relay.client(relay.account(None))

    def _member(self, role: str) -> httpx.Client:
        who = self.relay.account(f"m{secrets.token_hex(5)}")

        async def act() -> None:
            async with self.relay.node.db.write() as tx:
                row = {"repo_id": self.repo.id, "account_id": who.id, "role": role}
                await tx.run(insert(tables["collaborator"]), **row, created_at=now_ms())

        self.relay.run(act())
        return self.relay.client(who)

    def set(self, path: str, visibility: str = "private") -> None:
        ok(self.owner.put(self.url, json={"path": path, "visibility": visibility}))

    def remove(self, path: str) -> None:
        assert self.owner.delete(self.url, params={"path": path}).status_code == 204

    def seen(self, http: httpx.Client) -> set[str]:
        """Paths whose bytes this caller gets."""
        raw = f"{self.repo.url}/raw/{self.seal}"
        return {path for path in FILES if http.get(f"{raw}/{path}").is_success}


@pytest.fixture
def world(relay: Relay) -> Iterator[World]:
    made = World(relay)
    yield made
    for http in (made.owner, made.writer, made.reader, made.stranger):
        http.close()


def test_a_private_path_is_hidden_from_all_but_writers_at_once(world: World) -> None:
    assert world.seen(world.stranger) == set(FILES)
    world.set("secret")
    for http in (world.reader, world.stranger, world.relay.client()):
        assert world.seen(http) == {"main.txt"}
        tree = ok(http.get(f"{world.repo.url}/tree/{world.seal}", params={"recursive": 1}))
        assert [one["path"] for one in tree["entries"] if one["path"]] == ["main.txt"]
    for http in (world.owner, world.writer):
        assert world.seen(http) == set(FILES)
    world.set("secret/open", "open")
    assert world.seen(world.stranger) == {"main.txt", "secret/open/a.txt"}
    world.remove("secret")
    assert world.seen(world.stranger) == set(FILES)


def test_the_whole_tree_has_a_rule_too(world: World) -> None:
    world.set("")
    world.set("main.txt", "public")
    assert world.seen(world.stranger) == {"main.txt"}
    assert [one["path"] for one in ok(world.owner.get(world.url))["items"]] == ["", "main.txt"]


def test_no_answer_of_an_old_policy_passes_for_one_of_a_new(world: World) -> None:
    """Numbers of policies never come back, also after all rules were gone."""
    path = f"{world.repo.url}/archive/{world.seal}.tar.gz"
    tags = set()
    for _ in range(3):
        world.set("secret")
        answer = world.stranger.get(path)
        assert answer.headers["etag"] not in tags
        assert "immutable" not in answer.headers["cache-control"]
        tags.add(answer.headers["etag"])
        world.set("main.txt")
        answer = world.stranger.get(path, headers={"if-none-match": ", ".join(tags)})
        assert answer.status_code == 200
        tags.add(answer.headers["etag"])
        world.remove("secret")
        world.remove("main.txt")
        assert world.seen(world.stranger) == set(FILES)


def test_the_timeline_says_who_changed_what(world: World) -> None:
    world.set("secret")
    world.set("secret")  # nothing changes
    world.set("secret", "public")
    world.remove("secret")
    changes = ok(world.owner.get(f"{world.url}/timeline"))["items"]
    assert [(one["path"], one["from"], one["to"]) for one in changes] == [
        ("secret", "public", None),
        ("secret", "private", "public"),
        ("secret", None, "private"),
    ]
    assert {one["by"]["id"] for one in changes} == {world.repo.owner.id}
    first = ok(world.owner.get(f"{world.url}/timeline", params={"limit": 1}))
    rest = ok(world.owner.get(f"{world.url}/timeline", params={"cursor": first["next_cursor"]}))
    assert [*first["items"], *rest["items"]] == changes
    assert ok(world.owner.get(world.url))["items"] == []


def test_writers_read_the_rules_and_the_owner_writes_them(world: World) -> None:
    world.set("secret")
    assert ok(world.writer.get(world.url))["items"] == [
        {"path": "secret", "visibility": "private", "price_cents": None, "currency": None}
    ]
    for http in (world.reader, world.stranger):
        refused(http.get(world.url), 403, "forbidden")
    for http in (world.writer, world.reader, world.stranger):
        refused(http.put(world.url, json={"path": "x", "visibility": "public"}), 403, "forbidden")
        refused(http.delete(world.url, params={"path": "secret"}), 403, "forbidden")
        refused(http.get(f"{world.url}/timeline"), 403, "forbidden")
    refused(world.owner.delete(world.url, params={"path": "other"}), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"path": "../x"}, 422, "invalid"),
        ({"path": "/etc"}, 422, "invalid"),
        ({"path": "a//b"}, 422, "invalid"),
        ({"path": "a/"}, 422, "invalid"),
        ({"path": "a\\b"}, 422, "invalid"),
        ({"path": "a\0"}, 422, "invalid"),
        ({"path": ".git/config"}, 422, "invalid"),
        ({"path": "x" * 2000}, 422, "invalid"),
        ({"visibility": "hidden"}, 422, "invalid"),
        ({"price_cents": -1}, 422, "invalid"),
        ({"price_cents": 1.5}, 422, "invalid"),
        ({"visibility": "open", "price_cents": 500}, 422, "invalid"),
        ({"visibility": "public", "price_cents": 500}, 501, "edition_lacks_feature"),
    ],
)
def test_what_is_no_rule_is_refused(world: World, body: dict[str, Any], status: int, code: str) -> None:
    refused(world.owner.put(world.url, json={"path": "x", "visibility": "private", **body}), status, code)
    assert ok(world.owner.get(world.url))["items"] == []
    assert ok(world.owner.put(world.url, json={"path": "x", "visibility": "public", "price_cents": 0}))


def test_so_many_rules_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PATH_RULES", 2)
    world.set("a")
    world.set("b")
    refused(world.owner.put(world.url, json={"path": "c", "visibility": "private"}), 409, "conflict")
    world.set("b", "open")


def test_rules_set_at_once_are_all_there(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: world.set(f"p{n}"), range(24)))
    assert len(ok(world.owner.get(world.url))["items"]) == 24
    assert len(ok(world.owner.get(f"{world.url}/timeline"))["items"]) == 24


RULES = st.dictionaries(
    st.sampled_from(["", "secret", "secret/open", "secret/plan.txt", "main.txt", "other"]),
    st.sampled_from(["private", "public", "open"]),
    max_size=4,
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rules=RULES)
def test_what_is_seen_is_what_the_policy_says(world: World, rules: dict[str, Any]) -> None:
    for one in ok(world.owner.get(world.url))["items"]:
        world.remove(one["path"])
    for path, visibility in rules.items():
        world.set(path, visibility)
    assert world.seen(world.stranger) == {path for path in FILES if Policy(1, rules).sees(path)}
    assert world.seen(world.writer) == set(FILES)
