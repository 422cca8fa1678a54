"""A seal has one parent; a merge seal two, where the node makes merge seals; no seal has more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.relay.conftest import Relay
from tests.relay.histories import Repository, create

QUIET = {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"}


@pytest.fixture(params=["off", "on"])
def merging(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def repo(tmp_path: Path, merging: str) -> Iterator[Repository]:
    """`main` with two seals, and branches b0 and b1 with one more each."""
    running = Relay(tmp_path / "relay", {**QUIET, "TR_REPO_MERGE_ENABLED": merging})
    running.start()
    try:
        owner = running.account("merger")
        with running.client(owner) as http:
            made = create(http, owner, "thing")
            made.body["root"] = made.seal({"f": b"0\n"}, {"f": b"1\n"})[0]
            made.body["sides"] = []
            for name in ("b0", "b1"):
                made.branch(name, made.body["root"])
                made.body["sides"] += made.seal({name: b"1\n"}, branch=name)
            yield made
    finally:
        running.stop()


def prepare(repo: Repository, **members: Any) -> Any:
    asked = {
        "branch": "main",
        "device_key_id": repo.owner.key.id,
        "expected_head": repo.head(),
        "seals": [{"message": "m", "changes": [], **members}],
    }
    return repo.http.post(f"{repo.url}/seals/prepare", json=asked)


def test_two_parents_where_merges_are_made_and_never_three(repo: Repository, merging: str) -> None:
    sides, before = repo.body["sides"], repo.head()
    two, three = prepare(repo, parents=sides[:1]), prepare(repo, parents=sides)
    assert (two.status_code, three.status_code) == (200 if merging == "on" else 422, 422), two.text
    assert "one parent" in three.json()["detail"]
    assert prepare(repo, parents=[sides[0], sides[0]]).status_code == 422
    if merging == "off":
        assert "TR_REPO_MERGE_ENABLED" in two.json()["detail"]
        assert repo.head() == before
        return
    (merge,) = repo.seal({"b0": b"1\n"}, parents=sides[:1])
    assert repo.get(f"/seals/{merge}")["parents"] == [before, sides[0]]


def test_a_parent_that_is_the_head_is_no_second_one(repo: Repository) -> None:
    head = repo.head()
    assert prepare(repo, parents=[head]).status_code == 200


def test_a_pushed_git_merge_has_one_parent_and_its_others_in_provenance(repo: Repository) -> None:
    git = {"git_id": "a" * 40, "git_raw": "b" * 64}
    assert prepare(repo, parents=repo.body["sides"], **git).status_code == 200
