"""Collaborators, invitations, requests and transfers, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from tests.relay.histories import Repository, ok
from tests.relay.world import REPO, Named, Try, World, name


def _other(world: World) -> httpx.Client:
    """Somebody else, signed in."""
    who = world.relay.account(name())
    http = world.relay.client(who)
    http.headers["x-handle"] = str(who.handle)
    return http


def _invited(world: World, role: str = "write") -> tuple[Repository, httpx.Client, str]:
    repo, other = world.repo, _other(world)
    body = {"handle": other.headers["x-handle"], "role": role}
    return repo, other, ok(world.http.post(f"{repo.url}/invites", json=body))["id"]


def _answered(what: str) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        _, other, invite = _invited(world)
        return Try(f"/api/v1/invites/{invite}/{what}", http=other)

    return act


def _member(json: Any = None) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        repo, other, invite = _invited(world)
        ok(other.post(f"/api/v1/invites/{invite}/accept"))
        return Try(f"{repo.url}/collaborators/{other.headers['x-handle']}", json)

    return act


def _cancelled(world: World) -> Try:
    repo, _, invite = _invited(world)
    return Try(f"{repo.url}/invites/{invite}")


def _requested(world: World) -> tuple[Repository, str]:
    repo, other = world.repo, _other(world)
    ok(other.post("/api/v1/access-requests", json={"repo": repo.body["full_name"]}))
    for _ in range(200):
        found = world.http.get(f"{repo.url}/access-requests").json()["items"]
        if found:
            return repo, found[0]["id"]
    raise AssertionError("the request did not arrive")


def _decided(what: str, json: Any = None) -> Callable[[World], Try]:
    return lambda world: Try(f"/api/v1/access-requests/{_requested(world)[1]}/{what}", json)


def _transferred(world: World) -> tuple[httpx.Client, str]:
    repo, other = world.repo, _other(world)
    body = {"to": other.headers["x-handle"]}
    return other, ok(world.http.post(f"{repo.url}/transfers", json=body))["id"]


def _of_transfer(what: str) -> Callable[[World], Try]:
    def act(world: World) -> Try:
        other, transfer = _transferred(world)
        return Try(f"/api/v1/transfers/{transfer}/{what}", http=other)

    return act


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/invites"): lambda world: Try(
        f"{world.repo.url}/invites", {"handle": _other(world).headers["x-handle"]}
    ),
    ("DELETE", f"{REPO}/invites/{{invite}}"): _cancelled,
    ("POST", "/api/v1/invites/{invite}/accept"): _answered("accept"),
    ("POST", "/api/v1/invites/{invite}/decline"): _answered("decline"),
    ("PATCH", f"{REPO}/collaborators/{{handle}}"): _member({"role": "triage"}),
    ("DELETE", f"{REPO}/collaborators/{{handle}}"): _member(),
    ("POST", "/api/v1/access-requests"): lambda world: Try("/api/v1/access-requests", {"repo": "a/b"}),
    ("POST", "/api/v1/access-requests/{request_id}/grant"): _decided("grant", {}),
    ("POST", "/api/v1/access-requests/{request_id}/decline"): _decided("decline"),
    ("POST", f"{REPO}/transfers"): lambda world: Try(
        f"{world.repo.url}/transfers", {"to": _other(world).headers["x-handle"]}
    ),
    ("POST", "/api/v1/transfers/{transfer}/accept"): _of_transfer("accept"),
    ("POST", "/api/v1/transfers/{transfer}/decline"): _of_transfer("decline"),
    ("DELETE", "/api/v1/transfers/{transfer}"): lambda world: Try(
        f"/api/v1/transfers/{_transferred(world)[1]}"
    ),
}

QUESTIONS: dict[str, list[str]] = {
    "GET /collaborators": ["/collaborators"],
    "GET /invites": ["/invites"],
    "GET /access-requests": ["/access-requests"],
}

QUIET: dict[Named, str] = {
    ("POST", "/api/v1/access-requests"): "the job announces it, if there is such a repository",
}
