"""Protected branches: what the rules refuse, and that a write that waited meets them too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core import branch_pattern
from localstore.core.model.protection import Protection
from localstore.core.obstacles import Standing, find_blockers
from tests.relay.conftest import Account, Relay
from tests.relay.histories import create, ok
from tests.relay.rights.waiting import Team, behind

REFUSED = 409
UNTOUCHED = ("_payload", "_bootstrap", "_pack")  # these change no ref and no frontier


@pytest.fixture
def team(relay: Relay) -> Iterator[Team]:
    made = Team(relay, public=False)
    yield made
    made.close()


def _protect(team: Team, pattern: str = "**", **flags: object) -> object:
    return ok(team.http.put(f"{team.repo.url}/protections/{pattern.replace('/', '%2F')}", json=flags))


def _writes(team: Team) -> list[Callable[[], object]]:
    return [
        one
        for one in team.writes()
        if not one.__qualname__.startswith(tuple(f"Team.{n}." for n in UNTOUCHED))
    ]


@pytest.mark.parametrize("flag", ["lock_writes", "require_review", "require_checks"])
def test_of_the_writes_that_waited_none_lands(team: Team, flag: str) -> None:
    writes = _writes(team) + _writes_again(team)
    assert len(writes) >= 50
    rows, heads = team.rows(), team.heads()
    _, answers = behind(team, lambda: _protect(team, **{flag: True}), writes)
    assert {one.status_code for one in answers} == {REFUSED}
    assert {one.json()["code"] for one in answers} == {"branch_protected"}
    assert team.heads() == heads
    grown = {k for k, n in team.rows().items() if n != rows[k]} - {"protection"}
    assert not grown


def _writes_again(team: Team) -> list[Callable[[], object]]:
    """Creations of branches once more, so that there are fifty."""
    return [team._ref(100 + n) for n in range(10)]


def test_refusals_name_the_way_out(team: Team) -> None:
    _protect(team, "b*", require_review=True)
    update = team._update(0)().json()
    assert update["code"] == "branch_protected" and update["rules"] == ["require_review"]
    assert (
        "svc repo branch NAME --from b0" in update["detail"] and "svc switch NAME --merge" in update["detail"]
    )
    assert team._prepare(1)().json()["code"] == "branch_protected"
    deleted = team.http.delete(f"{team.repo.url}/refs/branch/b2")
    assert deleted.status_code == REFUSED and deleted.json()["code"] == "branch_protected"
    refs = ok(team.http.get(f"{team.repo.url}/refs"))["items"]
    assert {one["name"] for one in refs if one["protected"]} == {f"b{n}" for n in range(6)}
    assert team.http.delete(f"{team.repo.url}/protections/b*").status_code == 204
    assert team._update(0)().status_code == 200


def test_any_rule_forbids_deletion_and_only_that(team: Team) -> None:
    _protect(team, "b0")
    assert team.http.delete(f"{team.repo.url}/refs/branch/b0").json()["code"] == "branch_protected"
    assert team._update(0)().status_code == 200


@pytest.mark.parametrize("pattern", ["*a" * 11, "a..b", "a b", "x" * 5000, "a\u202eb"])
def test_pattern_bombs_are_refused(team: Team, pattern: str) -> None:
    answer = team.http.put(f"{team.repo.url}/protections/{pattern}", json={})
    assert answer.status_code in (400, 414, 422)


def test_only_the_owner_protects(team: Team) -> None:
    assert team.work.put(f"{team.repo.url}/protections/main", json={}).status_code == 403
    assert ok(team.work.get(f"{team.repo.url}/protections"))["items"] == []


@given(st.lists(st.sampled_from(["a", "b", "/", "*", "**"]), max_size=8), st.text("ab/", max_size=8))
def test_patterns_match_as_their_regular_expression(tokens: list[str], name: str) -> None:
    pattern = re.sub(r"\*{3,}", "**", "".join(tokens))
    wide = re.sub(r"\*\*|\*", lambda run: "(?s:.*)" if run[0] == "**" else "[^/]*", pattern)
    assert branch_pattern.matches(pattern, name) == bool(re.fullmatch(wide, name))


def test_the_strictest_union_holds() -> None:
    two = [Protection(pattern="**", required_approvals=2), Protection(pattern="main", fresh_approvals=True)]
    assert find_blockers(two, Standing(approvals=2, fresh=1)) == ["review_required"]
    assert find_blockers(two, Standing(approvals=2, fresh=2)) == []
    assert find_blockers(two, Standing(approvals=2, fresh=2, refused=1)) == ["changes_requested"]
    assert find_blockers([Protection(pattern="x", lock_writes=True)], Standing()) == ["lock_writes"]


def test_who_sees_the_rules_hears_of_their_changes(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    """A reader of a public repository too."""
    ann = account()
    owner, stranger = client(ann), client(account())
    repo = create(owner, ann, "told", visibility="public")
    ok(owner.put(f"{repo.url}/protections/main", json={"lock_writes": True}))
    assert owner.delete(f"{repo.url}/protections/main").status_code == 204
    assert ok(stranger.get(f"{repo.url}/protections"))["items"] == []
    heard = ok(stranger.post("/api/v1/sync/poll", json={"repos": [repo.id], "since": 0}))["events"]
    assert [one["kind"] for one in heard if one["kind"].startswith("protection.")] == [
        "protection.set",
        "protection.clear",
    ]
