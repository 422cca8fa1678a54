"""Forks: the history of a public repository under another name, and each of both without the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from blake3 import blake3
from sqlalchemy import func, select, update

from localstore.core import seal as seals
from localstore.core.encoding import unb64u
from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.storage.collect import collect
from relay.domain.upkeep import upkeep
from relay.domain.upkeep.verification import audit
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, compared, ok, own
from tests.relay.proposing import code

TEXT = b"one\ntwo\nthree\n"
BLOB = b"\0" + bytes(5000)


@pytest.fixture
def parent(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Repository:
    """A public repository with two seals, a branch, a tag, and bytes that no seal names."""
    repo = own(account, client, name="parent", visibility="public", description="It parses dates")
    first, second = repo.seal({"a.txt": TEXT, "dir/b.bin": BLOB}, {"a.txt": TEXT + b"four\n"})
    repo.branch("topic", first)
    ok(repo.http.post(f"{repo.url}/refs", json={"type": "tag", "name": "v1", "head": second}))
    unsealed = b"not sealed yet\n"
    digest = blake3(unsealed).hexdigest()
    ok(repo.http.put(f"{repo.url}/payloads/{digest}", content=unsealed))
    repo.body["unsealed"] = digest
    return repo


@pytest.fixture
def other(account: Callable[..., Account]) -> Account:
    return account()


def fork(parent: Repository, who: Account, http: httpx.Client, **asked: Any) -> Repository:
    return Repository(http, who, ok(http.post(f"{parent.url}/forks", json=asked)))


def stored(relay: Relay, table: str) -> int:
    async def count() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(func.count()).select_from(tables[table])))

    return relay.run(count())


def test_a_fork_has_the_history_and_no_bytes_of_its_own(
    relay: Relay, parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    before = stored(relay, "object"), stored(relay, "pack"), stored(relay, "seal")
    made = fork(parent, other, client(other))
    assert (stored(relay, "object"), stored(relay, "pack"), stored(relay, "seal")) == before
    shown = made.get("")
    assert (shown["class"], shown["visibility"], shown["kind"]) == ("public_fork", "public", "app")
    assert shown["full_name"] == f"{other.handle}/parent"
    assert shown["description"] == "It parses dates"
    assert shown["parent"] == {"id": parent.id, "full_name": parent.body["full_name"]}
    assert parent.get("")["forks"] == 1
    refs = {(one["type"], one["name"]): one["head"] for one in made.get("/refs")["items"]}
    assert (
        refs == {(one["type"], one["name"]): one["head"] for one in parent.get("/refs")["items"]}
        and len(refs) == 3
    )
    head = refs["branch", "main"]
    assert made.get(f"/tree/{head}", recursive=1) == parent.get(f"/tree/{head}", recursive=1)
    assert made.http.get(f"{made.url}/raw/{head}/dir/b.bin").content == BLOB
    assert len(made.get("/commits")["items"]) == 2
    assert [one["seal_id"] for one in made.get(f"/seals/{head}/blame/a.txt")["ranges"]] == [
        one["seal_id"] for one in parent.get(f"/seals/{head}/blame/a.txt")["ranges"]
    ]
    assert made.http.get(f"{made.url}/archive/{head}.tar.gz").status_code == 200
    assert made.http.get(f"{made.url}/history-pack").status_code == 200
    assert made.http.get(f"{made.url}/payloads/{parent.body['unsealed']}").status_code == 404


def test_its_seals_keep_their_signatures_and_say_where_they_are_from(
    parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    made = fork(parent, other, client(other))
    head = made.head()
    assert head is not None
    one = made.get(f"/seals/{head}")
    seals.verify(unb64u(one["payload"]), unb64u(one["signature"]["value"]), unb64u(one["key"]["public_key"]))
    assert (one["verified"], one["origin"]) == (True, parent.id)
    assert parent.get(f"/seals/{head}")["origin"] is None
    (own_seal,) = made.seal({"a.txt": b"mine\n"})
    mine = made.get(f"/seals/{own_seal}")
    assert (mine["parents"], mine["origin"], mine["verified"]) == ([head], None, True)
    assert made.get("/compare", base=head, head=own_seal)["ahead"] == 1
    assert parent.http.get(f"{parent.url}/seals/{own_seal}").status_code == 404, "what comes after is its own"
    assert [one["status"] for one in made.get("/compare", head=own_seal)["files"]] == ["modified"]


def test_what_the_parent_gets_later_is_not_the_forks(
    parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    made = fork(parent, other, client(other))
    (later,) = parent.seal({"later.txt": b"later\n"})
    assert made.http.get(f"{made.url}/seals/{later}").status_code == 404
    digest = blake3(b"later\n").hexdigest()
    assert made.http.get(f"{made.url}/payloads/{digest}").status_code == 404


def test_live_edits_and_seals_go_on_from_what_it_began_with(
    parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    made = fork(parent, other, client(other))
    live = f"{made.url}/branches/main/live"
    start = ok(made.http.post(f"{live}/bootstrap", json={"device_key_id": other.key.id}))
    assert sorted(one[0] for one in start["rows"]) == ["a.txt", "dir/b.bin"]


def test_one_branch_and_another_name(
    parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    made = fork(parent, other, client(other), name="mine", default_branch_only=True)
    assert made.body["full_name"] == f"{other.handle}/mine"
    assert [one["name"] for one in made.get("/refs")["items"]] == ["main"]
    again = made.http.post(f"{parent.url}/forks", json={"name": "mine"})
    assert code(again) == (409, "name_taken")
    assert fork(made, other, made.http, name="deeper").get("")["parent"]["id"] == made.id


def test_an_empty_repository_is_forked_too(
    account: Callable[..., Account], client: Callable[..., httpx.Client], other: Account
) -> None:
    made = fork(own(account, client, visibility="public"), other, client(other))
    assert made.get("/refs/branch/main")["head"] is None
    assert len(made.seal({"a.txt": b"1\n"})) == 1


def test_a_private_repository_is_not_forked_and_a_hidden_one_is_not_there(
    account: Callable[..., Account], client: Callable[..., httpx.Client], other: Account
) -> None:
    repo = own(account, client)
    assert code(repo.http.post(f"{repo.url}/forks", json={})) == (409, "fork_private")
    for method in ("GET", "POST"):
        hidden, missing = (
            client(other).request(method, f"/api/v1/repos/{one}/forks", json={})
            for one in (repo.id, "0" * 20)
        )
        assert hidden.status_code == 404
        assert compared(hidden) == compared(missing)


def test_a_fork_stays_public_and_its_parent_may_hide(
    parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    made = fork(parent, other, client(other))
    assert code(made.http.patch(made.url, json={"visibility": "private"})) == (409, "fork_is_public")
    ok(parent.http.patch(parent.url, json={"visibility": "private"}))
    shown = made.get("")
    assert shown["parent"] is None
    assert parent.body["full_name"] not in str(shown)
    assert len(made.get("/commits")["items"]) == 2, "what was public when it was forked"


def test_paths_for_writers_only_never_come_along(
    parent: Repository, other: Account, client: Callable[..., httpx.Client], relay: Relay
) -> None:
    ok(parent.http.put(f"{parent.url}/paths", json={"path": "dir", "visibility": "private"}))
    reader = client(other)
    partly = fork(parent, other, reader)
    assert partly.body["partial"] and partly.get("")["partial"]
    assert partly.get("/paths")["items"] == [], "a rule names a path"
    assert [one["path"] for one in partly.get(f"/tree/{partly.head()}", recursive=1)["entries"]] == ["a.txt"]
    made = fork(parent, parent.owner, parent.http, name="again")
    assert not made.body["partial"]
    head = made.head()
    assert ok(reader.get(f"{made.url}/tree/{head}?recursive=1"))["filtered"]
    assert reader.get(f"{made.url}/raw/{head}/dir/b.bin").status_code == 404
    assert made.http.get(f"{made.url}/raw/{head}/dir/b.bin").content == BLOB


def test_numbers_of_a_forks_policy_never_return(
    parent: Repository, other: Account, client: Callable[..., httpx.Client], relay: Relay
) -> None:
    """Whatever the number of the parent's was: answers that are kept by it would show what is hidden now."""

    def put(repo: Repository, path: str) -> None:
        ok(repo.http.put(f"{repo.url}/paths", json={"path": path, "visibility": "private"}))

    def remove(repo: Repository, path: str) -> None:
        assert repo.http.delete(f"{repo.url}/paths", params={"path": path}).status_code == 204

    def number() -> int | None:
        async def read() -> Any:
            async with relay.node.db.read() as tx:
                table = tables["repo"]
                return await tx.value(select(table.c.policy).where(table.c.id == made.id))

        found: int | None = relay.run(read())
        return found

    put(parent, "dir")
    put(parent, "a.txt")
    remove(parent, "a.txt")
    made = fork(parent, parent.owner, parent.http, name="again")
    reader, head = client(other), made.head()
    changed = f"{made.url}/compare?head={head}"
    assert [one["path"] for one in ok(reader.get(changed))["files"]] == ["a.txt"]
    numbers = [number()]
    remove(made, "dir")
    assert number() is None
    for path in ("a.txt", "dir", "b", "c"):
        put(made, path)
        numbers.append(number())
        assert ok(reader.get(changed))["files"] == []
    assert len(set(numbers)) == len(numbers)


