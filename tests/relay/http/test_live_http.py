"""Live updates and sealing over HTTP, as a device does them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from sqlalchemy import bindparam, insert, update

from localstore.core import seal as seals
from localstore.core.encoding import b64u, digest, unb64u
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model.live import Bootstrap, UpdatesRequest
from relay.base.ids import new_id
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay


async def make_repo(relay: Relay, owner: str, blobs: list[bytes]) -> str:
    repo_id = new_id()
    async with relay.node.db.write() as tx:
        repo = {
            "id": repo_id,
            "owner_id": owner,
            "name": repo_id,
            "kind": "app",
            "class": "private",
            "description": "",
            "default_branch": "main",
            "state": "active",
            "tree_key": digest(b"key"),
            "tree_key_id": "k",
            "created_at": 1,
            "updated_at": 1,
        }
        ref = {
            "id": new_id(),
            "repo_id": repo_id,
            "type": "branch",
            "name": "main",
            "seq": 0,
            "sealed_seq": 0,
        }
        await tx.many(insert(tables["repo"]), [repo])
        await tx.many(insert(tables["ref"]), [{**ref, "created_at": 1, "updated_at": 1}])
    for blob in blobs:
        await relay.node.objects.put(repo_id, blob)
    return repo_id


async def archive(relay: Relay, repo_id: str) -> None:
    async with relay.node.db.write() as tx:
        statement = update(tables["repo"]).where(tables["repo"].c.id == bindparam("repo"))
        await tx.run(statement.values(state=bindparam("to")), repo=repo_id, to="archived")


def created(who: Account, repo_id: str, start: Bootstrap, data: bytes) -> dict[str, Any]:
    made = LiveUpdate(
        n=1,
        settled=0,
        path="x.txt",
        kind="create_text",
        gen=0,
        base=0,
        signature="",
        blake3=digest(data).hex(),
        size=len(data),
    )
    raw = signing_bytes(repo_id, start.branch_id, start.replica, who.key.id, made)
    signed = msgspec.structs.replace(made, signature=b64u(who.key.sign(raw)))
    return {"device_key_id": who.key.id, "replica": start.replica, "updates": [msgspec.to_builtins(signed)]}


def test_a_device_sends_and_seals(
    relay: Relay, account: Callable[..., Account], client: Callable[..., Any]
) -> None:
    who, stranger = account(), account()
    repo_id = relay.run(make_repo(relay, who.id, [b"hello"]))
    base = f"/api/v1/repos/{repo_id}/branches/main"
    http = client(who)
    answer = http.post(f"{base}/live/bootstrap", json={"device_key_id": who.key.id})
    assert answer.status_code == 200, answer.text
    start = msgspec.json.decode(answer.content, type=Bootstrap)
    batch = created(who, repo_id, start, b"hello")
    first = http.post(f"{base}/live/updates", json=batch)
    assert first.status_code == 200 and first.json()["answers"][0]["result"] == "ok"
    assert http.post(f"{base}/live/updates", json=batch).json() == first.json()
    assert client(stranger).post(f"{base}/live/updates", json=batch).status_code == 404
    asked = {"message": "m", "device_key_id": who.key.id, "expected_head": None}
    prepared = http.post(f"{base}/seal/prepare", json=asked).json()
    signature = b64u(who.key.sign(unb64u(prepared["bytes"])))
    body = {"prepare_id": prepared["prepare_id"], "device_key_id": who.key.id, "signature": signature}
    wrong = http.post(f"{base}/seal/finalize", json={**body, "signature": b64u(bytes(64))})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "signature_invalid")
    sealed = http.post(f"{base}/seal/finalize", json=body)
    assert sealed.status_code == 201
    assert http.post(f"{base}/seal/finalize", json=body).json() == sealed.json()
    assert seals.seal_id(unb64u(sealed.json()["payload"])) == sealed.json()["id"]
    stale = http.post(f"{base}/seal/prepare", json=asked)
    assert (stale.status_code, stale.json()["code"]) == (409, "stale_head")
    relay.run(archive(relay, repo_id))
    assert http.post(f"{base}/live/updates", json=batch).json()["code"] == "repository_archived"


def test_one_update_may_come_without_a_batch(
    relay: Relay, account: Callable[..., Account], client: Callable[..., Any]
) -> None:
    who = account()
    repo_id = relay.run(make_repo(relay, who.id, [b"hello"]))
    base, http = f"/api/v1/repos/{repo_id}/branches/main/live", client(who)
    start = msgspec.json.decode(
        http.post(f"{base}/bootstrap", json={"device_key_id": who.key.id}).content, type=Bootstrap
    )
    batch = created(who, repo_id, start, b"hello")
    (update,) = batch.pop("updates")
    bare = http.post(f"{base}/updates", json={**batch, **update})
    assert bare.status_code == 200, bare.text
    assert bare.json()["answers"][0]["result"] == "ok"
    assert http.post(f"{base}/updates", json={**batch, "updates": [update]}).json() == bare.json(), (
        "it is known"
    )
    both = http.post(f"{base}/updates", json={**batch, **update, "updates": [update]})
    assert (both.status_code, both.json()["code"]) == (422, "invalid")
    half = http.post(f"{base}/updates", json={**batch, **update, "signature": None})
    assert (half.status_code, "signature" in half.json()["detail"]) == (422, True)


def test_a_bare_update_has_every_member_of_one_in_a_batch() -> None:
    assert set(LiveUpdate.__struct_fields__) < set(UpdatesRequest.__struct_fields__)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"device_key_id": "x", "replica": 1 << 70, "updates": []},
        {"device_key_id": "x", "replica": 0, "updates": []},
        {"device_key_id": "\0", "replica": 1, "updates": []},
        {"device_key_id": "x", "replica": 1, "updates": [{"n": 1}]},
        {"device_key_id": "x", "replica": 1, "updates": [], "turn_id": "\0"},
    ],
)
def test_a_hostile_batch_gets_one_clear_error(
    relay: Relay, account: Callable[..., Account], client: Callable[..., Any], body: dict[str, Any]
) -> None:
    who = account()
    repo_id = relay.run(make_repo(relay, who.id, []))
    for branch in ("main", "no-such", "%00", "%ff"):
        answer = client(who).post(f"/api/v1/repos/{repo_id}/branches/{branch}/live/updates", json=body)
        assert 400 <= answer.status_code < 500
