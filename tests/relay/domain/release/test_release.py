"""Releases: one of each version, of an exact seal; assets that are stored once and saved, never run."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from blake3 import blake3
from sqlalchemy import func, select

from localstore.core.model.limits import ASSET_FILE, BLOB_FILE, MIB, NOTES_BYTES
from relay.db.schema import tables
from relay.domain.release import release as rules
from relay.domain.storage.collect import collect
from relay.domain.upkeep.verification import audit
from tests.patience import PATIENCE
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@pytest.fixture
def world(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[tuple[httpx.Client, Repository]]:
    who = account()
    http = client(who)
    yield http, create(http, who, "released")


World = tuple[httpx.Client, Repository]


def released(world: World, version: str = "v1.0", **more: Any) -> str:
    """The address of a new release."""
    http, repo = world
    seal = repo.head() or repo.seal({"f": b"1\n"})[0]
    ok(http.post(f"{repo.url}/releases", json={"version": version, "seal_id": seal, **more}))
    return f"{repo.url}/releases/{version}"


def put(http: httpx.Client, url: str, name: str, data: bytes, media: str | None = None) -> httpx.Response:
    headers = {"Content-Type": media} if media else {}
    signed = {"blake3": blake3(data).digest()}
    return http.post(f"{url}/assets", params={"name": name}, content=data, headers=headers, extensions=signed)


def used(relay: Relay, repo: Repository) -> int:
    """Bytes that count for a repository."""
    usage = tables["repo_usage"]

    async def read() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(usage.c.bytes).where(usage.c.repo_id == repo.id)))

    return relay.run(read())


def count(relay: Relay, table: str) -> int:
    async def read() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(func.count()).select_from(tables[table])))

    return relay.run(read())


def collected(relay: Relay) -> None:
    """The collector runs, as if a day had passed."""

    async def run() -> None:
        await collect(relay.node.db, relay.node.objects, lambda _: None, grace=-1000, quiet=-1000)

    relay.run(run())


# --- releases


def test_a_release_names_an_exact_seal_and_only_its_notes_change(world: World) -> None:
    http, repo = world
    first, second = repo.seal({"f": b"1\n"}, {"f": b"2\n"})
    made = ok(http.post(f"{repo.url}/releases", json={"version": "v1.0", "seal_id": first, "notes": "One\n"}))
    assert (made["version"], made["seal_id"], made["notes"], made["assets"]) == ("v1.0", first, "One\n", [])
    assert made["author"]["handle"] == repo.owner.handle
    url = f"{repo.url}/releases/v1.0"
    edited = ok(http.patch(url, json={"notes": "Two"}))
    assert edited == ok(http.get(url)) == {**made, "notes": "Two"}
    for body in ({"seal_id": second}, {"notes": "x", "seal_id": second}, {"notes": "x", "version": "v2"}):
        assert http.patch(url, json=body).status_code == 422
    assert ok(http.get(url))["seal_id"] == first
    again = http.post(f"{repo.url}/releases", json={"version": "v1.0", "seal_id": second})
    assert (again.status_code, again.json()["code"]) == (409, "release_exists")
    assert http.delete(url).status_code == 204
    assert http.get(url).status_code == 404 == http.delete(url).status_code
    ok(http.post(f"{repo.url}/releases", json={"version": "v1.0", "seal_id": second}))


def test_the_newest_comes_first_a_page_at_a_time(world: World) -> None:
    http, repo = world
    for version in ("v1", "v10", "v2"):
        released(world, version)
    names: list[str] = []
    query: dict[str, Any] = {"limit": 1}
    while True:
        page = http.get(f"{repo.url}/releases", params=query).json()
        names += [one["version"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert names == ["v2", "v10", "v1"]
    assert http.get(f"{repo.url}/releases", params={"cursor": "x"}).status_code == 422


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"version": ""}, "/version"),
        ({"version": "../x"}, "/version"),
        ({"version": "a/b"}, "/version"),
        ({"version": "v 1"}, "/version"),
        ({"version": "v1\n"}, "/version"),
        ({"version": "v\u202e1"}, "/version"),
        ({"version": "x" * 101}, "/version"),
        ({"version": "v1", "seal_id": "main"}, "/seal_id"),
        ({"version": "v1", "seal_id": "0" * 64}, "/seal_id"),
        ({"version": "v1", "notes": "x" * (NOTES_BYTES + 1)}, "/notes"),
    ],
)
def test_what_no_release_may_be_is_said(world: World, body: dict[str, Any], pointer: str) -> None:
    http, repo = world
    (seal,) = repo.seal({"f": b"1\n"})
    answer = http.post(f"{repo.url}/releases", json={"seal_id": seal, **body})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert http.get(f"{repo.url}/releases").json()["items"] == []


def test_notes_are_bounded_in_bytes_and_kept_as_they_are(world: World) -> None:
    http, _ = world
    url = released(world)
    assert http.patch(url, json={"notes": "ä" * (NOTES_BYTES // 2 + 1)}).status_code == 413
    hostile = "<script>alert(1)</script> [x](javascript:alert(1)) \u202e\x1b[31m"
    assert ok(http.patch(url, json={"notes": hostile}))["notes"] == hostile
    assert http.patch(url, json={"notes": "a\x00b"}).status_code == 422


def test_a_seal_of_another_repository_is_none(world: World, account: Any, client: Any) -> None:
    http, repo = world
    other = create(http, repo.owner, "other")
    (seal,) = other.seal({"f": b"1\n"})
    repo.seal({"g": b"2\n"})
    answer = http.post(f"{repo.url}/releases", json={"version": "v1", "seal_id": seal})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/seal_id")


def test_one_of_many_at_once_gets_the_version(world: World) -> None:
    http, repo = world
    (seal,) = repo.seal({"f": b"1\n"})
    with ThreadPoolExecutor(4) as threads:
        asked = {"version": "v1", "seal_id": seal}
        answers = list(threads.map(lambda _: http.post(f"{repo.url}/releases", json=asked), range(8)))
    assert sorted(one.status_code for one in answers) == [201] + [409] * 7
    assert len(http.get(f"{repo.url}/releases").json()["items"]) == 1


def test_so_many_and_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    http, repo = world
    monkeypatch.setattr(rules, "RELEASES", 2)
    monkeypatch.setattr(rules, "ASSETS", 3)
    url = released(world, "v1")
    released(world, "v2")
    full = http.post(f"{repo.url}/releases", json={"version": "v3", "seal_id": repo.head()})
    assert (full.status_code, full.json()["code"]) == (409, "conflict")
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda n: put(http, url, f"{n}.bin", b"%d" % n), range(8)))
    assert sorted(one.status_code for one in answers) == [201] * 3 + [409] * 5


# --- rights


def test_readers_download_and_others_see_nothing(
    world: World, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    http, repo = world
    url = released(world)
    ok(put(http, url, "a.txt", b"abc"))
    other, anybody = client(account()), client()
    missing = other.get(f"/api/v1/repos/{'0' * 20}/releases")
    for path in ("/releases", "/releases/v1.0", "/releases/v1.0/assets", "/releases/v1.0/assets/a.txt"):
        hidden = other.get(repo.url + path)
        assert (hidden.status_code, hidden.content) == (404, missing.content)
        assert anybody.get(repo.url + path).status_code in (401, 404)
    assert put(other, url, "x", b"x").status_code == 404
    ok(http.patch(repo.url, json={"visibility": "public"}))
    assert [one["version"] for one in ok(anybody.get(f"{repo.url}/releases"))["items"]] == ["v1.0"]
    assert ok(anybody.get(f"{url}/assets"))["items"][0]["name"] == "a.txt"
    assert anybody.get(f"{url}/assets/a.txt").content == b"abc"
    assert put(other, url, "x", b"x").status_code == 403
    assert other.patch(url, json={"notes": "x"}).status_code == 403
    assert other.delete(url).status_code == 403 == other.delete(f"{url}/assets/a.txt").status_code
    ok(http.patch(repo.url, json={"archived": True}))
    for answer in (put(http, url, "x", b"x"), http.delete(url), http.delete(f"{url}/assets/a.txt")):
        assert answer.json()["code"] == "repository_archived"
    assert anybody.get(f"{url}/assets/a.txt").content == b"abc"


# --- assets


@pytest.mark.parametrize("size", [0, 5, BLOB_FILE, BLOB_FILE + 1, 21 * MIB])
def test_bytes_come_back_whole_and_in_ranges(world: World, size: int) -> None:
    """In whatever kind of repository: this one takes no files in chunks."""
    http, repo = world
    ok(http.patch(repo.url, json={"kind": "lib"}))
    url, data = released(world), secrets.token_bytes(size)
    made = ok(put(http, url, "a.zip", data, "application/zip"))
    digest = blake3(data).hexdigest()
    assert (made["size"], made["blake3"], made["content_type"]) == (size, digest, "application/zip")
    assert ok(http.get(url))["assets"] == ok(http.get(f"{url}/assets"))["items"] == [made]
    where = f"{url}/assets/a.zip"
    whole = http.get(where)
    assert whole.content == data
    assert whole.headers["etag"] == f'"{digest}"'
    assert whole.headers["content-type"] == "application/zip"
    assert whole.headers["content-disposition"] == 'attachment; filename="a.zip"'
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in whole.headers["content-security-policy"]
    head = http.head(where)
    assert (head.content, head.headers["content-length"]) == (b"", str(size))
    assert http.get(where, headers={"If-None-Match": f'"{digest}"'}).status_code == 304
    if size < 2:
        return
    part = http.get(where, headers={"Range": f"bytes={size - 2}-", "If-Range": f'"{digest}"'})
    assert (part.status_code, part.content) == (206, data[-2:])
    assert part.headers["content-range"] == f"bytes {size - 2}-{size - 1}/{size}"
    assert http.get(where, headers={"Range": "bytes=1-", "If-Range": '"old"'}).status_code == 200
    assert http.get(where, headers={"Range": f"bytes={size}-"}).status_code == 416


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "a\\b", "/x", "a\x00b", "a\nb", "a\u202eb", "a\u200bb", " a", "a ", "a.",
     "CON", "aux.txt", ".git", "git~1", "a:b", 'a"b', "a?b", "e\u0301.txt", "x" * 201, "\u00ad"],
)  # fmt: skip
def test_names_that_are_no_name_of_a_file_are_refused(world: World, name: str) -> None:
    http, _ = world
    url = released(world)
    answer = put(http, url, name, b"abc")
    assert answer.status_code == 422, answer.text
    assert ok(http.get(f"{url}/assets"))["items"] == []


def test_names_of_all_scripts_are_kept_and_said_in_two_ways(world: World) -> None:
    http, _ = world
    url = released(world)
    ok(put(http, url, "résumé 100%.txt", b"abc"))
    found = http.get(f"{url}/assets/r%C3%A9sum%C3%A9%20100%25.txt")
    assert found.content == b"abc"
    assert found.headers["content-disposition"] == (
        "attachment; filename=\"r_sum_ 100_.txt\"; filename*=UTF-8''r%C3%A9sum%C3%A9%20100%25.txt"
    )


@pytest.mark.parametrize("media", ["zip", "a/b c", "text/html;", "a/b; c", "/", "a/" + "b" * 200])
def test_a_content_type_is_a_media_type(world: World, media: str) -> None:
    http, _ = world
    url = released(world)
    assert put(http, url, "a", b"abc", media).status_code in (400, 422)
    assert ok(put(http, url, "a", b"abc", "text/html; charset=utf-8"))["content_type"].startswith("text/html")
    assert ok(put(http, url, "b", b"abc"))["content_type"] == "application/octet-stream"


def test_a_name_is_there_once_and_the_refusal_says_what_is_there(world: World) -> None:
    http, _ = world
    url = released(world)
    ok(put(http, url, "App.zip", b"abc"))
    again = put(http, url, "app.ZIP", b"abcd")
    assert (again.status_code, again.json()["code"]) == (409, "asset_exists")
    there = {key: again.json()[key] for key in ("name", "blake3", "size")}
    assert there == {"name": "App.zip", "blake3": blake3(b"abc").hexdigest(), "size": 3}
    assert http.get(f"{url}/assets/app.zip").status_code == 404
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda n: put(http, url, "one", b"%d" % n), range(8)))
    assert sorted(one.status_code for one in answers) == [201] + [409] * 7
    assert http.delete(f"{url}/assets/App.zip").status_code == 204
    assert http.delete(f"{url}/assets/App.zip").status_code == 404
    ok(put(http, url, "app.ZIP", b"abcd"))


def replace(
    http: httpx.Client, url: str, name: str, data: bytes, replaces: bytes, signed: bytes | None = None
) -> httpx.Response:
    query = {"name": name, "replaces": blake3(replaces).hexdigest()}
    name_of_bytes = {"blake3": blake3(data if signed is None else signed).digest()}
    return http.post(f"{url}/assets", params=query, content=data, extensions=name_of_bytes)


def test_an_asset_takes_anothers_place_in_one_step(world: World) -> None:
    http, _ = world
    url = released(world)
    ok(put(http, url, "App.zip", b"one"))
    assert replace(http, url, "App.zip", b"two", b"other").json()["code"] == "asset_exists"
    assert http.get(f"{url}/assets/App.zip").content == b"one"
    assert ok(replace(http, url, "app.zip", b"two", b"one"))["name"] == "app.zip"
    assert http.get(f"{url}/assets/App.zip").status_code == 404
    assert http.get(f"{url}/assets/app.zip").content == b"two"
    assert http.get(f"{url}/assets").json()["items"][0]["size"] == 3
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda n: replace(http, url, "app.zip", b"%d" % n, b"two"), range(8)))
    assert sorted(one.status_code for one in answers) == [201] + [409] * 7
    assert len(http.get(f"{url}/assets").json()["items"]) == 1
    assert ok(replace(http, url, "new", b"new", b"gone since"))["name"] == "new"
    wrong = http.post(f"{url}/assets", params={"name": "a", "replaces": "X"}, content=b"a")
    assert wrong.status_code in (400, 422)


def test_an_asset_whose_successor_does_not_arrive_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, _ = world
    url = released(world)
    ok(put(http, url, "app.zip", b"one"))
    monkeypatch.setattr(rules, "ASSETS", 1)
    assert replace(http, url, "app.zip", b"two", b"one", signed=b"cut").status_code == 401
    assert http.get(f"{url}/assets/app.zip").content == b"one"
    assert ok(replace(http, url, "app.zip", b"two", b"one"))["size"] == 3  # no more than before


def test_equal_bytes_are_stored_once_and_count_once(world: World, relay: Relay) -> None:
    http, repo = world
    one, two = released(world, "v1"), released(world, "v2")
    data = secrets.token_bytes(17 * MIB)
    before = used(relay, repo)
    ok(put(http, one, "a", data))
    counted, objects, files = used(relay, repo), count(relay, "object"), count(relay, "chunked_file")
    assert len(data) < counted - before < len(data) + MIB
    ok(put(http, one, "b", data))
    ok(put(http, two, "a", data))
    assert used(relay, repo) == counted
    assert (count(relay, "object"), count(relay, "chunked_file")) == (objects, files)


def test_what_is_too_large_is_refused_while_it_arrives(world: World) -> None:
    http, _ = world
    url = released(world)
    with socket.create_connection((http.base_url.host, http.base_url.port or 80), timeout=PATIENCE) as line:
        head = f"POST {url}/assets?name=a HTTP/1.1\r\nHost: x\r\nContent-Length: {ASSET_FILE + 1}\r\n\r\n"
        line.sendall(head.encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")
    assert http.post(f"{url}/assets", params={"name": "a"}, content=iter([b"abc"])).status_code == 400


def test_other_bytes_than_were_signed_leave_nothing(world: World, relay: Relay) -> None:
    http, repo = world
    url = released(world)
    before = used(relay, repo)
    for size in (10, BLOB_FILE + 10):
        lie = {"blake3": blake3(b"other").digest()}
        data = secrets.token_bytes(size)
        answer = http.post(f"{url}/assets", params={"name": "a"}, content=data, extensions=lie)
        assert answer.status_code == 401
    assert ok(http.get(f"{url}/assets"))["items"] == []
    assert used(relay, repo) == before


def test_the_quota_of_the_owner_holds(world: World, relay: Relay) -> None:
    http, repo = world
    url = released(world)
    usage = tables["account_usage"]

    async def limit() -> None:
        async with relay.node.db.write() as tx:
            mine = usage.update().where(usage.c.account_id == repo.owner.id)
            await tx.run(mine.values(max_bytes=18 * MIB))

    relay.run(limit())
    ok(put(http, url, "a", secrets.token_bytes(10 * MIB)))
    for size in (10 * MIB, 40 * MIB):
        full = put(http, url, "b", secrets.token_bytes(size))
        assert full.json()["code"] == "quota_exceeded", full.text
    assert len(ok(http.get(f"{url}/assets"))["items"]) == 1


@pytest.mark.parametrize("size", [3 * MIB, 18 * MIB])
def test_the_collector_keeps_assets_and_frees_deleted_ones(world: World, relay: Relay, size: int) -> None:
    http, repo = world
    url, gone = released(world, "v1"), released(world, "v2")
    kept, dropped, with_release = (secrets.token_bytes(size) for _ in range(3))
    before = used(relay, repo)
    ok(put(http, url, "kept", kept))
    ok(put(http, url, "dropped", dropped))
    ok(put(http, gone, "dropped", with_release))
    collected(relay)
    assert http.get(f"{url}/assets/dropped").content == dropped
    assert http.delete(f"{url}/assets/dropped").status_code == 204
    assert http.delete(gone).status_code == 204
    collected(relay)
    assert http.get(f"{url}/assets/kept").content == kept
    assert size <= used(relay, repo) - before < size + MIB
    assert findings(relay) == []


def test_the_audit_says_which_asset_is_lost(world: World, relay: Relay) -> None:
    http, repo = world
    url = released(world)
    ok(put(http, url, "a", b"lost bytes"))
    assert findings(relay) == []
    scope = tables["repo_object"]

    async def lose() -> None:
        async with relay.node.db.write() as tx:
            digest = blake3(b"lost bytes").digest()
            await tx.run(scope.delete().where(scope.c.repo_id == repo.id, scope.c.digest == digest))

    relay.run(lose())
    assert any("asset a of release v1.0" in line for line in findings(relay))
    assert http.get(f"{url}/assets/a").status_code == 404
    assert http.delete(url).status_code == 204
    assert not any("asset a" in line for line in findings(relay))


def findings(relay: Relay) -> list[str]:
    async def run() -> list[str]:
        return [line async for line in audit(relay.node.db, relay.node.objects)]

    return relay.run(run())
