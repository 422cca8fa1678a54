"""Invitations, roles, requests and transfers: rights begin when somebody accepts, and end at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from localstore.core.model import limits
from relay.domain.access import offer
from tests.patience import until
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

INVITES, REQUESTS, TRANSFERS = "/api/v1/invites", "/api/v1/access-requests", "/api/v1/transfers"


@dataclass
class Person:
    who: Account
    http: httpx.Client

    @property
    def handle(self) -> str:
        return str(self.who.handle)

    def role(self, repo: Repository) -> str | None:
        """Their role; "hidden" where they see nothing."""
        answer = self.http.get(repo.url)
        if answer.status_code == 404:
            return "hidden"
        return ok(answer)["viewer"]["role"]  # type: ignore[no-any-return]


@dataclass
class World:
    relay: Relay
    owner: Person
    repo: Repository
    person: Callable[[], Person]

    def invited(self, role: str = "write") -> tuple[Person, str]:
        bob = self.person()
        body = {"handle": bob.handle, "role": role}
        return bob, ok(self.owner.http.post(f"{self.repo.url}/invites", json=body))["id"]

    def member(self, role: str = "write") -> Person:
        bob, invite = self.invited(role)
        ok(bob.http.post(f"{INVITES}/{invite}/accept"))
        return bob

    def offered(self) -> tuple[Person, str]:
        bob = self.person()
        return bob, ok(self.owner.http.post(f"{self.repo.url}/transfers", json={"to": bob.handle}))["id"]

    def inbox_reasons(self) -> set[str]:
        """Of the owner's rows, once there is one about a request."""

        def reasons() -> set[str]:
            rows = ok(self.owner.http.get("/api/v1/inbox"))["items"]
            found = {one["reason"] for one in rows if one["repo"]["id"] == self.repo.id}
            return found if "access_requested" in found else set()

        return until(reasons, "the owner is told of a request")

    def requests(self, many: int = 1) -> list[dict[str, Any]]:
        """The open requests, once there are so many."""

        def found() -> list[dict[str, Any]]:
            items: list[dict[str, Any]] = ok(self.owner.http.get(f"{self.repo.url}/access-requests"))["items"]
            return items if len(items) >= many else []

        return until(found, f"there are {many} requests") if many else found()


@pytest.fixture
def world(relay: Relay, client: Callable[..., httpx.Client]) -> Iterator[World]:
    def person() -> Person:
        who = relay.account(f"p{secrets.token_hex(5)}")
        return Person(who, client(who))

    owner = person()
    yield World(relay, owner, create(owner.http, owner.who, "shared", visibility="private"), person)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["code"])


def test_rights_begin_when_the_invitation_is_accepted(world: World) -> None:
    bob, invite = world.invited("triage")
    assert bob.role(world.repo) == "hidden"
    (mine,) = ok(bob.http.get(INVITES))["items"]
    assert (mine["id"], mine["role"]) == (invite, "triage")
    assert mine["repo"]["full_name"] == world.repo.body["full_name"]
    assert [one["id"] for one in ok(world.owner.http.get(f"{world.repo.url}/invites"))["items"]] == [invite]
    assert ok(bob.http.post(f"{INVITES}/{invite}/accept"))["state"] == "accepted"
    assert bob.role(world.repo) == "triage"
    (there,) = ok(world.owner.http.get(f"{world.repo.url}/collaborators"))["items"]
    assert (there["account"]["handle"], there["role"]) == (bob.handle, "triage")
    assert ok(bob.http.get(INVITES))["items"] == []
    assert code(bob.http.post(f"{INVITES}/{invite}/decline")) == (409, "already_decided")


def test_a_declined_or_cancelled_invitation_gives_nothing(world: World) -> None:
    bob, invite = world.invited()
    assert ok(bob.http.post(f"{INVITES}/{invite}/decline"))["state"] == "declined"
    assert bob.role(world.repo) == "hidden"
    bob, invite = world.invited()
    ok(world.owner.http.delete(f"{world.repo.url}/invites/{invite}"))
    assert code(bob.http.post(f"{INVITES}/{invite}/accept")) == (409, "already_decided")
    assert bob.role(world.repo) == "hidden"
    ok(world.owner.http.post(f"{world.repo.url}/invites", json={"handle": bob.handle}))


