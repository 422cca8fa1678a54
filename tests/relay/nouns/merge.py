"""Merges, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from localstore.core.encoding import b64u, unb64u
from tests.relay import merges
from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World

ONE = f"{REPO}/proposals/{{n}}"


def _proposed(world: World) -> int:
    return merges.apart(world.repo, {"ours": b"1\n"}, {"theirs": b"1\n"})


def _merge_prepare(world: World) -> Try:
    n = _proposed(world)
    body = {"device_key_id": world.repo.owner.key.id, "strategy": "squash"}
    return Try(f"{world.repo.url}/proposals/{n}/merge-prepare", body)


def _merge_finalize(world: World) -> Try:
    n = _proposed(world)
    prepared = ok(merges.prepare(world.repo, n, "squash"))
    return Try(f"{world.repo.url}/proposals/{n}/merge-finalize", merges.signed(world.repo, prepared))


def _update_prepare(world: World) -> Try:
    n = _proposed(world)
    return Try(f"{world.repo.url}/proposals/{n}/update-branch", {"device_key_id": world.repo.owner.key.id})


def _update_finalize(world: World) -> Try:
    asked = _update_prepare(world)
    prepared: dict[str, Any] = ok(world.repo.http.post(asked.path, json=asked.json))
    return Try(f"{asked.path}/finalize", merges.signed(world.repo, prepared))


def _preview(world: World) -> Try:
    _proposed(world)
    return Try(f"{world.repo.url}/merge-preview", {"base": "main", "head": "topic"})


def _merge(world: World) -> Try:
    asked, key = _preview(world), world.repo.owner.key
    shown = ok(world.repo.http.post(asked.path, json=asked.json))
    body = {
        "preview_id": shown["preview_id"],
        "device_key_id": key.id,
        "signature": b64u(key.sign(unb64u(shown["bytes"]))),
    }
    return Try(f"{world.repo.url}/merge", body)


MUTATIONS: dict[Named, Callable[[World], Try]] = {
    ("POST", f"{ONE}/merge-prepare"): _merge_prepare,
    ("POST", f"{ONE}/merge-finalize"): _merge_finalize,
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
