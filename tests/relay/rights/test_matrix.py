"""Each operation × nine callers × public, private, archived, suspended, on every route that there is, as the
table says."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest
from blake3 import blake3
from sqlalchemy import insert

from localstore.core.model import limits
from localstore.core.model.rights import CALLERS, OPERATIONS, Who
from relay import domain
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.http.routing import TABLE, Route
from relay.run.operator_commands import _set_state
from tests.depth import played
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, ok

domain.load()
STATES = ("public", "private", "archived", "archived private", "suspended")
OURS = [one for one in TABLE if one.about_repo]
ACCOUNTS = [one for one in TABLE if one.operation.about in ("account", "browser")]
TEXT = b"text\n"
NOWHERE = "0190a1b2c3d47e8f9a0b"  # the id of no repository
GARBAGE = b'{"no": "such", "member'
# Tried on a repository of their own.
DELETING = {
    "repo.delete",
    "release.delete",
    "asset.delete",
    "label.delete",
    "comment.delete",
    "check.disable",
    "webhook.delete",
}
# Somebody without the role may be the author, which the service proves once it has read a good body.
BODIES = {
    "issue.update": b'{"state": "open"}',
    "comment.edit": b'{"body": "other"}',
    "proposal.update": b'{"state": "open"}',
    "thread.resolve": b'{"state": "open"}',
}
# What is not there (a large file takes 16 MiB): whoever may ask gets the answer for what is missing.
MISSING = {
    "GET /api/v1/repos/{id}/payloads/{blake3}/manifest",
    "DELETE /api/v1/repos/{id}/invites/{invite}",
    "DELETE /api/v1/repos/{id}/protections/{pattern...}",
    "GET /api/v1/repos/{id}/listing",
    "DELETE /api/v1/repos/{id}/listing",
    "GET /api/v1/repos/{id}/webhooks/{hook}/deliveries/{delivery}",
}
# Whoever has the role may give it up: tests/relay/domain/access.
OWN = {"collaborator.remove"}


def name(route: Route) -> str:
    return f"{route.method} {route.path}"


@dataclass
class Place:
    """A repository in one of STATES. `role`: the callers who have one in it. #2 is the author's proposal."""

    repo: Repository
    state: str
    seal: str
    comment: str = ""  # on #1, which is the author's, as the comment is
    run: str = ""
    thread: str = ""
    hook: str = ""
    org: str = "nobody"
    user: str = ""
    document: str = "none"

    @property
    def public(self) -> bool:
        return self.state in ("public", "archived")

    @property
    def archived(self) -> bool:
        return self.state.startswith("archived")


@dataclass
class World:
    relay: Relay
    clients: dict[Who, httpx.Client]
    people: dict[Who, Account]
    places: dict[str, Place]

    def sent(self) -> dict[str, str]:
        """What is wished of every repository beside its name."""
        return {}

    def place(self, state: str) -> Place:
        """A new repository of the owner's in this state. Whoever names a role in CALLERS has it; the author
        has the role read where the repository is private, and none where it is public."""
        owner = self.people["owner"]
        visibility = "private" if "private" in state else "public"
        sent = {**self.sent(), "name": f"r{secrets.token_hex(4)}", "visibility": visibility}
        http = self.clients["owner"]
        repo = Repository(http, owner, ok(http.post("/api/v1/repos", json=sent)))
        made = Place(repo, state, repo.seal({"a.txt": TEXT})[-1])
        releases = f"{repo.url}/releases"
        ok(self.clients["owner"].post(releases, json={"version": "v1", "seal_id": made.seal}))
        ok(self.clients["owner"].post(f"{releases}/v1/assets", params={"name": "main"}, content=TEXT))
        roles = {"admin": "admin", "write": "write", "triage": "triage", "read": "read"}
        if not made.public:
            roles["author"] = "read"
        self.relay.run(self._grant(repo.id, roles))
        ok(self.clients["owner"].post(f"{repo.url}/labels", json={"name": "main"}))
        ok(self.clients["author"].post(f"{repo.url}/issues", json={"title": "first"}))
        comments = f"{repo.url}/issues/1/comments"
        made.comment = ok(self.clients["author"].post(comments, json={"body": "text"}))["id"]
        repo.branch("topic", made.seal)
        repo.seal({"a.txt": b"another\n"}, branch="topic")
        sent = {"head": "topic", "base": "main", "title": "second"}
        ok(self.clients["author"].post(f"{repo.url}/proposals", json=sent))
        thread = {"path": "a.txt", "start": 1, "end": 1, "seal_id": repo.head("topic"), "body": "text"}
        made.thread = ok(self.clients["author"].post(f"{repo.url}/proposals/2/threads", json=thread))["id"]
        run = {"name": "test", "seal_id": made.seal}
        made.run = ok(self.clients["owner"].post(f"{repo.url}/runs", json=run))["id"]
        ok(self.clients["owner"].put(f"{repo.url}/checks/main"))
        hook = {"url": "https://hooks.example/", "events": ["push"], "active": False}
        made.hook = ok(self.clients["owner"].post(f"{repo.url}/webhooks", json=hook))["id"]
        if made.archived:
            ok(self.clients["owner"].patch(repo.url, json={"archived": True}))
        if state == "suspended":
            self.relay.run(_set_state(self.relay.node.db, str(repo.body["full_name"]), "suspend"))
        return made

    async def _grant(self, repo_id: str, roles: dict[str, str]) -> None:
        async with self.relay.node.db.write() as tx:
            rows: list[dict[str, Any]] = [
                {
                    "repo_id": repo_id,
                    "account_id": self.people[who].id,  # type: ignore[index]
                    "role": role,
                    "created_at": now_ms(),
                }
                for who, role in roles.items()
            ]
            await tx.many(insert(tables["collaborator"]), rows)


