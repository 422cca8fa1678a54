"""Organisations and their members, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from tests.relay.histories import ok
from tests.relay.world import Named, Try, World, name

ORGS, INVITES = "/api/v1/orgs", "/api/v1/org-invites"
ORG = f"{ORGS}/{{org}}"


def founded(http: httpx.Client) -> str:
    """The handle of a new organisation of the caller."""
    return str(ok(http.post(ORGS, json={"handle": name()}))["handle"])


def made(world: World) -> str:
    return founded(world.http)


def _invited(world: World) -> tuple[str, httpx.Client, str, str]:
    org, who = made(world), world.relay.account(name())
    body = {"handle": who.handle, "role": "admin"}
    invite = ok(world.http.post(f"{ORGS}/{org}/invites", json=body))["id"]
    return org, world.relay.client(who), str(who.handle), invite


def _answered(what: str) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        _, other, _, invite = _invited(world)
        return Try(f"{INVITES}/{invite}/{what}", http=other)

    return act


def _member(json: Any = None) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        org, other, handle, invite = _invited(world)
        ok(other.post(f"{INVITES}/{invite}/accept"))
        return Try(f"{ORGS}/{org}/members/{handle}", json)

    return act


def _invite(world: World) -> Try:
    return Try(f"{ORGS}/{made(world)}/invites", {"handle": world.relay.account(name()).handle})


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", ORGS): lambda world: Try(ORGS, {"handle": name()}),
    ("PATCH", ORG): lambda world: Try(f"{ORGS}/{made(world)}", {"handle": name()}),
    ("DELETE", ORG): lambda world: Try(f"{ORGS}/{made(world)}"),
    ("POST", f"{ORG}/invites"): _invite,
    ("PATCH", f"{ORG}/members/{{handle}}"): _member({"role": "member"}),
    ("DELETE", f"{ORG}/members/{{handle}}"): _member(),
    ("POST", f"{INVITES}/{{invite}}/accept"): _answered("accept"),
    ("POST", f"{INVITES}/{{invite}}/decline"): _answered("decline"),
}
