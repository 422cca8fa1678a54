"""Signed merges that wait: what lands them, what drops them, and who is asked again."""

from __future__ import annotations

import time
from typing import Any

import httpx
import msgspec
import pytest
from sqlalchemy import delete, update

from localstore.core.model import limits
from localstore.core.model.base import Page
from localstore.core.model.inbox import InboxItem
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.db.seal import PREPARED
from relay.domain.merging import auto
from relay.domain.sealing import seal
from tests.patience import PATIENCE
from tests.relay import merges
from tests.relay.domain.checks.runs import run
from tests.relay.domain.merging.test_merge_races import BOTH, OURS, Place, at_once, landed, place
from tests.relay.histories import ok
from tests.relay.merges import files, merge, propose
from tests.relay.rights.waiting import Write
from tests.relay.world import name

__all__ = ["place"]


def enable(place: Place, n: int | None = None, **more: Any) -> httpx.Response:
    n = place.n if n is None else n
    prepared = ok(merges.prepare(place.repo, n, "squash", auto=True))
    body = merges.signed(place.repo, prepared, **more)
    return place.http.put(f"{place.repo.url}/proposals/{n}/auto-merge", json=body)


def patch(place: Place, **body: Any) -> None:
    ok(place.http.patch(f"{place.repo.url}/proposals/{place.n}", json=body))


def waiting(place: Place) -> dict[str, Any]:
    """A draft whose merge is signed and waits."""
    patch(place, draft=True)
    shown: dict[str, Any] = ok(enable(place))
    assert (shown["state"], shown["auto_merge"]["strategy"]) == ("open", "squash")
    assert shown["auto_merge"]["by"]["id"] == place.repo.owner.id
    return shown


def attempt(place: Place) -> dict[str, Any]:
    """The proposal after the relay tried; the job of the relay itself may have been first."""
    place.relay.run(auto.land_all(place.relay.node, place.repo.id))
    shown: dict[str, Any] = place.repo.get(f"/proposals/{place.n}")
    return shown


def asked(place: Place) -> list[str]:
    """Reasons in the signer's inbox that are about the proposal."""
    node = place.relay.node
    while place.relay.run(node.followers.handle_next("inbox")):
        pass
    items = ok(place.http.get("/api/v1/inbox"))["items"]
    return [one["reason"] for one in items if one["subject"]["number"] == place.n]


def test_who_took_part_reads_in_the_inbox_that_it_was_merged(place: Place) -> None:
    ok(place.work.post(f"{place.repo.url}/issues/{place.n}/comments", json={"body": "Good."}))
    ok(place.merge())
    while place.relay.run(place.relay.node.followers.handle_next("inbox")):
        pass
    answer = place.work.get("/api/v1/inbox")
    page = msgspec.json.decode(answer.content, type=Page[InboxItem])
    (item,) = page.items
    subject = item.subject
    assert (item.event, subject.number, subject.state, subject.merged) == (
        "proposal.merge",
        place.n,
        "closed",
        True,
    )


def dropped(place: Place) -> str:
    """The reason of the drop. Nothing landed, nothing is left."""
    shown = attempt(place)
    assert (shown["auto_merge"], shown["merged_seal"]) == (None, None)
    items = place.repo.get(f"/issues/{place.n}/timeline", limit=100)["items"]
    (reason,) = (one["data"]["reason"] for one in items if one["kind"] == "proposal.auto_drop")
    assert asked(place) == ["ready_to_merge"]
    return str(reason)


def write(place: Place, statement: Any, **values: Any) -> None:
    async def act() -> None:
        async with place.relay.node.db.write() as tx:
            await tx.run(statement, **values)

    place.relay.run(act())


def test_a_draft_lands_once_it_is_ready(place: Place) -> None:
    waiting(place)
    assert attempt(place)["state"] == "open"
    patch(place, draft=False)
    deadline = time.monotonic() + PATIENCE
    while place.repo.get(f"/proposals/{place.n}")["state"] == "open":  # by follower and job
        assert time.monotonic() < deadline
    shown = place.repo.get(f"/proposals/{place.n}")
    assert (shown["state"], shown["merged_seal"], shown["auto_merge"]) == ("merged", place.repo.head(), None)
    assert files(place.repo)["page"] == BOTH
    made = merges.payload(place.repo, shown["merged_seal"])
    assert made.provenance.account_id == place.repo.owner.id
    assert asked(place) == []


