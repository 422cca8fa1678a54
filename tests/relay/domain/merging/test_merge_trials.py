"""What a proposal says about its merge before anybody merges it: whether it conflicts, and where."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import select

from localstore.core.errors import Unavailable
from localstore.core.merge.three_way import MergedTree
from localstore.core.model import limits
from relay.caller import View
from relay.db.schema import tables
from relay.domain.merging import trial, work
from relay.domain.merging.work import Working
from relay.domain.proposal import branches, proposal, versions
from relay.memory import texts, workers
from relay.memory.outcomes import Outcome, Outcomes
from relay.memory.trees import Directories
from tests.patience import PATIENCE
from tests.relay.conftest import Relay
from tests.relay.domain.merging.test_merge import refused
from tests.relay.histories import Repository, ok, own
from tests.relay.merges import PAGE, apart, finalize, prepare, propose, put

MINE, THEIRS = {"page": put(5, b"mine")}, {"page": put(5, b"theirs")}


@pytest.fixture
def repo(account: Any, client: Any) -> Repository:
    return own(account, client)


def stands(repo: Repository, n: int) -> tuple[str, list[str]]:
    shown = repo.get(f"/proposals/{n}")
    listed = next(one for one in repo.get("/proposals", state="all")["items"] if one["number"] == n)
    assert (listed["merge_state"], listed["conflicts"]) == (shown["merge_state"], shown["conflicts"])
    return shown["merge_state"], shown["conflicts"]


async def idle(*_: object) -> None:
    """In place of trials that a test runs itself."""


def base_of(relay: Relay, repo: Repository, n: int) -> str:
    async def act() -> Any:
        async with relay.node.db.read() as tx:
            one = tables["proposal"]
            return await tx.value(select(one.c.base_id).where(one.c.repo_id == repo.id, one.c.number == n))

    return str(relay.run(act()))


def test_conflicts_are_told_with_their_files(repo: Repository) -> None:
    n = apart(repo, {**MINE, "other": b"1\n"}, {**THEIRS, "other": b"2\n"})
    assert stands(repo, n) == ("conflicts", ["other", "page"])
    assert refused(prepare(repo, n, "squash"), 409, "merge_conflict")["files"] == ["other", "page"]


def test_what_can_be_merged_is_behind(repo: Repository) -> None:
    n = apart(repo, {"page": put(2, b"mine")}, {"page": put(8, b"theirs")})
    assert stands(repo, n) == ("behind", [])


def test_mergeable_is_whether_it_conflicts(repo: Repository) -> None:
    """Whatever else stands in its way; null where that was not tried, and where nothing is left to merge."""
    n = apart(repo, MINE, THEIRS)
    assert repo.get(f"/proposals/{n}")["mergeable"] is False
    repo.seal({"page": put(5, b"mine")}, branch="topic")
    ok(repo.http.patch(f"{repo.url}/proposals/{n}", json={"draft": True}))
    shown = repo.get(f"/proposals/{n}")
    assert (shown["merge_state"], shown["mergeable"]) == ("draft", True)
    ok(repo.http.patch(f"{repo.url}/proposals/{n}", json={"state": "closed"}))
    assert repo.get(f"/proposals/{n}")["mergeable"] is None


def test_each_move_of_a_branch_is_another_merge(repo: Repository) -> None:
    n = apart(repo, MINE, THEIRS)
    assert stands(repo, n)[0] == "conflicts"
    repo.seal({"page": put(5, b"mine")}, branch="topic")
    assert stands(repo, n) == ("behind", [])
    repo.seal({"page": put(5, b"again")})
    assert stands(repo, n) == ("conflicts", ["page"])
    repo.seal({"page": put(5, b"again")}, branch="topic")
    assert stands(repo, n) == ("behind", [])


def test_conflicts_outrank_a_draft_and_what_blocks(repo: Repository) -> None:
    n = apart(repo, MINE, THEIRS)
    ok(repo.http.put(f"{repo.url}/protections/main", json={"require_review": True}))
    ok(repo.http.patch(f"{repo.url}/proposals/{n}", json={"draft": True}))
    assert stands(repo, n) == ("conflicts", ["page"])
    assert repo.get(f"/proposals/{n}")["blocked_by"] == ["review_required"]
    repo.seal({"page": put(5, b"mine")}, branch="topic")
    assert stands(repo, n) == ("draft", [])
    ok(repo.http.patch(f"{repo.url}/proposals/{n}", json={"draft": False}))
    assert stands(repo, n) == ("blocked", [])
    ok(repo.http.patch(f"{repo.url}/proposals/{n}", json={"state": "closed"}))
    assert stands(repo, n) == ("unknown", [])


def test_hidden_files_are_not_named(repo: Repository, relay: Relay) -> None:
    n = apart(repo, {**MINE, "secret/a": b"1\n"}, {**THEIRS, "secret/a": b"2\n"})
    ok(repo.http.patch(repo.url, json={"visibility": "public"}))
    ok(repo.http.put(f"{repo.url}/paths", json={"path": "secret", "visibility": "private"}))
    assert stands(repo, n) == ("conflicts", ["page", "secret/a"])
    with relay.client(relay.account(None)) as stranger:
        shown = ok(stranger.get(f"{repo.url}/proposals/{n}"))
        assert (shown["merge_state"], shown["conflicts"]) == ("conflicts", ["page"])
        repo.seal(MINE, branch="topic")
        repo.get(f"/proposals/{n}")
        shown = ok(stranger.get(f"{repo.url}/proposals/{n}"))
        assert (shown["merge_state"], shown["conflicts"]) == ("behind", [])


def test_a_list_says_unknown_until_the_merge_was_tried(repo: Repository) -> None:
    (first,) = repo.seal({"page": put(1, b"one")})
    repo.branch("topic", first)
    repo.seal({"page": put(5, b"theirs")}, branch="topic")
    n = propose(repo)
    repo.seal({"page": put(5, b"mine")})
    (listed,) = repo.get("/proposals")["items"]
    assert listed["merge_state"] in ("unknown", "conflicts")  # the job may have been here
    assert stands(repo, n)[0] == "conflicts"


def test_the_move_of_the_base_tries_its_proposals(repo: Repository, relay: Relay) -> None:
    (first,) = repo.seal({"page": put(1, b"one")})
    repo.branch("topic", first)
    repo.seal({"page": put(5, b"theirs")}, branch="topic")
    n = propose(repo)
    assert stands(repo, n) == ("clean", [])
    repo.seal({"page": put(5, b"mine")})
    branch = {"repo_id": repo.id, "branch_id": base_of(relay, repo, n)}
    relay.run(trial.run_trials(relay.node, branch))
    (listed,) = repo.get("/proposals")["items"]
    assert (listed["merge_state"], listed["conflicts"]) == ("conflicts", ["page"])


def test_a_proposal_whose_merge_a_job_tries_between_its_reads(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = repo.seal({"page": put(1, b"one")})
    repo.branch("topic", first)
    repo.seal({"page": put(5, b"theirs")}, branch="topic")
    n = propose(repo)
    assert stands(repo, n) == ("clean", [])
    monkeypatch.setitem(relay.node.jobs._handlers, branches.TRIALS, idle)
    repo.seal({"page": put(5, b"mine")})
    branch = {"repo_id": repo.id, "branch_id": base_of(relay, repo, n)}
    read = proposal.get

    async def read_around_the_job(view: View, number: str) -> Any:
        await trial.run_trials(relay.node, branch)
        shown = await read(view, number)
        await trial.run_trials(relay.node, branch)
        return shown

    monkeypatch.setattr(proposal, "get", read_around_the_job)
    shown = repo.get(f"/proposals/{n}")
    assert (shown["merge_state"], shown["conflicts"]) == ("conflicts", ["page"])


def test_a_trial_of_former_heads_replaces_no_newer_one(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(relay.node.jobs._handlers, branches.TRIALS, idle)
    monkeypatch.setitem(relay.node.jobs._handlers, versions.JOB, idle)  # it would try the merge as well
    n = apart(repo, {"page": put(2, b"mine")}, {"page": put(8, b"theirs")})
    outcome, moved = Working.outcome_of, []

    async def overtaken(self: Any, *of: Any) -> Any:
        found = await outcome(self, *of)
        if not moved:
            moved.append(True)
            await asyncio.to_thread(repo.seal, {"page": put(8, b"mine too")})
            await trial.settle(relay.node, repo.id, n, "trials")
        return found

    monkeypatch.setattr(Working, "outcome_of", overtaken)
    relay.run(versions.settle(relay.node, repo.id, n))
    relay.run(trial.settle(relay.node, repo.id, n, "trials"))
    assert moved
    monkeypatch.setattr(trial, "settle", idle)
    assert stands(repo, n) == ("conflicts", ["page"])


@pytest.mark.parametrize("strategy", ["squash", "merge"])
def test_a_merge_comes_to_the_same_whether_it_was_tried_or_not(
    repo: Repository, relay: Relay, strategy: str
) -> None:
    both = strategy == "squash"  # a seal with two parents takes only what one side changed
    theirs = {"c/d": b"3\n", "a/b/more": b"2\n"} | ({"page": put(8, b"theirs")} if both else {})
    n = apart(repo, {"page": put(2, b"mine"), "a/b/kept": b"1\n"}, theirs)
    found = []
    for trees, outcomes in [(True, True), (False, False), (True, False), (False, True)]:
        if trees:
            relay.node.directories = Directories()
        if outcomes:
            relay.node.outcomes = Outcomes()
        made = ok(prepare(repo, n, strategy))
        (seal,) = made["seals"]
        found.append((seal["content_digest"], seal["changes"], made["merged"]))
    assert all(one == found[0] for one in found)
    assert made["merged"] == (["page"] if both else [])
    done = ok(finalize(repo, n, made))
    page = put(8, b"theirs", put(2, b"mine")) if both else put(2, b"mine")
    expected = {"page": page, "a/b/kept": b"1\n", "a/b/more": b"2\n", "c/d": b"3\n"}
    assert {
        path: repo.http.get(f"{repo.url}/raw/{done['merged_seal']}/{path}").content for path in expected
    } == expected


def test_a_merge_that_was_tried_is_not_worked_out_again(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = apart(repo, {"page": put(2, b"mine")}, {"page": put(8, b"theirs")})
    assert stands(repo, n) == ("behind", [])

    def worked_out(*_: object) -> None:
        raise AssertionError("the trial found this already")

    monkeypatch.setattr(work, "plan", worked_out)
    assert ok(prepare(repo, n, "squash"))["merged"] == ["page"]


def test_the_job_tries_each_proposal_as_its_base_stands_then(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(relay.node.jobs._handlers, branches.TRIALS, idle)
    (first,) = repo.seal({"page": put(1, b"one")})
    for name in ("topic", "other"):
        repo.branch(name, first)
        repo.seal({"page": put(5, name.encode())}, branch=name)
    numbers = [propose(repo, name) for name in ("topic", "other")]
    assert [stands(repo, n)[0] for n in numbers] == ["clean", "clean"]
    repo.seal({"page": put(5, b"mine")})
    tried, work_out = [], trial._try_merge

    async def moving(node: Any, repo_id: str, number: int, head: str, base: str, who: str) -> None:
        tried.append((number, base))
        await work_out(node, repo_id, number, head, base, who)
        if len(tried) == 1:
            await asyncio.to_thread(repo.seal, {"new": b"1\n"})

    monkeypatch.setattr(trial, "_try_merge", moving)
    before = repo.head()
    branch = {"repo_id": repo.id, "branch_id": base_of(relay, repo, numbers[0])}
    relay.run(trial.run_trials(relay.node, branch))
    assert tried == [(numbers[1], before), (numbers[0], repo.head())]


def test_texts_that_were_joined_are_not_joined_again(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = apart(repo, {"page": put(2, b"mine")}, {"page": put(8, b"theirs")})
    assert stands(repo, n) == ("behind", [])
    repo.seal({"another": b"1\n"})

    def joined(*_: object) -> None:
        raise AssertionError("these texts were joined before")

    monkeypatch.setattr(texts, "merge_lines", joined)
    assert stands(repo, n) == ("behind", [])


@pytest.mark.parametrize("way", ["squash", "rebase", None])
def test_no_transaction_is_open_while_texts_are_joined(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch, way: str | None
) -> None:
    """Joining waits for its turn and its budget, and a relay reads with few connections."""
    read, run = relay.node.db.read, relay.node.workers.go_on
    reading: list[Any] = []
    joined: list[bool] = []

    @contextlib.asynccontextmanager
    async def counted(*how: Any, **named: Any) -> Any:
        async with read(*how, **named) as tx:
            reading.append(asyncio.current_task())
            try:
                yield tx
            finally:
                reading.remove(asyncio.current_task())

    async def watched(who: str, size: int, call: Any, *arguments: Any) -> Any:
        if call is texts.merge_all:
            joined.append(asyncio.current_task() in reading)
        return await run(who, size, call, *arguments)

    for job in (branches.TRIALS, versions.JOB):
        monkeypatch.setitem(relay.node.jobs._handlers, job, idle)
    mine, theirs = (f"{side} {way} {repo.id}".encode() for side in ("mine", "theirs"))  # joined nowhere yet
    n = apart(repo, {"page": put(2, mine)}, {"page": put(8, theirs)}, {"page": put(5, theirs)})
    monkeypatch.setattr(relay.node.db, "read", counted)
    monkeypatch.setattr(relay.node.workers, "go_on", watched)
    if way is None:
        assert stands(repo, n) == ("behind", [])
    else:
        assert ok(prepare(repo, n, way))["merged"] == ["page"]
    assert joined == [False] * (2 if way == "rebase" else 1)


def test_a_rebase_of_joined_texts_keeps_each_seal(repo: Repository) -> None:
    first = {"page": put(8, b"theirs"), "new": b"1\n"}
    second = {"page": put(8, b"theirs", put(5, b"again")), "new": b"2\n"}
    n = apart(repo, {"page": put(2, b"mine"), "other": b"1\n"}, first, second)
    made = ok(prepare(repo, n, "rebase"))
    assert made["merged"] == ["page"]
    assert [seal["message"] for seal in made["seals"]] == ["topic 1", "topic 2"]
    done = ok(finalize(repo, n, made))
    page = repo.http.get(f"{repo.url}/raw/{done['merged_seal']}/page").content
    assert page == put(2, b"mine", put(5, b"again", put(8, b"theirs")))


def test_the_texts_that_a_rebase_joins_are_limited_in_total(
    repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, steps = PAGE, []
    for line in range(5, 10):
        page = put(line, b"theirs", page)
        steps.append({"page": page})
    n = apart(repo, {"page": put(1, b"mine")}, *steps)
    monkeypatch.setattr(limits, "LOADED_TEXTS", 4 * len(PAGE))  # each step reads three texts and makes one
    problem = refused(prepare(repo, n, "rebase"), 413, "too_large")
    assert problem["detail"].endswith("merge it with --squash")
    assert ok(prepare(repo, n, "squash"))["merged"] == ["page"]


def test_a_rebase_stops_at_the_first_seal_that_conflicts(repo: Repository) -> None:
    n = apart(
        repo,
        {"page": put(5, b"mine")},
        {"page": put(8, b"theirs")},
        {"page": put(8, b"theirs", put(5, b"theirs too"))},
        {"page": put(8, b"later", put(5, b"theirs too"))},
    )
    assert refused(prepare(repo, n, "rebase"), 409, "merge_conflict")["files"] == ["page"]


async def test_branches_that_move_for_ever_end_a_merge() -> None:
    """A merge that lacks another outcome each time is refused, and not tried without an end; what nobody will
    use is not computed."""
    lacking = iter(range(1000))
    computed: list[Any] = []

    class Always(Outcomes):
        def get(self, key: Any) -> Any:
            computed.append(key)
            return Outcome(MergedTree({}, {}, [], []), {})

    async def attempt(ready: Any) -> None:
        raise work.ToWorkOut(("repo", (None,), b"ours", b"%d" % next(lacking), False))

    node: Any = SimpleNamespace(outcomes=Always(), objects=SimpleNamespace(read_many=idle))
    with pytest.raises(Unavailable):
        await work.run_with_work(node, "somebody", attempt)
    assert next(lacking) == work.ATTEMPTS
    assert len(computed) == work.ATTEMPTS - 1


def test_nobody_waits_for_the_budget_of_somebody_else(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has no budget left does not keep others from working out the same merge."""
    monkeypatch.setattr(work, "LITTLE", 0)
    monkeypatch.setattr(workers, "LITTLE", 0)
    for job in (branches.TRIALS, versions.JOB):
        monkeypatch.setitem(relay.node.jobs._handlers, job, idle)
    mine, theirs = (f"{side} {repo.id}".encode() for side in ("mine", "theirs"))  # joined nowhere yet
    n = apart(repo, {"page": put(2, mine)}, {"page": put(8, theirs)})
    relay.run(versions.settle(relay.node, repo.id, n))
    order: list[str] = []

    async def settle(who: str) -> None:
        await trial.settle(relay.node, repo.id, n, who)
        order.append(who)

    async def race() -> None:
        waits, goes_on = asyncio.Event(), asyncio.Event()

        async def afford(who: str) -> None:
            waits.set()
            await goes_on.wait()

        monkeypatch.setattr(relay.node.workers, "afford", afford)
        monkeypatch.setattr(relay.node.workers, "owes", lambda who, size: who == "poor")
        poor = asyncio.create_task(settle("poor"))
        async with asyncio.timeout(PATIENCE):
            await waits.wait()
            await settle("rich")
            goes_on.set()
            await poor

    relay.run(race())
    assert order == ["rich", "poor"]
    assert stands(repo, n) == ("behind", [])