@pytest.fixture(scope="module")
def world(relay: Relay) -> Iterator[World]:
    people: dict[Who, Account] = {
        who: relay.account(None, "guest")
        if who == "guest"
        else relay.account(f"{who}x{secrets.token_hex(3)}")
        for who in CALLERS
        if who != "anonymous"
    }
    clients: dict[Who, httpx.Client] = {who: relay.client(one) for who, one in people.items()}
    clients["anonymous"] = relay.client()
    made = World(relay, clients, people, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "POSTS_STRANGER", 1000)
        made.places = {state: made.place(state) for state in STATES}
        yield made
    for client in clients.values():
        client.close()


def expected(route: Route, who: Who, place: Place) -> tuple[int, str] | None:
    """Status and code of the refusal, None where the caller is let through."""
    may = route.operation
    if who == "anonymous" and not may.anonymous:
        return 401, "sign_in_required"
    outside = who in ("stranger", "guest", "anonymous")
    if place.state == "suspended" or (outside and not place.public):
        return 404, "not_found"
    if who == "guest" and not may.guest:
        return 403, "identity_level"
    unproven = (
        may.author and place.archived and not may.archived
    )  # the service would prove it, and is not asked
    if not may.allows(who) and not unproven:
        return 403, "forbidden"
    if place.archived and not may.archived:
        return 409, "repository_archived"
    return None


def url_of(route: Route, place: Place) -> str:
    """Its path, about what there is in a place."""
    values = {
        "id": place.document if "/documents/" in route.path else place.repo.id,
        "sha": place.seal,
        "seal_id": place.seal,
        "path": "a.txt",
        "branch": "main",
        "type": "branch",
        "name": "main",
        "v": "v1",
        "blake3": blake3(TEXT).hexdigest(),
        "n": "2" if "/proposals/" in route.path else "1",
        "review": "none",
        "comment": place.comment,
        "reaction": "eyes",
        "run": place.run,
        "thread": place.thread,
        "handle": "nobody",
        "pattern": "release",
        "invite": "0" * 32,
        "hook": place.hook,
        "delivery": "none",
        "report": "none",
        "org": place.org,
        "user_id": place.user,
        "key_id": "none",
        "app_id": place.repo.id,
    }
    url = route.path.replace("...", "")
    for parameter in route.params:
        url = url.replace(f"{{{parameter}}}", values[parameter])
    return url


