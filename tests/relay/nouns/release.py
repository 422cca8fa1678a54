"""Releases and their assets, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World, name


def _release(world: World) -> str:
    """The address of a release."""
    repo = world.repo
    (seal,) = repo.seal({"f": b"1\n"})
    made = ok(world.http.post(f"{repo.url}/releases", json={"version": "v1", "seal_id": seal}))
    return f"{repo.url}/releases/{made['version']}"


def _released(world: World) -> Try:
    repo = world.repo
    (seal,) = repo.seal({"f": b"1\n"})
    return Try(f"{repo.url}/releases", {"version": name(), "seal_id": seal})


def _asset(world: World) -> Try:
    url = f"{_release(world)}/assets"
    ok(world.http.post(url, params={"name": "a.bin"}, content=b"abc"))
    return Try(f"{url}/a.bin")


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{REPO}/releases"): _released,
    ("PATCH", f"{REPO}/releases/{{v}}"): lambda world: Try(_release(world), {"notes": name()}),
    ("DELETE", f"{REPO}/releases/{{v}}"): lambda world: Try(_release(world)),
    ("POST", f"{REPO}/releases/{{v}}/assets"): lambda world: Try(
        f"{_release(world)}/assets?name=a.bin", content=b"abc"
    ),
    ("DELETE", f"{REPO}/releases/{{v}}/assets/{{name}}"): _asset,
}

QUESTIONS: dict[str, list[str]] = {
    "GET /releases": ["/releases"],
    "GET /releases/{v}": ["/releases/v1"],
    "GET /releases/{v}/assets": ["/releases/v1/assets"],
    "GET /releases/{v}/assets/{name}": ["/releases/v1/assets/a.bin"],
}