def test_it_waits_for_a_check_and_then_for_an_approval(place: Place) -> None:
    ok(place.http.put(f"{place.repo.url}/checks/ci/test"))
    rule = {"require_checks": True, "required_approvals": 1}
    ok(place.http.put(f"{place.repo.url}/protections/main", json=rule))
    shown = ok(enable(place))
    assert shown["blocked_by"] == ["review_required", "checks_required"]
    assert shown["needs"] == {"approvals": 1, "missing": 1, "checks": True}
    run(place.repo, str(place.head), conclusion="success")
    assert attempt(place)["blocked_by"] == ["review_required"]
    review = {"verdict": "approve", "body": ""}
    ok(place.work.post(f"{place.repo.url}/proposals/{place.n}/reviews", json=review))
    assert attempt(place)["state"] == "merged"


def test_what_is_ready_lands_at_once_and_deletes_its_branch(place: Place) -> None:
    ok(enable(place, delete_branch=True))
    assert attempt(place)["state"] == "merged"
    assert place.http.get(f"{place.repo.url}/refs/branch/topic").status_code == 404


def test_the_same_request_again_changes_nothing(place: Place) -> None:
    patch(place, draft=True)
    body = merges.signed(place.repo, ok(merges.prepare(place.repo, place.n, "squash", auto=True)))
    url = f"{place.repo.url}/proposals/{place.n}/auto-merge"
    first = ok(place.http.put(url, json=body))
    assert ok(place.http.put(url, json=body))["auto_merge"] == first["auto_merge"]
    assert place.http.post(f"{url.removesuffix('auto-merge')}merge-finalize", json=body).status_code == 404


def test_a_new_one_takes_the_place_of_the_old(place: Place) -> None:
    waiting(place)
    ok(enable(place, delete_branch=True))
    patch(place, draft=False)
    assert attempt(place)["state"] == "merged"
    assert place.http.get(f"{place.repo.url}/refs/branch/topic").status_code == 404


def test_turned_off_it_does_not_land(place: Place) -> None:
    waiting(place)
    url = f"{place.repo.url}/proposals/{place.n}/auto-merge"
    assert ok(place.work.delete(url))["auto_merge"] is None
    assert ok(place.work.delete(url))["auto_merge"] is None
    patch(place, draft=False)
    assert attempt(place)["state"] == "open"
    assert asked(place) == []


@pytest.mark.parametrize("branch", ["main", "topic"])
def test_a_push_drops_it(place: Place, branch: str) -> None:
    waiting(place)
    push = place.pushing(branch)
    ok(push())
    assert dropped(place) == ("base_moved" if branch == "main" else "head_moved")


def test_another_merge_into_the_base_drops_it(place: Place) -> None:
    waiting(place)
    place.repo.branch("second", str(place.base))
    place.repo.seal({"other": b"1\n"}, branch="second")
    merge(place.repo, propose(place.repo, "second"))
    assert dropped(place) == "base_moved"


def test_closing_ends_it_in_silence(place: Place) -> None:
    waiting(place)
    patch(place, state="closed")
    patch(place, state="open", draft=False)
    shown = attempt(place)
    assert (shown["state"], shown["auto_merge"]) == ("open", None)


def test_a_revoked_key_drops_it(place: Place) -> None:
    waiting(place)
    keys = tables["device_key"]
    write(place, update(keys).where(keys.c.id == place.repo.owner.key.id).values(revoked_at=now_ms()))
    place.relay.run(auto.land_all(place.relay.node, place.repo.id))
    write(place, update(keys).where(keys.c.id == place.repo.owner.key.id).values(revoked_at=None))
    patch(place, draft=False)
    assert dropped(place) == "sign_in_required"


def test_the_end_of_its_session_does_not(place: Place) -> None:
    waiting(place)
    sessions = tables["session"]
    mine = sessions.c.account_id == place.repo.owner.id
    ok(place.work.patch(f"{place.repo.url}/proposals/{place.n}", json={"draft": False}))
    write(place, update(sessions).where(mine).values(revoked_at=now_ms()))
    place.relay.run(auto.land_all(place.relay.node, place.repo.id))
    write(place, update(sessions).where(mine).values(revoked_at=None))
    assert place.repo.get(f"/proposals/{place.n}")["state"] == "merged"


def test_a_member_who_was_removed_lands_nothing(place: Place) -> None:
    patch(place, draft=True)
    prepared = ok(merges.prepare(place.theirs, place.n, "squash", auto=True))
    body = merges.signed(place.theirs, prepared)
    ok(place.work.put(f"{place.repo.url}/proposals/{place.n}/auto-merge", json=body))
    members = tables["collaborator"]
    write(place, delete(members).where(members.c.account_id == place.other.id))
    patch(place, draft=False)
    shown = attempt(place)
    assert (shown["state"], shown["auto_merge"]) == ("open", None)
    assert files(place.repo)["page"] == OURS["page"]


