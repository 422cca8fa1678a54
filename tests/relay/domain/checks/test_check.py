"""Checks: which have to pass, which are known, and how a seal stands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from localstore.core.model import limits
from relay.domain.checks import check as rules
from tests.relay.conftest import Account, Relay
from tests.relay.domain.checks.runs import checks, refused, run, sealed
from tests.relay.histories import Repository, ok, own


@pytest.fixture
def repo(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Iterator[Repository]:
    yield own(account, client, visibility="public")


def test_an_enabled_check_is_awaited_until_it_reports(repo: Repository) -> None:
    seal = sealed(repo)
    enabled = ok(repo.http.put(f"{repo.url}/checks/ci/test"))
    assert enabled == {"name": "ci/test", "enabled": True, "last": None}
    assert ok(repo.http.put(f"{repo.url}/checks/ci/test")) == enabled
    run(repo, seal, "lint", conclusion="success")
    found = checks(repo, seal)
    assert found["rollup"] == {"total": 2, "passed": 1, "failed": 0, "pending": 1}
    assert [(one["name"], one["state"], one["required"], one["attempt"]) for one in found["items"]] == [
        ("ci/test", "pending", True, 0),
        ("lint", "pass", False, 1),
    ]
    run(repo, seal, "CI/test", conclusion="skipped")
    assert checks(repo, seal)["rollup"] == {"total": 2, "passed": 2, "failed": 0, "pending": 0}
    known = repo.get("/checks")["items"]
    assert [(one["name"], one["enabled"], one["last"]["seal_id"]) for one in known] == [
        ("ci/test", True, seal),
        ("lint", False, seal),
    ]
    assert repo.http.delete(f"{repo.url}/checks/CI/Test").status_code == 204
    refused(repo.http.delete(f"{repo.url}/checks/ci/test"), 404, "not_found")
    assert [one["enabled"] for one in repo.get("/checks")["items"]] == [False, False]
    assert not any(one["required"] for one in checks(repo, seal)["items"])


def test_a_check_that_never_reported_is_gone_when_it_is_disabled(repo: Repository) -> None:
    ok(repo.http.put(f"{repo.url}/checks/soon"))
    repo.http.delete(f"{repo.url}/checks/soon")
    assert repo.get("/checks")["items"] == []


@pytest.mark.parametrize("name", ["a//b", "%2e%2e/x", "a/%2e", "%20", "a%0ab", "x" * 101, "%e2%80%aex"])
def test_no_check_has_such_a_name(repo: Repository, name: str) -> None:
    answer = repo.http.put(f"{repo.url}/checks/{name}")
    assert answer.status_code in (404, 422), answer.text
    assert repo.get("/checks")["items"] == []


def test_so_many_checks_are_enabled_and_known(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKS_ENABLED", 2)
    monkeypatch.setattr(limits, "CHECKS_KNOWN", 3)
    for name in ("a", "b"):
        ok(repo.http.put(f"{repo.url}/checks/{name}"))
    refused(repo.http.put(f"{repo.url}/checks/c"), 409, "conflict")
    seal = sealed(repo)
    for name in ("one", "two", "three"):
        run(repo, seal, name)
    assert [one["name"] for one in repo.get("/checks")["items"]] == ["a", "b", "three"]
    assert checks(repo, seal)["rollup"]["total"] == 5


def test_a_proposal_says_how_the_checks_of_its_head_stand(repo: Repository) -> None:
    first = sealed(repo)
    repo.branch("topic", first)
    head = sealed(repo, "topic")
    made = ok(repo.http.post(f"{repo.url}/proposals", json={"head": "topic", "base": "main", "title": "T"}))
    assert made["checks"] == {"total": 0, "passed": 0, "failed": 0, "pending": 0}
    ok(repo.http.put(f"{repo.url}/checks/must"))
    run(repo, head, "lint", conclusion="failure")
    run(repo, first, "must", conclusion="success")
    (listed,) = repo.get("/proposals")["items"]
    assert listed["checks"] == checks(repo, head)["rollup"]
    assert listed["checks"] == {"total": 2, "passed": 0, "failed": 1, "pending": 1}
    newer = sealed(repo, "topic")
    assert repo.get("/proposals/1")["checks"] == checks(repo, newer)["rollup"]


def test_rollups_and_what_is_unmet_agree_with_the_list(relay: Relay, repo: Repository) -> None:
    seals = [sealed(repo) for _ in range(4)]
    for name in ("must", "also"):
        ok(repo.http.put(f"{repo.url}/checks/{name}"))
    run(repo, seals[1], "must", conclusion="success")
    run(repo, seals[1], "free", conclusion="failure")
    run(repo, seals[2], "must", conclusion="failure")
    run(repo, seals[2], "MUST", conclusion="neutral")
    run(repo, seals[2], "also", conclusion="success")
    run(repo, seals[3], "also", conclusion="cancelled")

    async def read() -> tuple[dict[str, Any], list[list[str]]]:
        async with relay.node.db.read() as tx:
            found = await rules.combine_states(tx, repo.id, seals)
            named = await rules.find_unmet(tx, repo.id, seals)
            return found, [named[one] for one in seals]

    found, unmet = relay.run(read())
    for seal in seals:
        shown = checks(repo, seal)["rollup"]
        assert {name: getattr(found[seal], name) for name in shown} == shown
    assert unmet == [["also", "must"], ["also"], [], ["also", "must"]]
