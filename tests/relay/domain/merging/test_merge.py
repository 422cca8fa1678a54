"""Merging proposals: what lands, what is refused, and that a refusal changes nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from localstore.core.encoding import b64u, unb64u
from tests.relay import merges
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, ok, own
from tests.relay.merges import PAGE, apart, files, finalize, merge, messages, payload, prepare, propose, put

OURS = {"page": put(1, b"ONE")}
THEIRS = {"page": put(9, b"NINE"), "new": b"new\n"}
BOTH = {"page": put(9, b"NINE", put(1, b"ONE")), "new": b"new\n"}


@pytest.fixture
def repo(account: Any, client: Any) -> Repository:
    return own(account, client)


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    problem: dict[str, Any] = answer.json()
    assert problem["code"] == code, problem
    return problem


def state(repo: Repository, n: int) -> tuple[Any, ...]:
    """What a refused merge must not change."""
    shown = repo.get(f"/proposals/{n}")
    return repo.head(), repo.head("topic"), shown["state"], shown["merged_seal"], shown["version"]


def test_an_unmoved_base_moves_forward_by_a_seal_of_the_caller(repo: Repository) -> None:
    n = apart(repo, {}, {"a": b"1\n"}, {"b": b"2\n"})
    head = repo.head("topic")
    done = merge(repo, n)
    assert (done["state"], done["merged_seal"]) == ("merged", repo.head())
    made = payload(repo, done["merged_seal"])
    assert made.parents == [head], "the seals of the branch are the history of the base"
    assert made.provenance.device_key_id == repo.owner.key.id
    assert made.provenance.merge is not None
    assert (made.provenance.merge.strategy, made.provenance.merge.sources) == ("fast_forward", [head])
    assert files(repo) == {"page": PAGE, "a": b"1\n", "b": b"2\n"}
    assert messages(repo) == [f"Bring topic (#{n})", "topic 2", "topic 1", "change 1"]


def test_squash_is_one_seal_with_one_parent_and_both_sides(repo: Repository) -> None:
    n = apart(repo, OURS, {"page": put(9, b"NINE")}, {"new": b"new\n"})
    base, head = repo.head(), repo.head("topic")
    prepared = ok(prepare(repo, n, "squash"))
    assert prepared["merged"] == ["page"]
    assert (prepared["base_seal"], prepared["head_seal"]) == (base, head)
    done = ok(finalize(repo, n, prepared))
    made = payload(repo, done["merged_seal"])
    assert made.parents == [base]
    assert made.provenance.merge is not None
    assert (made.provenance.merge.strategy, made.provenance.merge.sources) == ("squash", [head])
    assert made.provenance.merge.proposal == n
    assert files(repo) == BOTH
    assert messages(repo) == [f"Bring topic (#{n})", "ours", "change 1"]
    assert repo.head("topic") == head
    again = ok(finalize(repo, n, prepared))
    assert again["merged_seal"] == done["merged_seal"], "a repeat finds what it did"


def test_rebase_keeps_the_messages_and_drops_what_is_there(repo: Repository) -> None:
    both = {"page": put(5, b"FIVE", put(1, b"ONE"))}
    n = apart(
        repo, both, {"page": put(9, b"NINE")}, {"page": put(5, b"FIVE", put(9, b"NINE"))}, {"new": b"n\n"}
    )
    line = [one["id"] for one in repo.get("/commits", ref="topic")["items"]]
    merge(repo, n, "rebase")
    assert messages(repo) == ["topic 3", "topic 1", "ours", "change 1"], "topic 2 was on main already"
    seal = str(repo.head())
    made = payload(repo, seal)
    assert made.provenance.merge is not None
    assert made.provenance.merge.sources == [line[0]]
    assert files(repo) == {"page": put(9, b"NINE", put(5, b"FIVE", put(1, b"ONE"))), "new": b"n\n"}


def test_merge_has_two_parents_and_wants_other_files(repo: Repository) -> None:
    n = apart(repo, {"ours": b"1\n"}, {"theirs": b"1\n"})
    base, head = repo.head(), repo.head("topic")
    done = merge(repo, n, "merge")
    assert payload(repo, done["merged_seal"]).parents == [base, head]
    assert files(repo) == {"page": PAGE, "ours": b"1\n", "theirs": b"1\n"}
    other = own_branch(repo, "other", {"page": put(1, b"OTHER")})
    repo.seal({"page": put(9, b"MAIN")})
    found = refused(prepare(repo, other, "merge"), 409, "merge_conflict")
    assert found["files"] == ["page"], "joined by lines it would be clean"
    assert ok(prepare(repo, other, "squash"))["merged"] == ["page"]


def own_branch(repo: Repository, name: str, change: dict[str, bytes]) -> int:
    repo.branch(name, str(repo.head()))
    repo.seal(change, branch=name)
    return propose(repo, name)


@pytest.mark.parametrize("strategy", ["squash", "rebase", "merge"])
def test_a_conflict_lists_the_files_and_nothing_lands(repo: Repository, strategy: str) -> None:
    n = apart(
        repo,
        {"page": put(5, b"OURS"), "gone": None, "bytes": b"\0ours", "x": b"file\n"},
        {"page": put(5, b"THEIRS"), "gone": b"2\n", "bytes": b"\0theirs", "x/in": b"1\n", "fine": b"1\n"},
        start={"page": PAGE, "gone": b"1\n", "bytes": b"\0"},
    )
    before = state(repo, n)
    found = refused(prepare(repo, n, strategy), 409, "merge_conflict")
    listed = {"page", "gone", "bytes"} | ({"x"} if strategy != "merge" else set())
    assert set(found["files"]) >= listed
    assert "svc pr checkout" in found["detail"]
    assert "svc resolve" in found["detail"]
    assert state(repo, n) == before


def test_without_a_strategy_a_moved_base_is_refused_and_names_the_three(repo: Repository) -> None:
    n = apart(repo, OURS, THEIRS)
    found = refused(prepare(repo, n), 409, "base_moved")
    for option in ("--squash", "--rebase", "--merge"):
        assert option in found["detail"]


def test_heads_that_the_caller_did_not_see(repo: Repository) -> None:
    n = apart(repo, OURS, THEIRS)
    base, head = repo.head(), repo.head("topic")
    refused(prepare(repo, n, "squash", expected_base=head), 409, "base_moved")
    refused(prepare(repo, n, "squash", expected_head=base), 409, "head_moved")
    first = ok(prepare(repo, n, "squash", expected_base=base, expected_head=head))
    repo.seal({"later": b"1\n"}, branch="topic")
    refused(finalize(repo, n, first), 409, "head_moved")
    second = ok(prepare(repo, n, "squash"))
    repo.seal({"more": b"1\n"})
    before = state(repo, n)
    refused(finalize(repo, n, second), 409, "base_moved")
    assert state(repo, n) == before


def test_drafts_closed_and_merged_ones_are_not_merged(repo: Repository) -> None:
    n = apart(repo, OURS, THEIRS)
    prepared = ok(prepare(repo, n, "squash"))
    one = f"{repo.url}/proposals/{n}"
    ok(repo.http.patch(one, json={"draft": True}))
    refused(prepare(repo, n, "squash"), 409, "draft")
    refused(finalize(repo, n, prepared), 409, "draft")
    ok(repo.http.patch(one, json={"draft": False, "state": "closed"}))
    assert refused(prepare(repo, n, "squash"), 409, "not_mergeable")["blocked_by"] == ["closed"]
    refused(finalize(repo, n, prepared), 409, "not_mergeable")
    ok(repo.http.patch(one, json={"state": "open"}))
    ok(finalize(repo, n, prepared))
    refused(prepare(repo, n, "squash"), 409, "proposal_merged")


def test_changes_requested_block_also_between_the_halves(
    relay: Relay, repo: Repository, account: Any, client: Any
) -> None:
    n = apart(repo, OURS, THEIRS)
    prepared = ok(prepare(repo, n, "squash"))
    reviewer = account()
    merges.grant(relay, repo, reviewer)
    http = client(reviewer)
    made = ok(
        http.post(f"{repo.url}/proposals/{n}/reviews", json={"verdict": "request_changes", "body": "not yet"})
    )
    for answer in (prepare(repo, n, "squash"), finalize(repo, n, prepared)):
        assert refused(answer, 409, "not_mergeable")["blocked_by"] == ["changes_requested"]
    ok(repo.http.patch(f"{repo.url}/proposals/{n}/reviews/{made['id']}", json={"state": "dismissed"}))
    ok(finalize(repo, n, prepared))


def test_only_what_was_prepared_for_it_and_only_with_the_right_signatures(repo: Repository) -> None:
    n = apart(repo, OURS, THEIRS)
    m = own_branch(repo, "other", {"other": b"1\n"})
    prepared = ok(prepare(repo, n, "squash"))
    body = merges.signed(repo, prepared)
    one = f"{repo.url}/proposals/{n}/merge-finalize"
    assert finalize(repo, m, prepared).status_code == 404
    assert repo.http.post(f"{repo.url}/seals/finalize", json=body).status_code == 404
    assert repo.http.post(one, json=body | {"signatures": []}).status_code == 422
    wrong = b64u(bytes(64))
    assert repo.http.post(one, json=body | {"signatures": [wrong]}).status_code == 422
    assert repo.http.post(one, json=body | {"prepare_id": "0" * 64}).status_code == 404
    assert repo.get(f"/proposals/{n}")["state"] == "open"
    ok(repo.http.post(one, json=body))


def test_what_is_stacked_on_a_squashed_branch_conflicts_only_where_main_does(repo: Repository) -> None:
    n = apart(repo, OURS, {"page": put(5, b"FIVE")}, {"page": put(5, b"5 again")})
    repo.branch("upper", str(repo.head("topic")))
    repo.seal({"page": put(5, b"upper")}, branch="upper")
    m = propose(repo, "upper", "topic")
    merge(repo, n, "squash", delete_branch=True)
    assert repo.http.get(f"{repo.url}/refs/branch/topic").status_code == 404
    upper = repo.get(f"/proposals/{m}")
    assert (upper["base"], upper["state"]) == ("main", "open"), "it was based on what is merged now"
    merge(repo, m, "squash")
    assert files(repo)["page"] == put(5, b"upper", put(1, b"ONE"))


def test_delete_branch_keeps_one_with_unsealed_edits_and_the_default(repo: Repository) -> None:
    (first,) = repo.seal({"page": PAGE})
    repo.branch("release", first)
    repo.seal({"a": b"1\n"})
    n = propose(repo, "main", "release")
    merge(repo, n, delete_branch=True)
    assert repo.head() is not None


def test_merging_closes_the_issues_that_the_text_names(repo: Repository) -> None:
    issue = ok(repo.http.post(f"{repo.url}/issues", json={"title": "broken"}))["number"]
    (first,) = repo.seal({"page": PAGE})
    repo.branch("topic", first)
    repo.seal(THEIRS, branch="topic")
    n = propose(repo, body=f"fixes #{issue}")
    merge(repo, n)
    assert repo.get(f"/issues/{issue}")["state"] == "closed"


def test_live_edits_of_the_base_are_carried_over_once(repo: Repository) -> None:
    n = apart(repo, {}, {"page": put(9, b"NINE")})
    batch = repo.edit(repo.owner.key, "live.txt", b"live\n")
    answers = ok(repo.http.post(f"{repo.url}/branches/main/live/updates", json=batch))["answers"]
    assert answers[0]["result"] == "ok", answers
    merge(repo, n, "squash")
    asked = {"device_key_id": repo.owner.key.id}
    rows = ok(repo.http.post(f"{repo.url}/branches/main/live/bootstrap", json=asked))["rows"]
    assert {row[0]: row[1] for row in rows} == {"page": "text", "live.txt": "text"}
    assert "live.txt" not in files(repo)


def test_update_branch_brings_the_base_and_changes_no_state(repo: Repository) -> None:
    n = apart(repo, OURS, THEIRS)
    base, head = repo.head(), repo.head("topic")
    body = {"device_key_id": repo.owner.key.id}
    one = f"{repo.url}/proposals/{n}/update-branch"
    prepared = ok(repo.http.post(one, json=body))
    assert (prepared["strategy"], prepared["base_seal"], prepared["head_seal"]) == ("update", base, head)
    assert finalize(repo, n, prepared).status_code == 404, "it is not a merge of the proposal"
    done = ok(repo.http.post(f"{one}/finalize", json=merges.signed(repo, prepared)))
    assert (done["state"], done["version"], done["merge_state"] in ("clean", "unknown")) == ("open", 2, True)
    assert files(repo, "topic") == BOTH
    assert repo.head() == base
    assert payload(repo, str(repo.head("topic"))).parents == [head]
    found = refused(repo.http.post(one, json=body), 409, "not_mergeable")
    assert found["blocked_by"] == ["up_to_date"]
    merge(repo, n)
    assert files(repo) == BOTH


def preview(repo: Repository, **more: Any) -> httpx.Response:
    body = {"base": "main", "head": "topic", **more}
    return repo.http.post(f"{repo.url}/merge-preview", json=body)


def test_the_guarded_merge_closes_the_proposal_of_the_same_seal(repo: Repository) -> None:
    n = apart(repo, {"ours": b"1\n"}, {"theirs": b"1\n"})
    base, head = repo.head(), repo.head("topic")
    shown = ok(preview(repo))
    assert (shown["mergeable"], shown["conflicts"], shown["files"]) == (True, [], ["theirs"])
    key = repo.owner.key
    body = {
        "preview_id": shown["preview_id"],
        "device_key_id": key.id,
        "signature": b64u(key.sign(unb64u(shown["bytes"]))),
    }
    answer = repo.http.post(f"{repo.url}/merge", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["parents"] == [base, head]
    found = repo.get(f"/proposals/{n}")
    assert (found["state"], found["merged_seal"]) == ("merged", answer.json()["id"])
    assert repo.http.post(f"{repo.url}/merge", json=body).json()["id"] == answer.json()["id"]


def test_a_preview_of_a_conflict_and_one_whose_base_moved(repo: Repository) -> None:
    apart(repo, {"page": put(1, b"ONE")}, {"page": put(9, b"NINE")})
    shown = ok(preview(repo))
    assert (shown["mergeable"], shown["conflicts"], shown["bytes"]) == (False, ["page"], None)
    repo.branch("other", str(repo.head()))
    repo.seal({"other": b"1\n"}, branch="other")
    shown = ok(preview(repo, head="other"))
    repo.seal({"more": b"1\n"})
    key = repo.owner.key
    body = {
        "preview_id": shown["preview_id"],
        "device_key_id": key.id,
        "signature": b64u(key.sign(unb64u(shown["bytes"]))),
    }
    refused(repo.http.post(f"{repo.url}/merge", json=body), 409, "base_moved")