def test_who_asks_for_a_merge_that_is_worked_out_waits_for_it(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job in (branches.TRIALS, versions.JOB):
        monkeypatch.setitem(relay.node.jobs._handlers, job, idle)
    n = apart(repo, {"page": put(2, b"mine")}, {"page": put(8, b"theirs")})
    relay.run(versions.settle(relay.node, repo.id, n))
    work_out, times = Working.outcome_of, []

    async def counted(self: Any, *of: Any) -> Any:
        times.append(of)
        return await work_out(self, *of)

    async def both() -> None:
        await asyncio.gather(*(trial.settle(relay.node, repo.id, n, f"trials {who}") for who in "abc"))

    monkeypatch.setattr(Working, "outcome_of", counted)
    relay.run(both())
    assert len(times) == 1
    assert stands(repo, n) == ("behind", [])


@pytest.mark.parametrize("many", [0, 1000])
def test_many_changed_paths_are_gone_through_on_a_thread(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    threads, plan = set(), work.plan

    def planned(*args: Any) -> Any:
        threads.add(threading.get_ident())
        return plan(*args)

    async def own() -> int:
        return threading.get_ident()

    monkeypatch.setattr(work, "MANY", many)
    monkeypatch.setattr(work, "plan", planned)
    n = apart(repo, {"page": put(2, b"mine")}, {"page": put(8, b"theirs")})
    assert ok(prepare(repo, n, "squash"))["merged"] == ["page"]
    assert (relay.run(own()) in threads) is (many > 0)


def test_the_move_of_a_base_tries_the_newest_of_each_proposer(
    repo: Repository, relay: Relay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(relay.node.jobs._handlers, branches.TRIALS, idle)
    monkeypatch.setattr(trial, "EACH", 2)
    (first,) = repo.seal({"page": put(1, b"one")})
    numbers = []
    for name in ("oldest", "middle", "newest"):
        repo.branch(name, first)
        repo.seal({"page": put(5, name.encode())}, branch=name)
        numbers.append(propose(repo, name))
        assert stands(repo, numbers[-1])[0] == "clean"
    repo.seal({"page": put(5, b"mine")})
    relay.run(
        trial.run_trials(relay.node, {"repo_id": repo.id, "branch_id": base_of(relay, repo, numbers[0])})
    )
    listed = {one["number"]: one["merge_state"] for one in repo.get("/proposals")["items"]}
    assert [listed[n] for n in numbers] == ["unknown", "conflicts", "conflicts"]