def ask(route: Route, http: httpx.Client, place: Place) -> httpx.Response:
    url = url_of(route, place)
    if route.path.endswith("/compare"):
        url += "?head=main"
    if route.method in ("GET", "DELETE"):
        return http.request(route.method, url)
    extensions = {"blake3": blake3(GARBAGE).digest()} if route.stream else {}
    media = "application/octet-stream" if route.stream else "application/json"
    body = BODIES.get(route.operation.name, GARBAGE)
    return http.request(
        route.method, url, content=body, headers={"Content-Type": media}, extensions=extensions
    )


@pytest.mark.parametrize("route", OURS, ids=name)
def test_who_may_what_in_a_repository(world: World, route: Route) -> None:
    """Whoever is let through reads, or is told what is wrong with a body of nonsense."""
    number = OURS.index(route)
    bodiless = not (route.body or route.stream)
    for at, state in enumerate(STATES):
        for who in CALLERS:
            if who == "author" and route.operation.name in OWN:
                continue
            # In the suite all callers where it is public; elsewhere the owner and others in turn.
            if state != "public" and who != "owner" and not played(number, at, CALLERS.index(who), one_in=3):
                continue
            deletes = route.operation.name in DELETING and expected(route, who, world.places[state]) is None
            place = world.place(state) if deletes else world.places[state]
            answer = ask(route, world.clients[who], place)
            wrong = expected(route, who, place)
            case = (state, who, answer.status_code, answer.text[:200])
            if wrong is not None:
                assert (answer.status_code, answer.json()["code"]) == wrong, case
            elif name(route) in MISSING:
                assert answer.status_code == 404, case
            elif route.method == "GET" or deletes or route.operation.name in BODIES:
                assert answer.status_code in (200, 204), case
            elif bodiless and answer.is_success:
                pass
            else:
                assert answer.status_code in (400, 409, 422), case
                assert answer.json()["code"] != "repository_archived", case


@pytest.mark.parametrize("route", OURS, ids=name)
def test_strangers_cannot_tell_hidden_from_missing(world: World, route: Route) -> None:
    """The same bytes, also where a suspended repository is another's or one's own."""
    for state, who in (
        ("private", "stranger"),
        ("private", "guest"),
        ("private", "anonymous"),
        ("archived private", "stranger"),
        ("suspended", "stranger"),
        ("suspended", "owner"),
    ):
        there = world.places[state]
        nowhere = replace(there, repo=replace(there.repo, body={**there.repo.body, "id": NOWHERE}))
        answers = [ask(route, world.clients[who], place) for place in (there, nowhere)]
        assert _told(answers[0]) == _told(answers[1]), (state, who)


def _told(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """All of an answer but what is of the request and the moment: a connection is kept if the body was
    read."""
    own = ("x-request-id", "date", "ratelimit-remaining", "ratelimit-reset", "connection", "keep-alive")
    content = re.sub(rb'"server_time":\d+', b'"server_time":0', answer.content)
    return answer.status_code, content, {k: v for k, v in answer.headers.items() if k not in own}


@pytest.mark.parametrize("route", ACCOUNTS, ids=name)
def test_who_may_what_elsewhere(world: World, route: Route) -> None:
    """Asked with a token, which no browser's decision takes."""
    may = route.operation
    path = route.path.replace("{id}", "0" * 32).replace("{key_id}", "x")
    headers = {"Content-Type": "application/json"}
    body = GARBAGE if route.body else b""
    for who in CALLERS:
        if route.path == "/api/v1/sync/ws" and who != "anonymous":
            continue  # a request that asks for no upgrade is refused before all else
        answer = world.clients[who].request(route.method, path, content=body, headers=headers)
        case = (who, answer.status_code, answer.text[:200])
        code = None if answer.is_success else answer.json()["code"]
        if who == "anonymous":
            assert (answer.status_code, code) == (401, "sign_in_required"), case
        elif may.about == "browser":
            assert (answer.status_code, code) == (403, "forbidden"), case
        elif who == "guest" and not may.guest:
            assert (answer.status_code, code) == (403, "identity_level"), case
        else:
            assert answer.status_code not in (401, 403), case


def test_every_operation_that_a_route_names_is_asked_for() -> None:
    asked = {one.operation.name for one in (*OURS, *ACCOUNTS)}
    named = {one.operation.name for one in TABLE if one.operation.about != "node"}
    assert asked == named <= OPERATIONS.keys()
