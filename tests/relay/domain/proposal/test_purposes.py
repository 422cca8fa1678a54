"""What was prepared lands through the door that it was prepared for, and through no other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import bindparam, update

from localstore.core.encoding import b64u, unb64u
from relay.base.flags import Flags
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, compared, create, own

UNKNOWN = "0" * 64


@pytest.fixture
def repo(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Repository:
    return own(account, client)


def of_frontier(repo: Repository, signed: dict[str, str]) -> httpx.Response:
    body = {"device_key_id": repo.owner.key.id, **signed}
    return repo.http.post(f"{repo.url}/branches/main/seal/finalize", json=body)


def of_trees(repo: Repository, signed: dict[str, str]) -> httpx.Response:
    body = {
        "device_key_id": repo.owner.key.id,
        "prepare_id": signed["prepare_id"],
        "signatures": [signed["signature"]],
    }
    return repo.http.post(f"{repo.url}/seals/finalize", json=body)


def from_trees(repo: Repository, **members: Any) -> dict[str, str]:
    asked = {
        "branch": "main",
        "device_key_id": repo.owner.key.id,
        "expected_head": repo.head(),
        "seals": [{"message": "explicit", "changes": [], **members}],
    }
    answer = repo.http.post(f"{repo.url}/seals/prepare", json=asked)
    assert answer.is_success, answer.text
    prepared = answer.json()
    signature = b64u(repo.owner.key.sign(unb64u(prepared["seals"][0]["bytes"])))
    return {"prepare_id": prepared["prepare_id"], "signature": signature}


def test_a_seal_of_the_frontier_lands_at_its_own_door_alone(repo: Repository) -> None:
    signed = repo.prepare(repo.owner.key)
    unknown = of_trees(repo, {**signed, "prepare_id": UNKNOWN})
    assert compared(of_trees(repo, signed)) == compared(unknown)
    assert (unknown.status_code, repo.head()) == (404, None)
    assert of_frontier(repo, signed).status_code == 201
    assert compared(of_trees(repo, signed)) == compared(unknown)  # a repeat finds it where it landed
    assert of_frontier(repo, signed).status_code == 201


def test_seals_of_explicit_trees_land_at_their_own_door_alone(repo: Repository) -> None:
    repo.seal({"a.txt": b"a\n"})
    signed, before = from_trees(repo), repo.head()
    unknown = of_frontier(repo, {**signed, "prepare_id": UNKNOWN})
    assert compared(of_frontier(repo, signed)) == compared(unknown)
    assert (unknown.status_code, repo.head()) == (404, before)
    assert of_trees(repo, signed).status_code == 201
    assert compared(of_frontier(repo, signed)) == compared(unknown)
    assert of_trees(repo, signed).status_code == 201


@pytest.mark.parametrize("door", [of_frontier, of_trees])
def test_neither_door_lands_a_merge(relay: Relay, repo: Repository, door: Any) -> None:
    signed = repo.prepare(repo.owner.key) if door is of_frontier else from_trees(repo)
    table = tables["prepare"]

    async def become_merge() -> int:
        async with relay.node.db.write() as tx:
            named = update(table).where(table.c.id == bindparam("prepared"))
            return await tx.run(named.values(purpose="merge", subject="7"), prepared=signed["prepare_id"])

    assert relay.run(become_merge()) == 1
    assert compared(door(repo, signed)) == compared(door(repo, {**signed, "prepare_id": UNKNOWN}))
    assert repo.head() is None


def test_a_merge_seal_needs_the_flag_when_it_lands_too(
    relay: Relay, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node that prepared it, or an earlier start of this one, may have had the flag on."""
    (root,) = repo.seal({"f": b"0\n"})
    repo.branch("side", root)
    (side,) = repo.seal({"g": b"1\n"}, branch="side")
    repo.seal({"f": b"1\n"})
    signed, before = from_trees(repo, parents=[side]), repo.head()
    config = relay.node.config
    off = Flags({**config.flags.values, "TR_REPO_MERGE_ENABLED": False}, config.flags.conditional_put)
    with monkeypatch.context() as patch:
        patch.setattr(relay.node, "config", dataclasses.replace(config, flags=off))
        refused = of_trees(repo, signed)
    assert (refused.status_code, repo.head()) == (422, before)
    assert "TR_REPO_MERGE_ENABLED" in refused.json()["detail"]
    assert of_trees(repo, signed).status_code == 201


def test_one_purpose_does_not_crowd_out_another(relay: Relay, repo: Repository) -> None:
    """Of each a device keeps a few for a branch."""
    other = create(repo.http, repo.owner, "other")
    signed = other.prepare(other.owner.key)
    for _ in range(6):
        from_trees(other)
    assert of_frontier(other, signed).status_code == 201
