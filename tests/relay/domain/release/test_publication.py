"""A publication is a writer's signature under the files of a release as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from localstore.core import publication
from localstore.core.encoding import b64u
from localstore.core.identity.keys import DeviceKey
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create, ok

Client = Callable[..., httpx.Client]
Someone = Callable[..., Account]


def _released(http: httpx.Client, who: Account, name: str) -> tuple[Repository, str]:
    repo = create(http, who, name)
    (seal,) = repo.seal({"f": b"1\n"})
    ok(http.post(f"{repo.url}/releases", json={"version": "v1", "seal_id": seal}))
    return repo, seal


def _asset(repo: Repository, name: str, data: bytes) -> Any:
    return ok(repo.http.post(f"{repo.url}/releases/v1/assets", params={"name": name}, content=data))


def _sign(
    repo: Repository, who: Account, seal: str, *assets: Any, key: DeviceKey | None = None
) -> httpx.Response:
    listed = [(one["name"], one["blake3"], one["size"]) for one in assets]
    raw = publication.payload(repo.id, "v1", seal, listed)
    signature = b64u((key or who.key).sign(raw))
    body = {"version": "v1", "device_key_id": who.key.id, "signature": signature}
    return repo.http.post(f"{repo.url}/publications", json=body)


def test_the_bytes_that_are_signed() -> None:
    assert publication.payload("r", "v1", "00", [("b", "22", 2), ("a", "11", 1)]) == (
        b'svc-publication-v1\n{"assets":[{"blake3":"11","name":"a","size":1},'
        b'{"blake3":"22","name":"b","size":2}],"repo_id":"r","seal_id":"00","version":"v1"}'
    )


def test_a_signature_stands_while_the_files_do(account: Someone, client: Client) -> None:
    owner = account()
    http = client(owner)
    repo, seal = _released(http, owner, "signed")
    empty = _sign(repo, owner, seal)
    assert (empty.status_code, empty.json()["code"]) == (409, "nothing_published")
    first = _asset(repo, "a.bin", b"abc")
    unsigned = repo.get("/releases/v1")["publication"]
    assert unsigned["signed"] is False and unsigned["key_id"] is None

    assert _sign(repo, owner, "0" * 64, first).json()["code"] == "signature_invalid"
    assert _sign(repo, owner, seal).json()["code"] == "signature_invalid"
    assert _sign(repo, owner, seal, first, key=DeviceKey.generate()).json()["code"] == "signature_invalid"
    made = _sign(repo, owner, seal, first)
    assert made.status_code == 201
    shown = repo.get("/releases")["items"][0]["publication"]
    assert shown == made.json()["publication"] == repo.get("/releases/v1")["publication"]
    assert (shown["signed"], shown["key_id"], shown["signed_by"]["id"]) == (True, owner.key.id, owner.id)
    assert _sign(repo, owner, seal, first).status_code == 201  # again

    ok(http.patch(repo.url, json={"visibility": "public"}))
    ok(http.put(f"{repo.url}/listing", json={"name": "Signed"}))
    assert repo.get("/listing")["installable"] is True
    second = _asset(repo, "b.bin", b"def")
    assert repo.get("/releases/v1")["publication"] == unsigned
    assert repo.get("/listing")["installable"] is False
    assert _sign(repo, owner, seal, second, first).status_code == 201
    http.delete(f"{repo.url}/releases/v1/assets/b.bin").raise_for_status()
    assert repo.get("/releases/v1")["publication"] == unsigned
    assert _sign(repo, owner, seal, first).status_code == 201
    http.delete(f"{repo.url}/releases/v1").raise_for_status()
    assert repo.get("/listing")["installable"] is False


def test_whoever_may_not_write_signs_nothing(account: Someone, client: Client) -> None:
    owner, other = account(), account()
    http = client(owner)
    repo, seal = _released(http, owner, "theirs")
    asset = _asset(repo, "a.bin", b"abc")
    theirs = Repository(client(other), other, repo.body)
    assert _sign(theirs, other, seal, asset).status_code == 404
    ok(http.patch(repo.url, json={"visibility": "public"}))
    assert _sign(theirs, other, seal, asset).status_code == 403
    borrowed = Repository(http, other, repo.body)  # the owner names a key of somebody else
    assert _sign(borrowed, other, seal, asset).status_code == 403


@pytest.mark.parametrize("signature", ["", "x", "!" * 86, "A" * 87, 3])
def test_what_is_no_signature_is_refused(account: Someone, client: Client, signature: object) -> None:
    owner = account()
    http = client(owner)
    repo = create(http, owner, "bad")
    body = {"version": "v1", "device_key_id": owner.key.id, "signature": signature}
    assert http.post(f"{repo.url}/publications", json=body).status_code == 422
