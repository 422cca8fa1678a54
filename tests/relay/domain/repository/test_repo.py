"""Repositories over HTTP: creation, lists, settings, states, and who may see what."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from blake3 import blake3
from sqlalchemy import bindparam, insert, select, update

from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.db.schema.event import event
from relay.db.schema.idempotency import idempotency
from relay.db.schema.repo import collaborator, repo_alias
from relay.db.schema.repo import repo as repo_table
from tests.relay.conftest import Account, Relay
from tests.relay.histories import compared, create, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]
DAY = 24 * 3600 * 1000


def set_columns(relay: Relay, repo_id: str, **values: Any) -> None:
    async def write() -> None:
        async with relay.node.db.write() as tx:
            change = update(repo_table).where(repo_table.c.id == bindparam("this"))
            await tx.run(change.values(**values), this=repo_id)

    relay.run(write())


def add_collaborator(relay: Relay, repo_id: str, who: Account, role: str) -> None:
    async def write() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(
                insert(collaborator), repo_id=repo_id, account_id=who.id, role=role, created_at=now_ms()
            )

    relay.run(write())


# --- creation


def test_a_new_repository_is_private_with_an_unsealed_default_branch(account: Maker, client: Client) -> None:
    owner = account()
    answer = client(owner).post("/api/v1/repos", json={"name": "Mixed-Case"})
    assert answer.status_code == 201
    body = answer.json()
    assert answer.headers["location"] == f"/api/v1/repos/{body['id']}"
    assert (body["name"], body["full_name"]) == ("mixed-case", f"{owner.handle}/mixed-case")
    assert (body["class"], body["visibility"], body["state"]) == ("private_plaintext", "private", "active")
    assert (body["kind"], body["default_branch"], body["viewer"]["role"]) == ("app", "main", "owner")
    (branch,) = ok(client(owner).get(f"/api/v1/repos/{body['id']}/refs"))["items"]
    assert (branch["name"], branch["head"], branch["default"]) == ("main", None, True)
    assert ok(client(owner).get(answer.headers["location"])) == body


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, "private_plaintext"),
        ({"visibility": "public"}, "published_public"),
        ({"visibility": "private"}, "private_plaintext"),
        ({"class": "published_public"}, "published_public"),
        ({"class": "published_public", "visibility": "public"}, "published_public"),
        ({"class": "published_public", "visibility": "private"}, 422),
        ({"class": "private_plaintext", "visibility": "public"}, 422),
        ({"class": "public_fork"}, 422),
        ({"class": "private_e2ee"}, 503),
        ({"class": "secret"}, 422),
        ({"kind": "novel"}, 422),
        ({"name": "no spaces"}, 422),
        ({"name": "settings"}, 422),
        ({"default_branch": "a..b"}, 422),
        ({"default_branch": "x\0y"}, 422),
        ({"description": "x" * 1001}, 422),
    ],
)
def test_classes_names_and_visibility(account: Maker, client: Client, sent: Any, expected: Any) -> None:
    answer = client(account()).post("/api/v1/repos", json={"name": "thing", **sent})
    if isinstance(expected, str):
        assert (answer.status_code, answer.json()["class"]) == (201, expected)
    else:
        assert answer.status_code == expected
    if expected == 503:
        assert answer.json()["code"] == "e2ee_unavailable"


def test_guests_and_the_nameless_create_nothing(relay: Relay, client: Client, account: Maker) -> None:
    guest = client(account(kind="guest")).post("/api/v1/repos", json={"name": "x"})
    assert (guest.status_code, guest.json()["code"]) == (403, "identity_level")
    nameless = client(relay.account(None)).post("/api/v1/repos", json={"name": "x"})
    assert nameless.status_code == 403
    assert client().post("/api/v1/repos", json={"name": "x"}).status_code == 401


def test_names_are_taken_once_for_each_owner(account: Maker, client: Client) -> None:
    mine = own(account, client)
    again = mine.http.post("/api/v1/repos", json={"name": "THING"})
    assert (again.status_code, again.json()["code"]) == (409, "name_taken")
    own(account, client)  # the same name of another owner


def test_a_repeated_creation_gets_the_first_answer(account: Maker, client: Client) -> None:
    http = client(account())
    key = {"idempotency-key": "once-1"}
    first = http.post("/api/v1/repos", json={"name": "once"}, headers=key)
    again = http.post("/api/v1/repos", json={"name": "once"}, headers=key)
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["location"] == first.headers["location"]
    other = http.post("/api/v1/repos", json={"name": "twice"}, headers=key)
    assert other.status_code == 422
    stranger = client(account()).post("/api/v1/repos", json={"name": "once"}, headers=key)
    assert stranger.json()["id"] != first.json()["id"]
    broken = http.post("/api/v1/repos", json={"name": "x"}, headers={"idempotency-key": "a b"})
    assert broken.status_code == 422


def test_a_key_is_forgotten_after_its_day(relay: Relay, account: Maker, client: Client) -> None:
    http = client(account())
    key = {"idempotency-key": "yesterday"}
    ok(http.post("/api/v1/repos", json={"name": "once"}, headers=key))

    async def expire() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(update(idempotency).values(expires_at=bindparam("then")), then=now_ms() - 1)

    relay.run(expire())
    assert http.post("/api/v1/repos", json={"name": "once"}, headers=key).status_code == 409
    assert http.post("/api/v1/repos", json={"name": "more"}, headers=key).status_code == 201


def test_one_key_sent_many_times_at_once_creates_once(account: Maker, client: Client) -> None:
    http = client(account())

    def send(_: int) -> str:
        answer = http.post("/api/v1/repos", json={"name": "race"}, headers={"idempotency-key": "k"})
        return str(ok(answer)["id"])

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(send, range(8)))) == 1
    assert len(ok(http.get("/api/v1/repos", params={"owner": "@me"}))["items"]) == 1


# --- visibility

ROUTES: list[tuple[str, str]] = [
    ("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/restore"), ("GET", "/refs"), ("POST", "/refs"),
    ("GET", "/refs/branch/main"), ("PATCH", "/refs/branch/main"), ("DELETE", "/refs/branch/main"),
    ("GET", "/commits"), ("GET", "/log"), ("GET", "/seals/x"), ("GET", "/tree/x"), ("GET", "/blob/x/y"),
    ("GET", "/raw/x/y"), ("GET", "/archive/x.tar.gz"), ("GET", "/history-pack"),
    ("GET", "/compare?base=a&head=b"), ("GET", "/seals/x/blame/y"),
]  # fmt: skip
BODIES = {
    "PATCH": {"expected_head": None, "head": "x"},
    "POST": {"type": "branch", "name": "n"},
}


@pytest.mark.parametrize("who", ["stranger", "guest", "anonymous"])
def test_hidden_and_missing_are_the_same_answer_everywhere(account: Maker, client: Client, who: str) -> None:
    hidden = own(account, client)
    caller = None if who == "anonymous" else account(kind="guest" if who == "guest" else "user")
    http = client(caller)
    for method, path in ROUTES:
        answers = [
            http.request(method, f"/api/v1/repos/{one}{path}", json=BODIES.get(method))
            for one in (hidden.id, new_id(), "no-id")
        ]
        assert compared(answers[0]) == compared(answers[1]) == compared(answers[2]), (method, path)
        allowed = {401, 404} if who == "anonymous" else {403, 404} if who == "guest" else {404}
        assert answers[0].status_code in allowed, (method, path)
    assert ok(hidden.http.get(hidden.url))["id"] == hidden.id


@pytest.mark.parametrize("state", ["suspended", "killed", "deleted"])
def test_switched_off_repositories_are_gone_for_everyone(
    relay: Relay, account: Maker, client: Client, state: str
) -> None:
    mine = own(account, client, visibility="public")
    set_columns(relay, mine.id, state=state)
    for method, path in ROUTES:
        if path != "/restore":
            answer = mine.http.request(method, mine.url + path, json=BODIES.get(method))
            assert answer.status_code == 404, (method, path)
    assert mine.http.get(f"/api/v1/public/apps/{mine.body['full_name']}").status_code == 404
    assert ok(mine.http.get("/api/v1/repos", params={"owner": "@me"}))["items"] == []


@pytest.mark.parametrize("role", ["read", "triage", "write", "admin"])
def test_settings_are_the_owners_alone(relay: Relay, account: Maker, client: Client, role: str) -> None:
    mine = own(account, client)
    friend = account()
    add_collaborator(relay, mine.id, friend, role)
    http = client(friend)
    assert ok(http.get(mine.url))["viewer"]["role"] == role
    assert http.patch(mine.url, json={"description": "mine now"}).status_code == 403
    assert http.delete(mine.url).status_code == 403
    listed = ok(http.get("/api/v1/repos", params={"owner": mine.owner.handle}))["items"]
    assert [one["id"] for one in listed] == [mine.id]


@pytest.mark.parametrize(("role", "stored"), [("read", 403), ("triage", 403), ("write", 201)])
def test_uploads_need_a_writer(relay: Relay, account: Maker, client: Client, role: str, stored: int) -> None:
    mine, friend, content = own(account, client), account(), b"bytes"
    add_collaborator(relay, mine.id, friend, role)
    answer = client(friend).put(f"{mine.url}/payloads/{blake3(content).hexdigest()}", content=content)
    assert answer.status_code == stored


# --- settings


def test_settings_change_one_by_one(account: Maker, client: Client) -> None:
    mine = own(account, client)
    changed = ok(mine.http.patch(mine.url, json={"description": "ä", "kind": "lib"}))
    assert (changed["description"], changed["kind"], changed["name"]) == ("ä", "lib", "thing")
    assert mine.http.patch(mine.url, json={"default_branch": "nope"}).status_code == 409
    assert mine.http.patch(mine.url, json={"name": "new"}).status_code == 422
    public = ok(mine.http.patch(mine.url, json={"visibility": "public"}))
    assert (public["class"], public["visibility"]) == ("published_public", "public")
    assert ok(mine.http.patch(mine.url, json={"visibility": "private"}))["class"] == "private_plaintext"


@pytest.mark.parametrize(
    ("class_", "visibility", "code"),
    [("public_fork", "private", "fork_is_public"), ("private_e2ee", "public", "class_immutable")],
)
def test_classes_that_keep_their_visibility(
    relay: Relay, account: Maker, client: Client, class_: str, visibility: str, code: str
) -> None:
    mine = own(account, client)
    set_columns(relay, mine.id, **{"class": class_})
    answer = mine.http.patch(mine.url, json={"visibility": visibility})
    assert (answer.status_code, answer.json()["code"]) == (409, code)
    same = "public" if visibility == "private" else "private"
    assert ok(mine.http.patch(mine.url, json={"visibility": same}))["class"] == class_


def test_the_default_branch_moves_to_one_that_exists(account: Maker, client: Client) -> None:
    mine = own(account, client)
    (head,) = mine.seal({"f": b"x"})
    mine.branch("next", head)
    assert ok(mine.http.patch(mine.url, json={"default_branch": "next"}))["default_branch"] == "next"
    assert mine.http.delete(f"{mine.url}/refs/branch/next").status_code == 409
    assert mine.http.delete(f"{mine.url}/refs/branch/main").status_code == 204


def test_archived_takes_nothing_but_its_unarchiving(account: Maker, client: Client) -> None:
    mine = own(account, client)
    assert ok(mine.http.patch(mine.url, json={"archived": True}))["state"] == "archived"
    assert ok(mine.http.patch(mine.url, json={"archived": True}))["archived"] is True
    for answer in (
        mine.http.patch(mine.url, json={"description": "x"}),
        mine.http.patch(mine.url, json={"archived": True, "description": "x"}),
        mine.http.post(f"{mine.url}/refs", json={"type": "branch", "name": "b"}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (409, "repository_archived")
    assert ok(mine.http.get(mine.url))["archived"] is True
    assert ok(mine.http.patch(mine.url, json={"archived": False}))["state"] == "active"


def test_a_renamed_repository_answers_at_its_old_name_for_those_who_may_read(
    relay: Relay, account: Maker, client: Client
) -> None:
    mine = own(account, client, name="before")
    owner = mine.owner.handle
    assert ok(mine.http.patch(mine.url, json={"name": "after"}))["full_name"] == f"{owner}/after"
    old = f"/api/v1/public/apps/{owner}/before"
    assert ok(mine.http.get(old))["full_name"] == f"{owner}/after"
    assert client(account()).get(old).status_code == 404
    named = ok(mine.http.get("/api/v1/repos", params={"owner": "@me", "name": "before"}))["items"]
    assert [one["id"] for one in named] == [mine.id]
    taken = mine.http.post("/api/v1/repos", json={"name": "before"})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    other = create(mine.http, mine.owner, "other")
    assert mine.http.patch(other.url, json={"name": "before"}).status_code == 409
    assert mine.http.patch(other.url, json={"name": "after"}).status_code == 409
    assert ok(mine.http.patch(mine.url, json={"name": "before"}))["name"] == "before"  # its own to take back

    async def expire() -> None:
        async with relay.node.db.write() as tx:
            await tx.run(update(repo_alias).values(expires_at=bindparam("then")), then=now_ms() - 1)

    relay.run(expire())
    assert mine.http.get(f"/api/v1/public/apps/{owner}/after").status_code == 404
    assert ok(mine.http.patch(other.url, json={"name": "after"}))["name"] == "after"


# --- deletion


def test_a_deleted_repository_can_be_found_and_restored_by_its_owner(account: Maker, client: Client) -> None:
    mine = own(account, client, visibility="public")
    mine.http.patch(mine.url, json={"archived": True})
    gone = ok(mine.http.delete(mine.url))
    assert gone["restore_id"] == mine.id
    assert mine.http.get(mine.url).status_code == 404
    assert ok(mine.http.get("/api/v1/repos", params={"owner": "@me"}))["items"] == []
    (found,) = ok(mine.http.get("/api/v1/repos", params={"owner": "@me", "state": "deleted"}))["items"]
    assert (found["id"], found["state"]) == (mine.id, "deleted")
    stranger = client(account())
    theirs = {"owner": mine.owner.handle, "state": "deleted"}
    assert ok(stranger.get("/api/v1/repos", params=theirs))["items"] == []
    assert client().get("/api/v1/repos", params=theirs).status_code == 401
    assert stranger.post(f"{mine.url}/restore").status_code == 404
    assert mine.http.post("/api/v1/repos", json={"name": "thing"}).status_code == 409
    assert ok(mine.http.post(f"{mine.url}/restore"))["state"] == "archived"  # as it was
    assert mine.http.post(f"{mine.url}/restore").status_code == 404


def test_the_purge_window_ends(relay: Relay, account: Maker, client: Client) -> None:
    mine = own(account, client)
    ok(mine.http.delete(mine.url))
    set_columns(relay, mine.id, purge_at=now_ms() - 1)
    answer = mine.http.post(f"{mine.url}/restore")
    assert compared(answer) == compared(mine.http.post(f"/api/v1/repos/{new_id()}/restore"))
    assert ok(mine.http.get("/api/v1/repos", params={"state": "deleted"}))["items"] == []


# --- lists


def test_pages_have_no_doubles_and_no_holes_while_rows_arrive(account: Maker, client: Client) -> None:
    owner = account()
    http = client(owner)
    names = {create(http, owner, f"r{number:02}").body["name"] for number in range(12)}
    for query in ({"owner": "@me"}, {"owner": owner.handle}, {}):
        found: list[str] = []
        cursor: str | None = None
        while True:
            more = {"cursor": cursor} if cursor else {}
            page = ok(http.get("/api/v1/repos", params={**query, "limit": 5, **more}))
            found += [one["name"] for one in page["items"] if one["owner"] == owner.handle]
            cursor = page["next_cursor"]
            if cursor is None:
                break
            create(http, owner, f"a{len(found):02}-{len(names)}-{len(query)}{len(str(query))}")
        assert len(found) == len(set(found))
        assert names <= set(found)


def test_private_ones_are_in_nobody_elses_list(account: Maker, client: Client) -> None:
    mine = own(account, client)
    public = create(mine.http, mine.owner, "shown", visibility="public")
    for http in (client(), client(account()), client(account(kind="guest"))):
        found = ok(http.get("/api/v1/repos", params={"owner": f"@{mine.owner.handle}"}))["items"]
        assert [one["id"] for one in found] == [public.id]
        assert mine.id not in [one["id"] for one in ok(http.get("/api/v1/repos?limit=100"))["items"]]
    assert client().get("/api/v1/repos", params={"owner": "@me"}).status_code == 401


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=101", "limit=99999999999999999999", "limit=x", "cursor=!!", "cursor=e30",
        "cursor=WzFd", "cursor=WyJhIiwxXQ", "owner=a&owner=b", "name=x", "state=all", "owner=a%00b",
        "owner=%ff",
    ],
)  # fmt: skip
def test_hostile_lists_are_refused_plainly(client: Client, account: Maker, query: str) -> None:
    assert client(account()).get(f"/api/v1/repos?{query}").status_code == 422


def test_changes_are_announced_to_listeners(relay: Relay, account: Maker, client: Client) -> None:
    mine = own(account, client)
    mine.http.patch(mine.url, json={"description": "x"})
    ok(mine.http.delete(mine.url))
    ok(mine.http.post(f"{mine.url}/restore"))

    async def actions() -> list[Any]:
        async with relay.node.db.read() as tx:
            asked = select(event.c.kind, event.c.actor).where(event.c.repo_id == mine.id)
            return [tuple(row) for row in await tx.all(asked.order_by(event.c.id))]

    kinds = ["repo.create", "repo.update", "repo.delete", "repo.restore"]
    assert relay.run(actions()) == [(one, mine.owner.id) for one in kinds]