def test_forks_are_listed_newest_first_for_whoever_sees_them(
    parent: Repository, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    made = [fork(parent, who, client(who)) for who in (account(), account(), account())]
    ok(made[1].http.delete(made[1].url))
    first = parent.get("/forks", limit=1)
    assert [one["id"] for one in first["items"]] == [made[2].id]
    rest = parent.get("/forks", limit=1, cursor=first["next_cursor"])
    assert ([one["id"] for one in rest["items"]], rest["next_cursor"]) == ([made[0].id], None)
    assert rest["items"][0]["parent"]["full_name"] == parent.body["full_name"]
    assert parent.get("")["forks"] == 2
    anonymous = client(None).get(f"{parent.url}/forks")
    assert len(ok(anonymous)["items"]) == 2


def purge(relay: Relay, repo: Repository) -> None:
    """Delete it, and let its time be over."""
    ok(repo.http.delete(repo.url))

    async def act() -> None:
        c = tables["repo"].c
        async with relay.node.db.write() as tx:
            await tx.run(update(tables["repo"]).where(c.id == repo.id).values(purge_at=now_ms() - 1))
        await upkeep.purge_deleted(relay.node)

    relay.run(act())


async def _audited(relay: Relay) -> list[str]:
    return [line async for line in audit(relay.node.db, relay.node.objects)]


def test_either_lives_on_when_the_other_is_gone(
    relay: Relay, parent: Repository, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    who = [account(), account()]
    first, second = (fork(parent, one, client(one)) for one in who)
    (mine,) = first.seal({"a.txt": b"mine\n"})
    purge(relay, parent)
    assert parent.http.get(parent.url).status_code == 404
    store = relay.node.objects
    relay.run(collect(relay.node.db, store, lambda _: None, grace=-limits.GC_GRACE, quiet=-limits.GC_GRACE))
    for one in (first, second):
        assert one.get("")["parent"] is None
        listed = one.get("/commits")["items"]
        head = one.head()
        assert [seal["verified"] for seal in one.get("/log")["items"]] == [True] * len(listed)
        assert one.http.get(f"{one.url}/raw/{head}/dir/b.bin").content == BLOB
    assert first.head() == mine
    purge(relay, first)
    assert len(second.get("/commits")["items"]) == 2
    assert second.http.get(f"{second.url}/raw/{second.head()}/dir/b.bin").content == BLOB
    assert not [line for line in relay.run(_audited(relay)) if parent.id in line or second.id in line]


def test_a_fork_counts_for_its_owner_like_any_repository(
    relay: Relay, parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    made = fork(parent, other, client(other))

    async def used() -> Any:
        usage = tables["repo_usage"].c
        async with relay.node.db.read() as tx:
            return await tx.one(select(usage.bytes, usage.objects).where(usage.repo_id == made.id))

    expected = {TEXT, TEXT + b"four\n", BLOB}
    assert tuple(relay.run(used())) == (sum(map(len, expected)), len(expected))


def test_forks_at_once_of_one_name_are_one(
    parent: Repository, other: Account, client: Callable[..., httpx.Client]
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def one(_: int) -> int:
        with client(other) as http:
            return http.post(f"{parent.url}/forks", json={}).status_code

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(one, range(4))) == [201, 409, 409, 409]
    assert parent.get("")["forks"] == 1
