"""Each operation × an admin and a member of the organisation that owns the repository, and a former admin:
as an owner, as a stranger, as a stranger. Neither the admin nor anybody else made these repositories."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import httpx
import pytest

from localstore.core.model import limits
from localstore.core.model.rights import Who
from relay.http.routing import Route
from tests.relay.conftest import Account, Relay
from tests.relay.histories import ok
from tests.relay.rights.test_matrix import BODIES, DELETING, MISSING, OURS, Place, World, ask, expected, name

ORGS = "/api/v1/orgs"
STATES = ("public", "private", "archived")
ACTS_AS: dict[str, Who] = {"org admin": "owner", "org member": "stranger", "former admin": "stranger"}


class Owned(World):
    """A world whose repositories belong to an organisation. Its founder, `author`, left it since."""

    org: str
    theirs: dict[str, httpx.Client]

    def asked(self) -> dict[str, str]:
        return {"owner": self.org}


@pytest.fixture(scope="module")
def world(relay: Relay) -> Iterator[Owned]:
    people: dict[str, Account] = {
        who: relay.account(f"{who[:6].replace(' ', '')}x{secrets.token_hex(3)}")
        for who in (*ACTS_AS, "admin", "write", "triage", "read", "author")
    }
    theirs = {who: relay.client(one) for who, one in people.items()}
    founder = theirs["former admin"]
    org = ok(founder.post(ORGS, json={"handle": f"org{secrets.token_hex(4)}"}))["handle"]
    for who, role in (("org admin", "admin"), ("org member", "member")):
        body = {"handle": people[who].handle, "role": role}
        invite = ok(founder.post(f"{ORGS}/{org}/invites", json=body))["id"]
        ok(theirs[who].post(f"/api/v1/org-invites/{invite}/accept"))
    acting: dict[Who, str] = {"owner": "org admin", "author": "author"}
    roles: dict[Who, str] = {"admin": "admin", "write": "write", "triage": "triage", "read": "read"}
    names = acting | roles
    clients: dict[Who, httpx.Client] = {who: theirs[one] for who, one in names.items()}
    accounts: dict[Who, Account] = {who: people[one] for who, one in names.items()}
    made = Owned(relay, clients, accounts, {})
    made.org, made.theirs = org, theirs
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "POSTS_STRANGER", 1000)
        made.places = {state: made.place(state) for state in STATES}
        assert founder.delete(f"{ORGS}/{org}/members/@me").status_code == 204
        yield made
    for client in theirs.values():
        client.close()


@pytest.mark.parametrize("route", OURS, ids=name)
def test_who_may_what_in_an_organisation(world: Owned, route: Route) -> None:
    for state in STATES:
        for who, like in ACTS_AS.items():
            place: Place = world.places[state]
            wrong = expected(route, like, place)
            deletes = route.operation.name in DELETING and wrong is None
            if deletes:
                place = world.place(state)
            answer = ask(route, world.theirs[who], place)
            case = (state, who, answer.status_code, answer.text[:200])
            if wrong is not None:
                assert (answer.status_code, answer.json()["code"]) == wrong, case
            elif name(route) in MISSING:
                assert answer.status_code == 404, case
            elif route.method == "GET" or deletes or route.operation.name in BODIES:
                assert answer.status_code in (200, 204), case
            else:
                assert answer.is_success or answer.status_code in (400, 409, 422), case
