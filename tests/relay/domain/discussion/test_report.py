"""Security reports: in confidence, to the owner, who decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from localstore.core.model import limits
from tests.patience import PATIENCE
from tests.relay.conftest import Account
from tests.relay.histories import Repository, create, ok

WISH = {"title": "Keys in the log", "body": "Line 3 has one.", "severity": "high"}


@pytest.fixture
def repo(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> Repository:
    who = account()
    return create(client(who), who, "told", visibility="public")


@pytest.fixture
def finder(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> httpx.Client:
    return client(account())


def reported(repo: Repository, finder: httpx.Client, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(finder.post(f"{repo.url}/reports", json={**WISH, **more}))
    return made


def decide(repo: Repository, made: dict[str, Any], decision: str) -> httpx.Response:
    return repo.http.post(f"{repo.url}/reports/{made['id']}/decision", json={"decision": decision})


def test_a_reader_reports_and_the_owner_alone_reads(repo: Repository, finder: httpx.Client) -> None:
    made = reported(repo, finder)
    assert (made["state"], made["severity"], made["advisory_id"]) == ("new", "high", None)
    assert repo.get("/reports")["items"] == [made]
    assert repo.get("/reports", state="triaged")["items"] == []
    assert ok(finder.get(f"{repo.url}/reports"))["items"] == [made], "its own"
    until = time.monotonic() + PATIENCE
    while not (rows := ok(repo.http.get("/api/v1/inbox"))["items"]) and time.monotonic() < until:
        time.sleep(0.02)
    assert [one["reason"] for one in rows] == ["report"]
    (told, *_) = repo.get("/audit")["items"]
    assert (told["action"], told["data"]["id"]) == ("report.create", made["id"])
    assert "Keys" not in str(told)
    other = reported(repo, finder)
    ok(decide(repo, made, "triaged"))
    assert len(ok(repo.http.get("/api/v1/inbox"))["items"]) == 1, "the other one is new"
    ok(decide(repo, other, "dismissed"))
    assert ok(repo.http.get("/api/v1/inbox"))["items"] == []


def test_who_reported_reads_and_hears_and_nobody_else(
    repo: Repository,
    finder: httpx.Client,
    account: Callable[..., Account],
    client: Callable[..., httpx.Client],
) -> None:
    other = client(account())
    made = reported(repo, finder)
    theirs = reported(repo, other, title="Another")
    assert ok(finder.get(f"{repo.url}/reports"))["items"] == [made]
    assert ok(other.get(f"{repo.url}/reports"))["items"] == [theirs]
    assert ok(client(account()).get(f"{repo.url}/reports"))["items"] == []
    assert client().get(f"{repo.url}/reports").status_code == 401
    assert (
        finder.post(f"{repo.url}/reports/{made['id']}/decision", json={"decision": "triaged"}).status_code
        == 403
    )
    done = ok(decide(repo, made, "dismissed"))
    until = time.monotonic() + PATIENCE
    while not (rows := ok(finder.get("/api/v1/inbox"))["items"]) and time.monotonic() < until:
        time.sleep(0.02)
    (row,) = rows
    assert (row["reason"], row["event"], row["actor"]["id"]) == ("author", "report.decide", repo.owner.id)
    assert ok(finder.get(f"{repo.url}/reports", params={"state": "dismissed"}))["items"] == [done]
    assert "Keys" not in str(rows)
    assert ok(other.get("/api/v1/inbox"))["items"] == []
    ok(repo.http.patch(repo.url, json={"visibility": "private"}))
    assert finder.get(f"{repo.url}/reports").status_code == 404
    assert ok(finder.get("/api/v1/inbox", params={"all": "1"}))["items"] == []


def test_a_report_is_decided_by_its_states(repo: Repository, finder: httpx.Client) -> None:
    made = reported(repo, finder)
    assert ok(decide(repo, made, "triaged"))["state"] == "triaged"
    assert ok(decide(repo, made, "triaged"))["state"] == "triaged"
    published = decide(repo, made, "published")
    assert (published.status_code, published.json()["code"]) == (501, "edition_lacks_feature")
    done = ok(decide(repo, made, "dismissed"))
    assert done["state"] == "dismissed" and done["decided_at"]
    for decision in ("triaged", "published"):
        answer = decide(repo, made, decision)
        assert answer.status_code in (409, 501), decision
    assert decide(repo, made, "triaged").json()["state"] == "dismissed"
    assert repo.get("/reports", state="dismissed")["items"] == [done]
    assert decide(repo, made, "published").json()["code"] == "report_decided"


def test_a_report_of_another_repository_is_missing(repo: Repository, finder: httpx.Client) -> None:
    other = create(repo.http, repo.owner, "other")
    made = reported(repo, finder)
    assert decide(other, made, "triaged").status_code == 404
    assert decide(repo, {"id": "0" * 32}, "triaged").status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"title": ""}, "/title"),
        ({"title": "two\nlines"}, "/title"),
        ({"title": "right\u202eleft"}, "/title"),
        ({"title": "t" * 257}, "/title"),
        ({"body": " \n"}, "/body"),
        ({"body": "nul\0"}, "/body"),
        ({"body": "\u00e4" * 40_000}, "/body"),
        ({"severity": "terrible"}, "/severity"),
    ],
)
def test_what_no_report_can_be_is_refused(
    repo: Repository, finder: httpx.Client, body: dict[str, Any], pointer: str
) -> None:
    answer = finder.post(f"{repo.url}/reports", json={**WISH, **body})
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["pointer"] == pointer


@pytest.mark.usefixtures("rate_limits")
def test_reports_count_among_the_posts_of_an_account(
    repo: Repository, finder: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "POSTS_STRANGER", 2)
    reported(repo, finder)
    ok(finder.post(f"{repo.url}/issues", json={"title": "x"}))
    assert finder.post(f"{repo.url}/reports", json=WISH).status_code == 429


def test_lists_go_on_by_cursor_and_refuse_a_forged_one(repo: Repository, finder: httpx.Client) -> None:
    made = [reported(repo, finder)["id"] for _ in range(3)]
    first = repo.get("/reports", limit=2)
    rest = repo.get("/reports", limit=2, cursor=first["next_cursor"])
    assert [one["id"] for one in first["items"] + rest["items"]] == made[::-1]
    forged = repo.http.get(f"{repo.url}/reports", params={"cursor": "WzFd"})
    assert forged.status_code == 422