def test_a_reader_and_a_stranger_may_not(place: Place) -> None:
    url = f"{place.repo.url}/proposals/{place.n}/auto-merge"
    reader = place.relay.account(name())
    with place.relay.client(reader) as http:
        assert http.delete(url).status_code == 404
        merges.grant(place.relay, place.repo, reader, "triage")
        assert http.delete(url).status_code == 403


def test_what_was_prepared_lasts_longer_than_other_prepares(place: Place) -> None:
    waiting(place)

    async def kept() -> Any:
        async with place.relay.node.db.read() as tx:
            (found,) = await tx.all(
                PREPARED,
                prepare_id=await tx.value(
                    tables["auto_merge"]
                    .select()
                    .with_only_columns(tables["auto_merge"].c.prepare_id)
                    .where(tables["auto_merge"].c.repo_id == place.repo.id)
                ),
            )
            return found

    row = place.relay.run(kept())
    assert row[1] == "auto"
    assert row[-1] > now_ms() + auto.KEPT - 3600_000


def test_it_ends_after_its_days_and_its_signer_is_asked_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether something blocks it still, or nothing does."""
    waiting(place)
    start, days = now_ms(), [0.0]
    for module in (auto, seal):
        monkeypatch.setattr(module, "now_ms", lambda: start + int(days[0] * 24 * 3600_000))
    days[0] = limits.AUTO_MERGE_DAYS - 0.1
    assert attempt(place)["auto_merge"] is not None
    days[0] = limits.AUTO_MERGE_DAYS + 0.1
    assert dropped(place) == "prepare_expired"


@pytest.mark.parametrize("ready_first", [True, False])
def test_a_rule_of_the_base_and_the_last_condition_at_once(place: Place, ready_first: bool) -> None:
    """Either order: all of the merge landed, or it waits for the rule and lands once that is gone."""
    waiting(place)
    rule = f"{place.repo.url}/protections/main"
    writes: list[Write] = [_ready(place), lambda: place.http.put(rule, json={"required_approvals": 1})]
    answers = at_once(place, *(writes if ready_first else writes[::-1]))
    assert all(one.is_success for one in answers)
    shown = attempt(place)
    merged = landed(place, httpx.Response(200 if shown["state"] == "merged" else 409))
    if not ready_first:
        assert not merged, "the rule was there before the condition"
    if not merged:
        assert shown["auto_merge"]["strategy"] == "squash"
        assert shown["blocked_by"] == ["review_required"]
        assert place.http.delete(rule).status_code == 204
        assert landed(place, httpx.Response(200 if attempt(place)["state"] == "merged" else 409))


def _ready(place: Place) -> Write:
    return lambda: place.http.patch(f"{place.repo.url}/proposals/{place.n}", json={"draft": False})


RIVALS = {
    "a push to the base": lambda place: place.pushing("main"),
    "a push to the head": lambda place: place.pushing("topic"),
    "closing": lambda place: (
        lambda: place.work.patch(f"{place.repo.url}/proposals/{place.n}", json={"state": "closed"})
    ),
}


@pytest.mark.parametrize("ready_first", [True, False])
@pytest.mark.parametrize("what", RIVALS)
def test_the_last_condition_and_a_rival_at_once(place: Place, what: str, ready_first: bool) -> None:
    """Either order: all of the merge landed, or nothing of it and it waits no more."""
    waiting(place)
    writes = [_ready(place), RIVALS[what](place)]
    answers = at_once(place, *(writes if ready_first else writes[::-1]))
    shown = attempt(place)
    assert shown["auto_merge"] is None
    ready, rival = answers if ready_first else answers[::-1]
    assert ready.is_success
    done = httpx.Response(200 if shown["state"] == "merged" else 409)
    if shown["state"] == "merged":
        assert rival.status_code in (200, 201, 409), rival.text
    else:
        assert rival.is_success
    landed(place, done)


def test_two_that_wait_for_one_base_land_one(place: Place) -> None:
    waiting(place)
    place.repo.branch("second", str(place.base))
    place.repo.seal({"other": b"1\n"}, branch="second")
    second = propose(place.repo, "second", draft=True)
    ok(enable(place, second))
    for n in (place.n, second):
        ok(place.http.patch(f"{place.repo.url}/proposals/{n}", json={"draft": False}))
    attempt(place)
    states = sorted(place.repo.get(f"/proposals/{n}")["state"] for n in (place.n, second))
    assert states == ["merged", "open"]
    assert [place.repo.get(f"/proposals/{n}")["auto_merge"] for n in (place.n, second)] == [None, None]
