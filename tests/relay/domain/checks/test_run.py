"""Runs: attempts of checks on seals, recorded by writers, final once completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import select

from localstore.core.model import limits
from localstore.core.model.run import RunCreate
from localstore.core.validation import check_members
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.domain.checks.runs import checks, refused, run, sealed
from tests.relay.histories import Repository, compared, create, ok

People = tuple[Callable[..., Account], Callable[..., httpx.Client]]


@pytest.fixture
def people(account: Callable[..., Account], client: Callable[..., httpx.Client]) -> People:
    return account, client


@pytest.fixture
def repo(people: People) -> Iterator[Repository]:
    account, client = people
    who = account()
    yield create(client(who), who, "checked", visibility="public")


def test_a_run_goes_from_queued_to_in_progress_to_completed(repo: Repository) -> None:
    seal = sealed(repo)
    made = run(repo, seal, details_url="https://ci.example/1?a=b#c")
    assert (made["attempt"], made["status"], made["conclusion"]) == (1, "queued", None)
    assert (made["branch"], made["reported_by"]["id"]) == ("main", repo.owner.id)
    assert made["started_at"] is made["completed_at"] is None
    url = f"{repo.url}/runs/{made['id']}"
    begun = ok(repo.http.patch(url, json={"status": "in_progress", "summary": "half way"}))
    assert begun["started_at"]
    assert begun["summary"] == "half way"
    assert begun["details_url"] == "https://ci.example/1?a=b#c"
    done = ok(repo.http.patch(url, json={"conclusion": "success"}))
    assert (done["status"], done["conclusion"], done["started_at"]) == (
        "completed",
        "success",
        begun["started_at"],
    )
    assert done["completed_at"]
    assert done == repo.get(f"/runs/{made['id']}")


def test_what_is_completed_stays_and_a_repeat_is_a_new_attempt(repo: Repository) -> None:
    seal = sealed(repo)
    made = run(repo, seal, conclusion="failure", summary="2 failed")
    assert made["status"] == "completed"
    url = f"{repo.url}/runs/{made['id']}"
    for answer in (
        repo.http.patch(url, json={"conclusion": "success"}),
        repo.http.patch(url, json={"summary": "never mind"}),
        repo.http.post(f"{url}/cancel"),
    ):
        assert refused(answer, 409, "run_completed")["attempt"] == 1
    again = ok(repo.http.post(f"{url}/rerun"))
    assert (again["attempt"], again["status"], again["summary"]) == (2, "queued", None)
    assert refused(repo.http.post(f"{url}/rerun"), 409, "run_pending")["run"] == again["id"]
    third = run(repo, seal, "CI/Test", conclusion="success")
    assert third["attempt"] == 3
    assert [one["attempt"] for one in repo.get("/runs")["items"]] == [3, 2, 1]
    (shown,) = checks(repo, seal)["items"]
    assert (shown["run_id"], shown["attempt"], shown["state"]) == (third["id"], 3, "pass")
    # What was the newest attempt once does not count, however it ends.
    ok(repo.http.post(f"{repo.url}/runs/{again['id']}/cancel"))
    assert checks(repo, seal)["rollup"] == {"total": 1, "passed": 1, "failed": 0, "pending": 0}


def test_many_at_once_are_attempts_one_after_the_other(repo: Repository) -> None:
    seal = sealed(repo)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: run(repo, seal)["attempt"], range(40)))
    assert sorted(made) == list(range(1, 41))
    assert checks(repo, seal)["rollup"]["total"] == 1


def test_of_two_that_complete_a_run_one_does(repo: Repository) -> None:
    for _ in range(5):
        url = f"{repo.url}/runs/{run(repo, sealed(repo))['id']}"
        with ThreadPoolExecutor(4) as pool:
            words = ["success", "failure", "neutral", "timed_out"]
            answers = list(
                pool.map(lambda word, to=url: repo.http.patch(to, json={"conclusion": word}), words)
            )
        assert sorted(one.status_code for one in answers) == [200, 409, 409, 409]
        (won,) = [one.json()["conclusion"] for one in answers if one.is_success]
        assert ok(repo.http.get(url))["conclusion"] == won


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"status": "completed"}, "/conclusion"),
        ({"status": "queued", "conclusion": "success"}, "/status"),
        ({"status": "in_progress", "conclusion": "success"}, "/status"),
        ({"conclusion": "fine"}, "/conclusion"),
        ({"status": "running"}, "/status"),
        ({"name": ""}, "/name"),
        ({"name": "a" * 101}, "/name"),
        ({"name": "two\nlines"}, "/name"),
        ({"name": "right\u202eleft"}, "/name"),
        ({"name": "../x"}, "/name"),
        ({"name": "a//b"}, "/name"),
        ({"name": "a/"}, "/name"),
        ({"seal_id": "main"}, "/seal_id"),
        ({"seal_id": "0" * 64}, "/seal_id"),
        ({"summary": "s" * 4001}, "/summary"),
        ({"summary": "nul\0"}, "/summary"),
        ({"details_url": "javascript:alert(1)"}, "/details_url"),
        ({"details_url": "JavaScript:alert(1)"}, "/details_url"),
        ({"details_url": "data:text/html,x"}, "/details_url"),
        ({"details_url": "//ci.example"}, "/details_url"),
        ({"details_url": "https://github.com@evil.example/"}, "/details_url"),
        ({"details_url": "https://evil.example\\@good.example/"}, "/details_url"),
        ({"details_url": "https://ci.example/\x1b]8;;x"}, "/details_url"),
        ({"details_url": "https://ci.example/\u202egnp"}, "/details_url"),
        ({"details_url": "https://ci.example/\n"}, "/details_url"),
        ({"details_url": "https://ci.example/" + "a" * 65536}, "/details_url"),
    ],
)
def test_what_no_run_can_be_is_refused_and_nothing_is_there(
    repo: Repository, body: dict[str, Any], pointer: str
) -> None:
    asked = {"name": "ci", "seal_id": sealed(repo), **body}
    problem = refused(repo.http.post(f"{repo.url}/runs", json=asked), 422, "invalid")
    assert problem["errors"][0]["pointer"] == pointer
    assert repo.get("/runs")["items"] == []
    assert repo.get("/checks")["items"] == []


def test_a_run_does_not_go_back(repo: Repository) -> None:
    made = run(repo, sealed(repo), status="in_progress")
    answer = repo.http.patch(f"{repo.url}/runs/{made['id']}", json={"status": "queued"})
    assert "does not go back" in refused(answer, 422, "invalid")["detail"]


def test_text_of_strangers_is_stored_as_it_is(repo: Repository) -> None:
    odd = "\x1b[2Jcleared\u202e <script>alert(1)</script>\r\n\u0000".replace("\u0000", "")
    assert run(repo, sealed(repo), summary=odd)["summary"] == odd


@example("\xa0")
@given(st.text(st.characters(codec="utf-8"), max_size=120) | st.from_regex(r"[a-z./]{1,20}", fullmatch=True))
def test_a_name_of_a_check_is_a_plain_path(name: str) -> None:
    try:
        check_members(RunCreate(name=name, seal_id="0" * 64))
    except Exception:
        return
    assert name == name.strip()
    assert name.isprintable() or all(ord(char) > 127 for char in name if not char.isprintable())
    assert not {"", ".", ".."} & set(name.split("/"))
    assert 1 <= len(name) <= limits.CHECK_NAME_CHARS


def test_runs_are_listed_by_what_they_are_of(repo: Repository) -> None:
    first = sealed(repo)
    repo.branch("side", first)
    second = sealed(repo, "side")
    run(repo, first, "lint", conclusion="success")
    run(repo, first, "test", conclusion="failure")
    run(repo, second, "test", status="in_progress")

    def names(**query: str) -> list[tuple[str, str]]:
        return [(one["name"], one["branch"]) for one in repo.get("/runs", **query)["items"]]

    assert names() == [("test", "side"), ("test", "main"), ("lint", "main")]
    assert names(seal=first) == [("test", "main"), ("lint", "main")]
    assert names(branch="side") == [("test", "side")]
    assert names(name="TEST") == [("test", "side"), ("test", "main")]
    assert names(status="completed", branch="main") == [("test", "main"), ("lint", "main")]
    assert names(conclusion="success") == [("lint", "main")]
    assert names(branch="none") == []
    newest = repo.get("/runs")["items"][0]["id"]
    assert newest in [one["id"] for one in repo.get("/runs", prefix=newest[:9])["items"]]
    assert [one["id"] for one in repo.get("/runs", prefix=newest)["items"]] == [newest]
    assert repo.get("/runs", prefix="ffff")["items"] == []
    seen: list[str] = []
    cursor: str | None = None
    while True:
        found = repo.get("/runs", limit=1, **({"cursor": cursor} if cursor else {}))
        seen += [one["id"] for one in found["items"]]
        if (cursor := found["next_cursor"]) is None:
            break
    assert seen == [one["id"] for one in repo.get("/runs")["items"]]
    refused(repo.http.get(f"{repo.url}/runs?cursor=forged"), 422, "invalid")
    refused(repo.http.get(f"{repo.url}/runs?status=running"), 422, "invalid")


def test_what_is_not_there_is_not_there(repo: Repository, people: People) -> None:
    account, client = people
    other = account()
    theirs = create(client(other), other, "other")
    foreign = run(theirs, sealed(theirs))["id"]
    for path in ("/runs/none", f"/runs/{foreign}", f"/seals/{'0' * 64}/checks"):
        refused(repo.http.get(repo.url + path), 404, "not_found")
    refused(repo.http.patch(f"{repo.url}/runs/{foreign}", json={"conclusion": "success"}), 404, "not_found")
    asked = {"name": "x", "seal_id": theirs.head()}
    problem = refused(repo.http.post(f"{repo.url}/runs", json=asked), 422, "invalid")
    assert "is not a seal of" in problem["detail"]


def test_writers_record_and_everybody_reads(repo: Repository, people: People) -> None:
    account, client = people
    seal = sealed(repo)
    made = run(repo, seal)
    stranger = client(account())
    for http in (stranger, client(None)):
        assert ok(http.get(f"{repo.url}/runs"))["items"][0]["id"] == made["id"]
        assert ok(http.get(f"{repo.url}/runs/{made['id']}"))["name"] == "ci/test"
        assert ok(http.get(f"{repo.url}/checks"))["items"][0]["last"]["id"] == made["id"]
        assert ok(http.get(f"{repo.url}/seals/{seal}/checks"))["rollup"]["pending"] == 1
    for method, path, body in (
        ("POST", "/runs", {"name": "x", "seal_id": seal}),
        ("PATCH", f"/runs/{made['id']}", {"conclusion": "success"}),
        ("POST", f"/runs/{made['id']}/cancel", None),
        ("POST", f"/runs/{made['id']}/rerun", None),
        ("PUT", "/checks/x", None),
        ("DELETE", "/checks/ci/test", None),
    ):
        refused(stranger.request(method, repo.url + path, json=body), 403, "forbidden")
    ok(repo.http.patch(repo.url, json={"visibility": "private"}))
    missing = compared(stranger.get("/api/v1/repos/00000000000000000000/runs"))
    for path in ("/runs", f"/runs/{made['id']}", "/checks", f"/seals/{seal}/checks"):
        assert compared(stranger.get(repo.url + path)) == missing


def test_an_archived_repository_takes_no_runs(repo: Repository) -> None:
    seal = sealed(repo)
    ok(repo.http.patch(repo.url, json={"archived": True}))
    refused(
        repo.http.post(f"{repo.url}/runs", json={"name": "x", "seal_id": seal}), 409, "repository_archived"
    )
    assert repo.get("/runs")["items"] == []


@pytest.mark.usefixtures("rate_limits")
def test_so_many_runs_and_no_more(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    seal = sealed(repo)
    monkeypatch.setattr(limits, "SEAL_RUNS", 3)
    monkeypatch.setattr(limits, "SEAL_CHECKS", 2)
    run(repo, seal, "a")
    run(repo, seal, "b")
    answer = repo.http.post(f"{repo.url}/runs", json={"name": "c", "seal_id": seal})
    assert "2 checks" in refused(answer, 409, "conflict")["detail"]
    run(repo, seal, "a")
    answer = repo.http.post(f"{repo.url}/runs", json={"name": "b", "seal_id": seal})
    assert "3 runs" in refused(answer, 409, "conflict")["detail"]
    monkeypatch.setattr(limits, "RUNS_A_MINUTE", 3)
    answer = repo.http.post(f"{repo.url}/runs", json={"name": "a", "seal_id": sealed(repo)})
    refused(answer, 429, "rate_limited")
    assert answer.headers["retry-after"]


def test_each_change_is_told_with_what_a_watcher_needs(relay: Relay, repo: Repository) -> None:
    seal = sealed(repo)
    made = run(repo, seal)
    url = f"{repo.url}/runs/{made['id']}"
    ok(repo.http.patch(url, json={"conclusion": "timed_out", "summary": "private words"}))
    again = ok(repo.http.post(f"{url}/rerun"))
    ok(repo.http.post(f"{repo.url}/runs/{again['id']}/cancel"))
    ok(repo.http.put(f"{repo.url}/checks/x"))
    repo.http.delete(f"{repo.url}/checks/x")
    event = tables["event"]

    async def read() -> list[Any]:
        async with relay.node.db.read() as tx:
            wanted = select(event.c.kind, event.c.data, event.c.audience).where(event.c.repo_id == repo.id)
            return await tx.all(wanted.order_by(event.c.id))

    told = [row for row in relay.run(read()) if row[0].startswith(("run.", "check."))]
    assert [row[0] for row in told] == [
        "run.create",
        "run.update",
        "run.rerun",
        "run.cancel",
        "check.enable",
        "check.disable",
    ]
    assert {row[2] for row in told} == {"reader"}
    assert not any("private words" in row[1] for row in told)
    assert '"status":"completed","conclusion":"timed_out"' in told[1][1]
    assert '"attempt":2,"status":"queued","conclusion":null' in told[2][1]
