"""Merges into protected branches: what they wait for, and that they land once it is there."""

from __future__ import annotations

from typing import Any

import pytest

from localstore.core.encoding import b64u, unb64u
from tests.relay.domain.merging.test_merge import refused, state
from tests.relay.histories import Repository, ok, own
from tests.relay.merges import apart, finalize, merge, prepare


@pytest.fixture
def repo(account: Any, client: Any) -> Repository:
    return own(account, client)


def protect(repo: Repository, pattern: str = "main", **flags: object) -> None:
    ok(repo.http.put(f"{repo.url}/protections/{pattern}", json=flags))


def stands(repo: Repository, n: int) -> tuple[str, list[str]]:
    shown = repo.get(f"/proposals/{n}")
    listed = next(one for one in repo.get("/proposals")["items"] if one["number"] == n)
    assert (listed["merge_state"], listed["blocked_by"]) == (shown["merge_state"], shown["blocked_by"])
    return shown["merge_state"], shown["blocked_by"]


def passes(repo: Repository, seal: str, conclusion: str) -> None:
    run = {"name": "ci/test", "seal_id": seal, "status": "completed", "conclusion": conclusion}
    ok(repo.http.post(f"{repo.url}/runs", json=run))


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ({"lock_writes": True}, "lock_writes"),
        ({"require_review": True}, "review_required"),
        ({"required_approvals": 2}, "review_required"),
    ],
)
def test_a_merge_waits_for_what_the_rule_asks(repo: Repository, flags: dict[str, object], code: str) -> None:
    n = apart(repo, {}, {"a": b"1\n"})
    signed = ok(prepare(repo, n, "squash"))
    protect(repo, **flags)
    before = state(repo, n)
    assert stands(repo, n) == ("blocked", [code])
    for answer in (prepare(repo, n, "squash"), finalize(repo, n, signed)):
        assert refused(answer, 409, "not_mergeable")["blocked_by"] == [code]
    asked = {"base": "main", "head": "topic"}
    assert ok(repo.http.post(f"{repo.url}/merge-preview", json=asked))["blocked_by"] == [code]
    assert state(repo, n) == before
    assert repo.http.delete(f"{repo.url}/protections/main").status_code == 204
    assert stands(repo, n) == ("clean", [])
    assert ok(finalize(repo, n, signed))["state"] == "merged"


@pytest.mark.parametrize("proposed", [True, False])
@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ({"lock_writes": True}, "lock_writes"),
        ({"required_approvals": 1}, "review_required"),
        ({"require_checks": True}, "checks_required"),
    ],
)
def test_the_guarded_merge_obeys_the_rule_that_came_after_its_preview(
    repo: Repository, flags: dict[str, object], code: str, proposed: bool
) -> None:
    ok(repo.http.put(f"{repo.url}/checks/ci%2Ftest"))
    n = apart(repo, {"ours": b"1\n"}, {"theirs": b"1\n"})
    if not proposed:
        ok(repo.http.patch(f"{repo.url}/proposals/{n}", json={"state": "closed"}))
    url, asked = f"{repo.url}/merge-preview", {"base": "main", "head": "topic"}
    shown = ok(repo.http.post(url, json=asked))
    assert shown["blocked_by"] == []
    protect(repo, **flags)
    assert ok(repo.http.post(url, json=asked))["blocked_by"] == [code]
    key, before = repo.owner.key, state(repo, n)
    signature = b64u(key.sign(unb64u(shown["bytes"])))
    body = {"preview_id": shown["preview_id"], "device_key_id": key.id, "signature": signature}
    found = refused(repo.http.post(f"{repo.url}/merge", json=body), 409, "not_mergeable")
    assert found["blocked_by"] == [code]
    assert state(repo, n) == before
    assert repo.http.delete(f"{repo.url}/protections/main").status_code == 204
    assert repo.http.post(f"{repo.url}/merge", json=body).status_code == 201


def test_required_checks_have_to_pass_on_the_head(repo: Repository) -> None:
    ok(repo.http.put(f"{repo.url}/checks/ci%2Ftest"))
    protect(repo, require_checks=True)
    n = apart_of_protected(repo)
    head = str(repo.head("topic"))
    assert stands(repo, n) == ("blocked", ["checks_required"])
    assert refused(prepare(repo, n, "squash"), 409, "not_mergeable")["blocked_by"] == ["checks_required"]
    passes(repo, head, "failure")
    assert stands(repo, n) == ("blocked", ["checks_required"])
    passes(repo, head, "success")
    assert stands(repo, n) == ("clean", [])
    assert merge(repo, n, "squash")["state"] == "merged"


def apart_of_protected(repo: Repository) -> int:
    """A proposal of a branch that was begun before the rule."""
    assert repo.http.delete(f"{repo.url}/protections/main").status_code == 204
    n = apart(repo, {}, {"a": b"1\n"})
    protect(repo, require_checks=True)
    return n


def test_a_protected_head_takes_no_update(repo: Repository) -> None:
    n = apart(repo, {"ours": b"1\n"}, {"a": b"1\n"})
    protect(repo, "topic", require_review=True)
    before = state(repo, n)
    body = {"device_key_id": repo.owner.key.id}
    answer = repo.http.post(f"{repo.url}/proposals/{n}/update-branch", json=body)
    assert refused(answer, 409, "branch_protected")["rules"] == ["require_review"]
    assert state(repo, n) == before


def test_a_protected_head_stays_after_its_merge(repo: Repository) -> None:
    n = apart(repo, {}, {"a": b"1\n"})
    protect(repo, "topic")
    signed = ok(prepare(repo, n, "squash"))
    assert ok(finalize(repo, n, signed, delete_branch=True))["state"] == "merged"
    assert repo.head("topic") is not None


def test_rules_are_listed_in_pages_and_a_missing_one_is_not_cleared(repo: Repository) -> None:
    for n in range(5):
        protect(repo, f"b{n}")
    seen: list[str] = []
    asked: dict[str, Any] = {"limit": 2}
    while True:
        found = repo.get("/protections", **asked)
        seen += [one["pattern"] for one in found["items"]]
        if not found["next_cursor"]:
            break
        asked["cursor"] = found["next_cursor"]
    assert seen == [f"b{n}" for n in range(5)]
    assert refused(repo.http.delete(f"{repo.url}/protections/other"), 404, "not_found")
    assert repo.http.delete(f"{repo.url}/protections/b0").status_code == 204
    assert repo.http.delete(f"{repo.url}/protections/b0").status_code == 404
