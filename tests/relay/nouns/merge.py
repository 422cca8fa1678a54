"""Merges, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localstore.core.encoding import b64u, unb64u
from tests.relay import merges
from tests.relay.histories import Repository, ok
from tests.relay.world import REPO, Named, Try, World

ONE = f"{REPO}/proposals/{{n}}"


def _proposed(world: World) -> tuple[Repository, int]:
    repo = world.repo  # another one each time
    return repo, merges.apart(repo, {"ours": b"1\n"}, {"theirs": b"1\n"})


def _merge_prepare(world: World) -> Try:
    repo, n = _proposed(world)
    body = {"device_key_id": repo.owner.key.id, "strategy": "squash"}
    return Try(f"{repo.url}/proposals/{n}/merge-prepare", body)


def _merge_finalize(world: World) -> Try:
    repo, n = _proposed(world)
    prepared = ok(merges.prepare(repo, n, "squash"))
    return Try(f"{repo.url}/proposals/{n}/merge-finalize", merges.signed(repo, prepared))


def _update_prepare(world: World) -> Try:
    repo, n = _proposed(world)
    return Try(f"{repo.url}/proposals/{n}/update-branch", {"device_key_id": repo.owner.key.id})


def _update_finalize(world: World) -> Try:
    repo, n = _proposed(world)
    url = f"{repo.url}/proposals/{n}/update-branch"
    prepared: dict[str, Any] = ok(repo.http.post(url, json={"device_key_id": repo.owner.key.id}))
    return Try(f"{url}/finalize", merges.signed(repo, prepared))


def _auto(world: World) -> Try:
    repo, n = _proposed(world)
    repo.http.patch(f"{repo.url}/proposals/{n}", json={"draft": True})
    prepared = ok(merges.prepare(repo, n, "squash", auto=True))
    return Try(f"{repo.url}/proposals/{n}/auto-merge", merges.signed(repo, prepared))


def _auto_off(world: World) -> Try:
    made = _auto(world)
    ok(world.http.put(made.path, json=made.json))
    return Try(made.path)


_REFS = {"base": "main", "head": "topic"}


def _preview(world: World) -> Try:
    repo, _ = _proposed(world)
    return Try(f"{repo.url}/merge-preview", _REFS)


def _merge(world: World) -> Try:
    repo, _ = _proposed(world)
    shown = ok(repo.http.post(f"{repo.url}/merge-preview", json=_REFS))
    key = repo.owner.key
    body = {
        "preview_id": shown["preview_id"],
        "device_key_id": key.id,
        "signature": b64u(key.sign(unb64u(shown["bytes"]))),
    }
    return Try(f"{repo.url}/merge", body)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{ONE}/merge-prepare"): _merge_prepare,
    ("POST", f"{ONE}/merge-finalize"): _merge_finalize,
    ("PUT", f"{ONE}/auto-merge"): _auto,
    ("DELETE", f"{ONE}/auto-merge"): _auto_off,
    ("POST", f"{ONE}/update-branch"): _update_prepare,
    ("POST", f"{ONE}/update-branch/finalize"): _update_finalize,
    ("POST", f"{REPO}/merge-preview"): _preview,
    ("POST", f"{REPO}/merge"): _merge,
}

_FOR_ITSELF = "nobody but its caller sees it, and it ends by itself"
QUIET: dict[Named, str] = {
    ("POST", f"{ONE}/merge-prepare"): _FOR_ITSELF,
    ("POST", f"{ONE}/update-branch"): _FOR_ITSELF,
    ("POST", f"{REPO}/merge-preview"): _FOR_ITSELF,
}