def test_an_invitation_ends_by_itself(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("relay.domain.access.invite.OFFER_MS", 1)
        bob, invite = world.invited()
    time.sleep(0.01)
    assert code(bob.http.post(f"{INVITES}/{invite}/accept")) == (410, "invite_expired")
    assert ok(bob.http.get(INVITES))["items"] == []
    assert (
        ok(world.owner.http.post(f"{world.repo.url}/invites", json={"handle": bob.handle}))["state"]
        == "pending"
    )


def test_what_cannot_be_invited(world: World) -> None:
    bob, _ = world.invited()
    url = f"{world.repo.url}/invites"
    assert code(world.owner.http.post(url, json={"handle": bob.handle})) == (409, "invite_pending")
    assert code(world.owner.http.post(url, json={"handle": world.owner.handle})) == (
        409,
        "already_collaborator",
    )
    member = world.member()
    assert code(world.owner.http.post(url, json={"handle": member.handle})) == (409, "already_collaborator")
    assert code(world.owner.http.post(url, json={"handle": "nobody-there"})) == (422, "invalid")
    assert code(world.owner.http.post(url, json={"handle": bob.handle, "role": "owner"})) == (422, "invalid")
    assert code(member.http.post(url, json={"handle": world.person().handle})) == (403, "forbidden")


@pytest.mark.usefixtures("rate_limits")
def test_invitations_are_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INVITES_A_DAY", 2)
    world.invited()
    world.invited()
    answer = world.owner.http.post(f"{world.repo.url}/invites", json={"handle": world.person().handle})
    assert code(answer) == (429, "rate_limited")
    monkeypatch.setattr(limits, "INVITES_A_DAY", 200)
    monkeypatch.setattr(limits, "COLLABORATORS", 2)
    answer = world.owner.http.post(f"{world.repo.url}/invites", json={"handle": world.person().handle})
    assert code(answer) == (409, "conflict")


def test_nobody_else_sees_or_answers_an_invitation(world: World) -> None:
    _, invite = world.invited()
    stranger = world.person()
    unknown = stranger.http.post(f"{INVITES}/{'0' * 32}/accept")
    for what in ("accept", "decline"):
        answer = stranger.http.post(f"{INVITES}/{invite}/{what}")
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert ok(stranger.http.get(INVITES))["items"] == []


def test_accept_and_decline_at_once_have_one_outcome(world: World) -> None:
    for _ in range(8):
        bob, invite = world.invited()
        urls = [f"{INVITES}/{invite}/{what}" for what in ("accept", "decline", "accept")]
        with ThreadPoolExecutor(3) as pool:
            answers = [one.status_code for one in pool.map(bob.http.post, urls)]
        assert sorted(answers) == [200, 409, 409]
        assert bob.role(world.repo) == ("hidden" if answers[1] == 200 else "write")


def test_roles_change_and_end_at_once(world: World) -> None:
    bob = world.member("write")
    url = f"{world.repo.url}/collaborators/{bob.handle}"
    assert ok(world.owner.http.patch(url, json={"role": "read"}))["role"] == "read"
    answer = bob.http.post(f"{world.repo.url}/refs", json={"type": "branch", "name": "x"})
    assert code(answer) == (403, "forbidden")
    assert world.owner.http.delete(url).status_code == 204
    assert bob.role(world.repo) == "hidden"
    assert code(world.owner.http.delete(url)) == (404, "not_found")


def test_roles_of_the_invited_change_and_end(world: World) -> None:
    bob, invite = world.invited("read")
    url = f"{world.repo.url}/collaborators/{bob.handle}"
    changed = ok(world.owner.http.patch(url, json={"role": "admin"}))
    assert (changed["state"], changed["role"]) == ("pending", "admin")
    ok(bob.http.post(f"{INVITES}/{invite}/accept"))
    assert bob.role(world.repo) == "admin"
    carol, invite = world.invited()
    assert world.owner.http.delete(f"{world.repo.url}/collaborators/{carol.handle}").status_code == 204
    assert code(carol.http.post(f"{INVITES}/{invite}/accept")) == (409, "already_decided")


def test_anybody_may_leave_and_nobody_removes_another(world: World) -> None:
    bob, carol = world.member("admin"), world.member("read")
    assert code(bob.http.delete(f"{world.repo.url}/collaborators/{carol.handle}")) == (403, "forbidden")
    assert bob.http.delete(f"{world.repo.url}/collaborators/@me").status_code == 204
    assert carol.http.delete(f"{world.repo.url}/collaborators/{carol.handle}").status_code == 204
    assert (bob.role(world.repo), carol.role(world.repo)) == ("hidden", "hidden")


def test_a_request_says_nothing_of_what_is_there(world: World) -> None:
    bob = world.person()
    answers = [
        bob.http.post(REQUESTS, json={"repo": repo, "note": "please"})
        for repo in (world.repo.body["full_name"], "nobody/nothing", f"{bob.handle}/x")
    ]
    assert {(one.status_code, one.content) for one in answers} == {(202, answers[0].content)}
    (asked,) = world.requests()
    assert (asked["account"]["handle"], asked["role"], asked["note"]) == (bob.handle, "read", "please")
    ok(bob.http.post(REQUESTS, json={"repo": world.repo.body["full_name"], "role": "write"}))
    until(lambda: [one["role"] for one in world.requests()] == ["write"], "the role is the new one")


def test_the_owner_grants_or_declines_a_request(world: World) -> None:
    bob, carol = world.person(), world.person()
    for one in (bob, carol):
        ok(one.http.post(REQUESTS, json={"repo": world.repo.body["full_name"]}))
    found = {one["account"]["handle"]: one["id"] for one in world.requests(2)}
    assert code(carol.http.post(f"{REQUESTS}/{found[bob.handle]}/grant", json={})) == (404, "not_found")
    assert ok(world.owner.http.post(f"{REQUESTS}/{found[bob.handle]}/grant", json={"role": "triage"}))
    assert ok(world.owner.http.post(f"{REQUESTS}/{found[carol.handle]}/decline"))["state"] == "declined"
    assert (bob.role(world.repo), carol.role(world.repo)) == ("triage", "hidden")
    again = world.owner.http.post(f"{REQUESTS}/{found[bob.handle]}/grant", json={})
    assert code(again) == (409, "already_decided")
    assert world.requests(0) == []


def test_a_collaborator_asks_for_a_further_role(world: World) -> None:
    bob = world.member("triage")
    for role in ("read", "triage"):
        refused = bob.http.post(REQUESTS, json={"repo": world.repo.body["full_name"], "role": role})
        assert code(refused) == (409, "already_collaborator")
    ok(bob.http.post(REQUESTS, json={"repo": world.repo.body["full_name"], "role": "write"}))
    (asked,) = world.requests()
    assert (asked["account"]["handle"], asked["role"]) == (bob.handle, "write")
    assert "access_requested" in world.inbox_reasons()
    assert ok(world.owner.http.post(f"{REQUESTS}/{asked['id']}/grant", json={}))["state"] == "granted"
    assert bob.role(world.repo) == "write"


def test_a_granted_request_and_an_accepted_invitation_keep_the_limit_of_collaborators(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, carol = world.person(), world.person()
    dora, invite = world.invited()
    for person in (bob, carol):
        ok(person.http.post(REQUESTS, json={"repo": world.repo.body["full_name"]}))
    ids = {request["account"]["handle"]: request["id"] for request in world.requests(2)}
    monkeypatch.setattr(limits, "COLLABORATORS", 1)
    assert ok(world.owner.http.post(f"{REQUESTS}/{ids[bob.handle]}/grant", json={}))["state"] == "granted"
    for answer in (
        world.owner.http.post(f"{REQUESTS}/{ids[carol.handle]}/grant", json={}),
        dora.http.post(f"{INVITES}/{invite}/accept"),
    ):
        assert code(answer) == (409, "conflict")
    monkeypatch.setattr(limits, "COLLABORATORS", 2)
    assert ok(dora.http.post(f"{INVITES}/{invite}/accept"))["state"] == "accepted"


def test_a_decided_request_leaves_the_inbox_and_a_granted_one_reaches_who_asked(world: World) -> None:
    bob, carol = world.person(), world.person()
    for one in (bob, carol):
        ok(one.http.post(REQUESTS, json={"repo": world.repo.body["full_name"], "role": "read"}))
    found = {one["account"]["handle"]: one["id"] for one in world.requests(2)}
    assert "access_requested" in world.inbox_reasons()
    ok(world.owner.http.post(f"{REQUESTS}/{found[carol.handle]}/decline"))
    assert "access_requested" in world.inbox_reasons(), "bob still asks"
    ok(world.owner.http.post(f"{REQUESTS}/{found[bob.handle]}/grant", json={}))
    rows = ok(world.owner.http.get("/api/v1/inbox"))["items"]
    assert "access_requested" not in {one["reason"] for one in rows if one["repo"]["id"] == world.repo.id}
    entries = until(lambda: ok(bob.http.get("/api/v1/inbox"))["items"], "bob is told")
    assert [entry["reason"] for entry in entries] == ["access_granted"]
    assert ok(carol.http.get("/api/v1/inbox"))["items"] == []


def test_mine_are_those_in_which_one_has_a_role(world: World) -> None:
    bob, carol = world.member("read"), world.person()
    shown = create(carol.http, carol.who, "public", visibility="public")

    def listed(who: Person, **query: str) -> set[str]:
        return {one["id"] for one in ok(who.http.get("/api/v1/repos", params=query))["items"]}

    assert listed(bob, mine="true") == listed(world.owner, mine="true") == {world.repo.id}
    assert listed(carol, mine="true") == {shown.id}
    assert shown.id in listed(bob)
    assert listed(bob, owner="@me") == set()


def test_a_transfer_moves_the_repository_when_it_is_accepted(world: World) -> None:
    bob, transfer = world.offered()
    name = world.repo.body["name"]
    assert bob.role(world.repo) == "hidden"
    assert code(world.owner.http.post(f"{world.repo.url}/transfers", json={"to": bob.handle})) == (
        409,
        "transfer_pending",
    )
    assert [one["id"] for one in ok(bob.http.get(TRANSFERS))["items"]] == [transfer]
    assert code(world.owner.http.post(f"{TRANSFERS}/{transfer}/accept")) == (404, "not_found")
    assert ok(bob.http.post(f"{TRANSFERS}/{transfer}/accept"))["state"] == "accepted"
    assert (bob.role(world.repo), world.owner.role(world.repo)) == ("owner", "admin")
    old = {"owner": world.owner.handle, "name": name}
    (found,) = ok(bob.http.get("/api/v1/repos", params=old))["items"]
    assert found["full_name"] == f"{bob.handle}/{name}"
    again = world.owner.http.post("/api/v1/repos", json={"name": name})
    assert code(again) == (409, "name_taken")


def test_a_transfer_counts_what_it_moves(world: World) -> None:
    world.repo.seal({"a": b"x" * 1000})
    bob, transfer = world.offered()
    ok(bob.http.post(f"{TRANSFERS}/{transfer}/accept"))
    used = world.relay.run(_usage(world.relay))
    assert used[world.owner.who.id][2] == 0
    assert used[bob.who.id][2] == 1
    assert used[bob.who.id][0] > 1000
    assert used[world.owner.who.id][0] == 0


async def _usage(relay: Relay) -> dict[str, Any]:
    from relay.db.storage import usage as rows

    async with relay.node.db.read() as tx:
        return {row[0]: tuple(row[1:4]) for row in await tx.all(rows.COUNTED)}


def test_a_name_that_is_taken_leaves_the_transfer_open(world: World) -> None:
    bob, transfer = world.offered()
    ok(bob.http.post("/api/v1/repos", json={"name": world.repo.body["name"]}))
    assert code(bob.http.post(f"{TRANSFERS}/{transfer}/accept")) == (409, "name_taken")
    assert world.owner.role(world.repo) == "owner"
    assert [one["state"] for one in ok(bob.http.get(TRANSFERS))["items"]] == ["pending"]


def test_a_transfer_ends_in_one_way(world: World) -> None:
    for other in ("decline", "cancel", "delete", "archive"):
        repo = create(world.owner.http, world.owner.who, f"r{secrets.token_hex(4)}", visibility="private")
        bob = world.person()
        transfer = ok(world.owner.http.post(f"{repo.url}/transfers", json={"to": bob.handle}))["id"]
        url = f"{TRANSFERS}/{transfer}"

        def act(what: str, bob: Person = bob, url: str = url, repo: Repository = repo) -> int:
            if what in ("accept", "decline"):
                return bob.http.post(f"{url}/{what}").status_code
            if what == "cancel":
                return world.owner.http.delete(url).status_code
            if what == "delete":
                return world.owner.http.delete(repo.url).status_code
            return world.owner.http.patch(repo.url, json={"archived": True}).status_code

        with ThreadPoolExecutor(2) as pool:
            accepted, ended = pool.map(act, ("accept", other))
        if other == "archive":
            assert accepted == 200
            assert ended in (200, 403)
        else:
            assert [accepted, ended].count(200) == 1, (other, accepted, ended)
            assert {accepted, ended} <= {200, 403, 404, 409}
        assert (bob.role(repo) == "owner") == (accepted == 200)


def test_an_offer_lasts_seven_days() -> None:
    assert offer.OFFER_MS == 7 * 24 * 3600 * 1000
