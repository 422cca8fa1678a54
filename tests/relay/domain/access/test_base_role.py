"""The role that all members of an organisation have in what it owns, its invitations in the inbox, and forks
into it."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from localstore.core.model import limits
from relay.db.schema import tables
from tests.relay.domain.access.test_organisation import INVITES, TRANSFERS, Person, World, code, name, world
from tests.relay.histories import Repository, ok

__all__ = ["world"]
INBOX = "/api/v1/inbox"


def base(world: World, role: str) -> None:
    assert ok(world.ann.http.patch(world.url, json={"base_role": role}))["base_role"] == role


def give(world: World, repo: str, bob: Person, role: str) -> str:
    url = f"/api/v1/repos/{repo}/collaborators/{bob.handle}"
    return str(ok(world.ann.http.patch(url, json={"role": role}))["role"])


def test_members_have_it_everywhere_and_lose_it(world: World) -> None:
    bob, old = world.member(), world.repo()["id"]
    assert ok(bob.http.get(world.url))["base_role"] == "none"
    assert bob.role(old) == "hidden"
    base(world, "read")
    carol, new = world.member(), world.repo()["id"]
    assert [who.role(repo) for who in (bob, carol) for repo in (old, new)] == ["read"] * 4
    base(world, "write")
    assert [who.role(repo) for who in (bob, carol) for repo in (old, new)] == ["write"] * 4
    assert world.ann.role(old) == "owner"
    base(world, "none")
    assert [who.role(repo) for who in (bob, carol) for repo in (old, new)] == ["hidden"] * 4


def test_only_admins_set_it(world: World) -> None:
    bob = world.member()
    answer = bob.http.patch(world.url, json={"base_role": "admin"})
    assert code(answer) == (403, "forbidden")
    assert code(world.person().http.patch(world.url, json={"base_role": "admin"})) == (404, "not_found")
    assert world.ann.http.patch(world.url, json={"base_role": "owner"}).status_code == 422


def test_what_was_given_outranks_it_and_comes_back(world: World) -> None:
    bob, carol = world.member(), world.member()
    repo = world.repo()["id"]
    world.invite(repo, bob, "read")
    world.invite(repo, carol, "admin")
    base(world, "write")
    assert (bob.role(repo), carol.role(repo)) == ("write", "admin")
    assert give(world, repo, bob, "triage") == "write"
    assert give(world, repo, carol, "read") == "write"
    base(world, "read")
    assert (bob.role(repo), carol.role(repo)) == ("triage", "read")
    assert give(world, repo, carol, "write") == "write"
    base(world, "none")
    assert (bob.role(repo), carol.role(repo)) == ("triage", "write")


def test_what_all_have_is_taken_from_nobody_alone(world: World) -> None:
    bob, repo = world.member(), world.repo()["id"]
    base(world, "read")
    url = f"/api/v1/repos/{repo}/collaborators/{bob.handle}"
    for http in (world.ann.http, bob.http):
        assert code(http.delete(url)) == (409, "through_organisation")
    assert give(world, repo, bob, "write") == "write"
    assert world.ann.http.delete(url).status_code == 204
    assert bob.role(repo) == "read"


def test_an_admin_becomes_a_member_with_it(world: World) -> None:
    bob, repo = world.member(), world.repo()["id"]
    base(world, "triage")
    ok(world.set_role(bob, "admin"))
    assert bob.role(repo) == "owner"
    ok(world.set_role(bob, "member"))
    assert bob.role(repo) == "triage"
    assert world.ann.http.delete(f"{world.url}/members/{bob.handle}").status_code == 204
    assert bob.role(repo) == "hidden"


def test_it_comes_and_goes_with_a_repository(world: World) -> None:
    bob = world.member()
    base(world, "read")
    mine = ok(world.ann.http.post("/api/v1/repos", json={"name": name()}))["id"]
    assert bob.role(mine) == "hidden"
    offer = ok(world.ann.http.post(f"/api/v1/repos/{mine}/transfers", json={"to": world.org, "org": True}))[
        "id"
    ]
    ok(world.ann.http.post(f"{TRANSFERS}/{offer}/accept"))
    assert bob.role(mine) == "read"
    offer = ok(world.ann.http.post(f"/api/v1/repos/{mine}/transfers", json={"to": world.ann.handle}))["id"]
    ok(world.ann.http.post(f"{TRANSFERS}/{offer}/accept"))
    assert bob.role(mine) == "hidden"


def test_an_invitation_that_was_open_gives_more(world: World) -> None:
    bob, repo = world.member(), world.repo()["id"]
    body = {"handle": bob.handle, "role": "write"}
    invite = ok(world.ann.http.post(f"/api/v1/repos/{repo}/invites", json=body))["id"]
    base(world, "read")
    ok(bob.http.post(f"/api/v1/invites/{invite}/accept"))
    assert bob.role(repo) == "write"
    base(world, "none")
    assert bob.role(repo) == "write"


def test_it_has_a_limit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.repo()
    monkeypatch.setattr(limits, "BASE_ROLES", 0)
    assert code(world.ann.http.patch(world.url, json={"base_role": "read"})) == (409, "conflict")
    base(world, "none")


def test_roles_given_to_members_count_among_the_collaborators(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob, carol, repo = world.member(), world.member(), world.repo()["id"]
    base(world, "read")
    monkeypatch.setattr(limits, "COLLABORATORS", 1)
    assert give(world, repo, bob, "write") == "write"
    url = f"/api/v1/repos/{repo}/collaborators"
    answer = world.ann.http.patch(f"{url}/{carol.handle}", json={"role": "write"})
    assert code(answer) == (409, "conflict")
    assert give(world, repo, bob, "triage") == "triage"
    assert world.ann.http.delete(f"{url}/{bob.handle}").status_code == 204
    assert give(world, repo, carol, "write") == "write"


# --- invitations in the inbox


def invited(bob: Person, **query: str) -> list[tuple[str, str]]:
    items = ok(bob.http.get(INBOX, params=query))["items"]
    return [(one["reason"], one["subject"]["title"]) for one in items]


def test_an_invitation_is_in_the_inbox_until_it_is_answered(world: World) -> None:
    bob = world.person()
    invite = ok(world.ann.http.post(f"{world.url}/invites", json={"handle": bob.handle}))["id"]
    (row,) = ok(bob.http.get(INBOX))["items"]
    assert (row["repo"], row["subject"]["kind"], row["unread"]) == (None, "organisation", True)
    assert invited(bob) == invited(bob, reason="invited") == [("invited", world.org)]
    assert invited(bob, reason="mention") == invited(world.ann, reason="invited") == []
    marked = ok(bob.http.patch(f"{INBOX}/{row['id']}", json={"state": "done"}))
    assert (marked["done"], invited(bob), len(invited(bob, all="1"))) == (True, [], 1)
    assert world.ann.http.patch(f"{INBOX}/{row['id']}", json={"state": "done"}).status_code == 404
    ok(bob.http.patch(f"{INBOX}/{row['id']}", json={"state": "unread"}))
    assert ok(bob.http.patch(INBOX, json={"state": "done"})) == {"changed": 1}
    ok(bob.http.post(f"{INVITES}/{invite}/accept"))
    assert invited(bob, all="1") == []


def test_rows_of_both_kinds_have_one_order(world: World) -> None:
    bob, repo = world.person(), world.repo()["id"]
    ok(world.ann.http.post(f"{world.url}/invites", json={"handle": bob.handle}))
    body = {"handle": bob.handle, "role": "write"}
    ok(world.ann.http.post(f"/api/v1/repos/{repo}/invites", json=body))
    while world.relay.run(world.relay.node.followers.handle_next("inbox")):
        pass
    whole = ok(bob.http.get(INBOX))["items"]
    assert [one["subject"]["kind"] for one in whole] == ["repository", "organisation"]
    first = ok(bob.http.get(INBOX, params={"limit": 1}))
    rest = ok(bob.http.get(INBOX, params={"limit": 1, "cursor": first["next_cursor"]}))
    assert ([*first["items"], *rest["items"]], rest["next_cursor"]) == (whole, None)


# --- forks


def test_a_fork_into_an_organisation_is_its_own(world: World) -> None:
    eve, bob = world.person(), world.member()
    made = ok(eve.http.post("/api/v1/repos", json={"name": name(), "visibility": "public"}))
    Repository(eve.http, eve.who, made).seal({"a.txt": b"1\n"})
    url = f"/api/v1/repos/{made['id']}/forks"
    fork = ok(world.ann.http.post(url, json={"owner": world.org}))
    assert fork["full_name"] == f"{world.org}/{made['name']}"
    assert world.ann.role(fork["id"]) == "owner"
    assert code(bob.http.post(url, json={"owner": world.org})) == (403, "forbidden")
    stranger = world.person().http
    nobody = stranger.post(url, json={"owner": "nobody-knows-this"})
    assert code(stranger.post(url, json={"owner": world.org})) == code(nobody) == (404, "not_found")


def test_a_fork_counts_on_the_organisation(world: World) -> None:
    made = ok(world.person().http.post("/api/v1/repos", json={"name": name(), "visibility": "public"}))
    ok(world.ann.http.post(f"/api/v1/repos/{made['id']}/forks", json={"owner": world.org}))
    usage, org_id = tables["account_usage"], ok(world.ann.http.get(world.url))["id"]

    async def counted(who: str) -> int | None:
        async with world.relay.node.db.read() as tx:
            found: int | None = await tx.value(select(usage.c.repositories).where(usage.c.account_id == who))
            return found

    assert [world.relay.run(counted(who)) or 0 for who in (org_id, world.ann.who.id)] == [1, 0]
