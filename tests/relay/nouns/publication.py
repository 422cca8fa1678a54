"""Signed publications, in the tests of the whole route table."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core import publication
from localstore.core.encoding import b64u
from tests.relay.histories import ok
from tests.relay.world import REPO, Named, Try, World


def _signed(world: World) -> Try:
    repo = world.repo
    (seal,) = repo.seal({"f": b"1\n"})
    ok(world.http.post(f"{repo.url}/releases", json={"version": "v1", "seal_id": seal}))
    asset = ok(world.http.post(f"{repo.url}/releases/v1/assets", params={"name": "a.bin"}, content=b"abc"))
    raw = publication.payload(repo.id, "v1", seal, [("a.bin", asset["blake3"], asset["size"])])
    key = world.who.key
    body = {"version": "v1", "device_key_id": key.id, "signature": b64u(key.sign(raw))}
    return Try(f"{repo.url}/publications", body)


MUTATIONS: dict[Named, Callable[[World], Try]] = {("POST", f"{REPO}/publications"): _signed}
