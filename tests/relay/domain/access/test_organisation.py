"""Organisations: owners that several people act for. Admins have the rights of the owner, members what they
are given, and whoever is removed loses everything at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import bindparam, delete, insert, select

from localstore.core.model import limits
from relay.db.schema import tables
from relay.domain.access.rows import organisation_roles as rows
from relay.domain.upkeep.verification import memberships
from tests.relay.auth.people import Browser
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok

ORGS, INVITES, TRANSFERS = "/api/v1/orgs", "/api/v1/org-invites", "/api/v1/transfers"
NOBODY = f"{ORGS}/nobody-knows-this"


def name() -> str:
    return f"o{secrets.token_hex(5)}"


@dataclass
class Person:
    who: Account
    http: httpx.Client

    @property
    def handle(self) -> str:
        return str(self.who.handle)

    def role(self, repo: str) -> str | None:
        """Their role; "hidden" where they see nothing."""
        answer = self.http.get(f"/api/v1/repos/{repo}")
        return "hidden" if answer.status_code == 404 else ok(answer)["viewer"]["role"]


@dataclass
class World:
    relay: Relay
    ann: Person
    org: str
    url: str

    def person(self) -> Person:
        who = self.relay.account(name())
        return Person(who, self.relay.client(who))

    def member(self, role: str = "member") -> Person:
        bob = self.person()
        invite = ok(self.ann.http.post(f"{self.url}/invites", json={"handle": bob.handle, "role": role}))
        assert ok(bob.http.post(f"{INVITES}/{invite['id']}/accept"))["state"] == "accepted"
        return bob

    def repo(self, by: Person | None = None, **more: Any) -> dict[str, Any]:
        body = {"name": name(), "owner": self.org, **more}
        found: dict[str, Any] = ok((by or self.ann).http.post("/api/v1/repos", json=body))
        return found

    def set_role(self, bob: Person, role: str) -> httpx.Response:
        return self.ann.http.patch(f"{self.url}/members/{bob.handle}", json={"role": role})

    def invite(self, repo: str, bob: Person, role: str) -> None:
        body = {"handle": bob.handle, "role": role}
        invite = ok(self.ann.http.post(f"/api/v1/repos/{repo}/invites", json=body))["id"]
        ok(bob.http.post(f"/api/v1/invites/{invite}/accept"))

    def consistent(self) -> bool:
        """Whether roles through organisations are those that the memberships say."""

        async def read() -> bool:
            async with self.relay.node.db.read() as tx:
                return not (await tx.all(rows.STRAY) or await tx.all(rows.MISSING))

        return self.relay.run(read())


@pytest.fixture
def world(relay: Relay) -> Iterator[World]:
    who = relay.account(name())
    ann = Person(who, relay.client(who))
    org = ok(ann.http.post(ORGS, json={"handle": name()}))["handle"]
    made = World(relay, ann, org, f"{ORGS}/{org}")
    yield made
    assert made.consistent()


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["code"])


def test_an_organisation_begins_with_one_admin(world: World) -> None:
    found = ok(world.ann.http.get(world.url))
    assert (found["handle"], found["role"], found["members"]) == (world.org, "admin", 1)
    assert [one["handle"] for one in ok(world.ann.http.get(ORGS))["items"]] == [world.org]
    (only,) = ok(world.ann.http.get(f"{world.url}/members"))["items"]
    assert (only["account"]["handle"], only["role"]) == (world.ann.handle, "admin")


def test_a_handle_is_of_one_person_or_organisation(world: World) -> None:
    taken = (409, "name_taken")
    assert code(world.ann.http.post(ORGS, json={"handle": world.ann.handle})) == taken
    assert code(world.person().http.post(ORGS, json={"handle": world.org})) == taken
    assert code(world.person().http.put("/api/v1/handles/me", json={"handle": world.org})) == taken
    assert code(world.ann.http.patch(world.url, json={"handle": world.person().handle})) == taken
    assert code(world.ann.http.post(ORGS, json={"handle": "settings"})) == (422, "invalid")
    browser = Browser(world.relay.url)
    form = {"handle": world.org, "password": "long enough for this"}
    assert browser.post("/auth/sign-up", data=form).status_code == 409
    assert browser.post("/auth/login", data=form).status_code == 401
    browser.close()


def test_membership_begins_when_the_invitation_is_accepted(world: World) -> None:
    bob, repo = world.person(), world.repo()["id"]
    body = {"handle": bob.handle, "role": "admin"}
    invite = ok(world.ann.http.post(f"{world.url}/invites", json=body))["id"]
    assert code(world.ann.http.post(f"{world.url}/invites", json=body)) == (409, "invite_pending")
    assert bob.role(repo) == "hidden"
    assert bob.http.get(world.url).content == bob.http.get(NOBODY).content
    (mine,) = ok(bob.http.get(INVITES))["items"]
    assert (mine["id"], mine["organisation"]["handle"], mine["role"]) == (invite, world.org, "admin")
    ok(bob.http.post(f"{INVITES}/{invite}/accept"))
    assert bob.role(repo) == "owner"
    assert code(bob.http.post(f"{INVITES}/{invite}/decline")) == (409, "already_decided")
    assert code(world.ann.http.post(f"{world.url}/invites", json=body)) == (409, "already_member")
    carol = world.person()
    ok(world.ann.http.post(f"{world.url}/invites", json={"handle": carol.handle}))
    assert world.ann.http.delete(f"{world.url}/members/{carol.handle}").status_code == 204
    assert ok(carol.http.get(INVITES))["items"] == []


def test_members_see_what_they_are_given_and_admins_everything(world: World) -> None:
    admin, member = world.member("admin"), world.member()
    hidden, open_one = world.repo(by=admin)["id"], world.repo(visibility="public")["id"]
    assert [admin.role(one) for one in (hidden, open_one)] == ["owner", "owner"]
    assert [member.role(one) for one in (hidden, open_one)] == ["hidden", None]
    world.invite(hidden, member, "write")
    assert member.role(hidden) == "write"
    listed = {"owner": world.org}
    names = [one["id"] for one in ok(member.http.get("/api/v1/repos", params=listed))["items"]]
    assert sorted(names) == sorted([hidden, open_one])
    assert [one["role"] for one in ok(member.http.get(f"{world.url}/members"))["items"]].count("admin") == 2
    assert code(member.http.post("/api/v1/repos", json={"name": "x", "owner": world.org})) == (
        403,
        "forbidden",
    )
    stranger = world.person()
    there = stranger.http.post("/api/v1/repos", json={"name": "x", "owner": world.org})
    nowhere = stranger.http.post("/api/v1/repos", json={"name": "x", "owner": "nobody-knows-this"})
    assert (there.status_code, there.content) == (404, nowhere.content)


def test_a_role_that_was_given_comes_back_when_an_admin_becomes_a_member(world: World) -> None:
    bob = world.member()
    given, other = world.repo()["id"], world.repo()["id"]
    world.invite(given, bob, "triage")
    ok(world.set_role(bob, "admin"))
    assert [bob.role(one) for one in (given, other)] == ["owner", "owner"]
    person = f"/api/v1/repos/{given}/collaborators/{bob.handle}"
    assert code(world.ann.http.patch(person, json={"role": "read"})) == (409, "through_organisation")
    assert code(world.ann.http.delete(person)) == (409, "through_organisation")
    shown = {
        one["account"]["handle"]: (one["role"], one["through"])
        for one in ok(world.ann.http.get(f"/api/v1/repos/{given}/collaborators"))["items"]
    }
    assert shown == {bob.handle: ("owner", world.org), world.ann.handle: ("owner", world.org)}
    ok(world.set_role(bob, "member"))
    assert [bob.role(one) for one in (given, other)] == ["triage", "hidden"]


def test_whoever_is_removed_or_leaves_loses_everything(world: World) -> None:
    repo = world.repo()["id"]
    for how in ("removed", "left", "admin"):
        bob = world.member("admin" if how == "admin" else "member")
        if how != "admin":
            world.invite(repo, bob, "write")
        by, handle = (bob, "@me") if how == "left" else (world.ann, bob.handle)
        assert by.http.delete(f"{world.url}/members/{handle}").status_code == 204
        assert bob.role(repo) == "hidden"
        assert bob.http.get(world.url).content == bob.http.get(NOBODY).content
        assert ok(bob.http.get("/api/v1/repos", params={"owner": world.org}))["items"] == []


def test_the_last_admin_stays(world: World) -> None:
    me = f"{world.url}/members/@me"
    assert code(world.ann.http.delete(me)) == (409, "last_admin")
    assert code(world.ann.http.patch(me, json={"role": "member"})) == (409, "last_admin")
    bob = world.member("admin")
    with ThreadPoolExecutor(2) as pool:
        leaving = [pool.submit(one.http.delete, me) for one in (world.ann, bob)]
        assert sorted(one.result().status_code for one in leaving) == [204, 409]


def test_only_admins_change_members(world: World) -> None:
    bob, carol = world.member(), world.member()
    for answer in (
        bob.http.patch(f"{world.url}/members/{bob.handle}", json={"role": "admin"}),
        bob.http.delete(f"{world.url}/members/{carol.handle}"),
        bob.http.post(f"{world.url}/invites", json={"handle": world.person().handle}),
        bob.http.get(f"{world.url}/invites"),
        bob.http.patch(world.url, json={"handle": name()}),
        bob.http.delete(world.url),
    ):
        assert code(answer) == (403, "forbidden")


def test_strangers_cannot_tell_an_organisation_from_none(world: World) -> None:
    stranger = world.person()
    secret = ok(world.ann.http.post(f"{world.url}/invites", json={"handle": world.person().handle}))["id"]
    for method, below, body in (
        ("GET", "", None),
        ("PATCH", "", {"handle": name()}),
        ("DELETE", "", None),
        ("GET", "/members", None),
        ("GET", "/invites", None),
        ("POST", "/invites", {"handle": stranger.handle}),
        ("PATCH", f"/members/{world.ann.handle}", {"role": "member"}),
        ("DELETE", f"/members/{world.ann.handle}", None),
        ("DELETE", "/members/@me", None),
    ):
        there, nowhere = (
            stranger.http.request(method, f"{url}{below}", json=body) for url in (world.url, NOBODY)
        )
        assert (there.status_code, there.content) == (404, nowhere.content), (method, below)
    for what in ("accept", "decline"):
        there, nowhere = (stranger.http.post(f"{INVITES}/{one}/{what}") for one in (secret, "0" * 32))
        assert (there.status_code, there.content) == (404, nowhere.content)


def test_a_renamed_organisation_is_found_under_its_old_name(world: World) -> None:
    repo, new = world.repo(), name()
    assert ok(world.ann.http.patch(world.url, json={"handle": new}))["handle"] == new
    found = ok(world.ann.http.get("/api/v1/repos", params={"owner": world.org, "name": repo["name"]}))
    assert [one["full_name"] for one in found["items"]] == [f"{new}/{repo['name']}"]
    assert code(world.person().http.post(ORGS, json={"handle": world.org})) == (409, "name_taken")
    assert ok(world.ann.http.get(f"{ORGS}/{new}"))["role"] == "admin"


def test_an_organisation_that_owns_nothing_can_be_deleted(world: World) -> None:
    repo, bob = world.repo(), world.member()
    assert code(world.ann.http.delete(world.url)) == (409, "organisation_owns")
    ok(world.ann.http.delete(f"/api/v1/repos/{repo['id']}"))
    refused = world.ann.http.delete(world.url)  # it can be restored
    assert code(refused) == (409, "organisation_owns")
    deleted = {"owner": world.org, "state": "deleted"}
    assert len(ok(world.ann.http.get("/api/v1/repos", params=deleted))["items"]) == 1
    assert ok(bob.http.get("/api/v1/repos", params=deleted))["items"] == []
    assert bob.http.post(f"/api/v1/repos/{repo['id']}/restore").status_code == 404
    ok(world.ann.http.post(f"/api/v1/repos/{repo['id']}/restore"))
    other = ok(world.ann.http.post(ORGS, json={"handle": name()}))["handle"]
    assert world.ann.http.delete(f"{ORGS}/{other}").status_code == 204
    assert world.ann.http.get(f"{ORGS}/{other}").status_code == 404
    assert ok(world.person().http.post(ORGS, json={"handle": other}))["members"] == 1


def test_a_repository_goes_to_an_organisation_and_back(world: World) -> None:
    eve, bob, member = world.person(), world.member("admin"), world.member()
    repo = ok(eve.http.post("/api/v1/repos", json={"name": name()}))
    url = f"/api/v1/repos/{repo['id']}"
    assert code(eve.http.post(f"{url}/transfers", json={"to": world.org})) == (422, "invalid")
    assert code(eve.http.post(f"{url}/transfers", json={"to": bob.handle, "org": True})) == (422, "invalid")
    offer = ok(eve.http.post(f"{url}/transfers", json={"to": world.org, "org": True}))
    assert (offer["org"], offer["to"]["kind"], offer["state"]) == (True, "org", "pending")
    assert bob.role(repo["id"]) == "hidden"
    assert [one["id"] for one in ok(bob.http.get(TRANSFERS))["items"]] == [offer["id"]]
    assert ok(member.http.get(TRANSFERS))["items"] == []
    for what in ("accept", "decline"):
        refused = member.http.post(f"{TRANSFERS}/{offer['id']}/{what}")
        assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    ok(bob.http.post(f"{TRANSFERS}/{offer['id']}/accept"))
    assert ok(bob.http.get(url))["owner"] == world.org
    assert [one.role(repo["id"]) for one in (world.ann, bob, eve)] == ["owner", "owner", "admin"]
    assert world.consistent()
    back = ok(bob.http.post(f"{url}/transfers", json={"to": eve.handle}))
    assert [one["id"] for one in ok(world.ann.http.get(TRANSFERS))["items"]] == [back["id"]]
    ok(world.ann.http.delete(f"{TRANSFERS}/{back['id']}"))
    back = ok(bob.http.post(f"{url}/transfers", json={"to": eve.handle}))
    ok(eve.http.post(f"{TRANSFERS}/{back['id']}/accept"))
    assert [one.role(repo["id"]) for one in (world.ann, bob, eve)] == ["hidden", "hidden", "owner"]


def test_an_admin_of_both_accepts_as_anybody(world: World) -> None:
    mine = ok(world.ann.http.post("/api/v1/repos", json={"name": name()}))
    url = f"/api/v1/repos/{mine['id']}"
    offer = ok(world.ann.http.post(f"{url}/transfers", json={"to": world.org, "org": True}))
    assert ok(world.ann.http.get(url))["owner"] == world.ann.handle  # ownership does not move yet
    ok(world.ann.http.post(f"{TRANSFERS}/{offer['id']}/accept"))
    assert ok(world.ann.http.get(url))["owner"] == world.org
    assert world.consistent()
    bob = world.member("admin")
    assert world.ann.http.delete(f"{world.url}/members/@me").status_code == 204
    assert (world.ann.role(mine["id"]), bob.role(mine["id"])) == ("hidden", "owner")


def test_quotas_count_on_the_organisation(world: World) -> None:
    usage = tables["account_usage"]

    async def counted() -> dict[str, int]:
        async with world.relay.node.db.read() as tx:
            found = await tx.all(select(usage.c.account_id, usage.c.repositories))
            return {row[0]: row[1] for row in found}

    world.repo()
    numbers = world.relay.run(counted())
    org_id = ok(world.ann.http.get(world.url))["id"]
    assert (numbers[org_id], numbers.get(world.ann.who.id, 0)) == (1, 0)


def test_an_organisation_is_nobody_to_invite_or_assign(world: World) -> None:
    url = f"/api/v1/repos/{world.repo()['id']}"
    answer = world.ann.http.post(f"{url}/invites", json={"handle": world.org})
    assert code(answer) == (422, "invalid")
    assert "is an organisation; name a person" in answer.text
    asked = {"title": "first", "assignees": [world.org]}
    assert world.ann.http.post(f"{url}/issues", json=asked).status_code == 422


def test_admins_hear_of_offers_to_the_organisation(world: World) -> None:
    eve, member = world.person(), world.member()
    repo = ok(eve.http.post("/api/v1/repos", json={"name": name()}))["id"]
    ok(eve.http.post(f"/api/v1/repos/{repo}/transfers", json={"to": world.org, "org": True}))
    for _ in range(200):
        if found := ok(world.ann.http.get("/api/v1/inbox", params={"reason": "transfer"}))["items"]:
            break
    assert [one["repo"]["id"] for one in found] == [repo]
    assert ok(member.http.get("/api/v1/inbox", params={"reason": "transfer"}))["items"] == []


def test_repositories_made_while_admins_change_are_theirs(world: World) -> None:
    """Of a new repository and a new admin at once, either comes first; the admin has it."""
    bob = world.member()
    for role in ("admin", "member", "admin"):
        with ThreadPoolExecutor(4) as pool:
            making = [pool.submit(world.repo) for _ in range(3)]
            changing = pool.submit(world.set_role, bob, role)
            ok(changing.result())
            made = [one.result()["id"] for one in making]
        assert {bob.role(one) for one in made} == {"owner" if role == "admin" else "hidden"}
        assert world.consistent()


def test_organisations_have_a_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ORGANISATIONS", 1)
    assert code(world.ann.http.post(ORGS, json={"handle": name()})) == (409, "conflict")
    monkeypatch.setattr(limits, "MEMBERS", 1)
    refused = world.ann.http.post(f"{world.url}/invites", json={"handle": world.person().handle})
    assert code(refused) == (409, "conflict")


def test_the_audit_finds_roles_that_no_membership_gives(world: World) -> None:
    repo, bob = world.repo()["id"], world.person()
    collaborator = tables["collaborator"]
    stray = {"repo_id": repo, "account_id": bob.who.id, "role": "owner", "created_at": 1}

    async def findings() -> list[str]:
        node = world.relay.node
        return [one async for one in memberships.check(node.db, node.objects)]

    async def write(statement: Any, **values: Any) -> None:
        async with world.relay.node.db.write() as tx:
            await tx.run(statement, **values)

    assert world.relay.run(findings()) == []
    world.relay.run(write(insert(collaborator), **stray))
    (found,) = world.relay.run(findings())
    assert bob.who.id in found and "no membership" in found
    theirs = collaborator.c.account_id == bindparam("who")
    world.relay.run(write(delete(collaborator).where(theirs), who=bob.who.id))
    world.relay.run(write(delete(collaborator).where(theirs), who=world.ann.who.id))
    (found,) = world.relay.run(findings())
    assert world.ann.who.id in found and "lacks the role" in found
    mine = {"repo_id": repo, "account_id": world.ann.who.id, "role": "owner", "created_at": 1}
    world.relay.run(write(insert(collaborator), **mine))
