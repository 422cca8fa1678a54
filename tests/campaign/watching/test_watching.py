"""`svc repo checks list --watch` and `svc repo run watch` as programs: the right verdict and exit code,
whatever happens to the line, the relay, the session and the branch meanwhile."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaign.cable import Cable
from tests.campaign.conftest import handle_of
from tests.campaign.watching.world_of_checks import WATCH, World, ended, until
from tests.campaign.world import Machine, Node
from tests.svc.conftest import ROOT, clean_environment


@pytest.fixture(scope="module")
def cable() -> Iterator[Cable]:
    made = Cable()
    yield made
    made.close()


@pytest.fixture(scope="module")
def wired(cable: Cable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("wired"), cable.address)
    cable.upstream = found.port
    yield found
    found.close()


@pytest.fixture
def world(wired: Node, cable: Cable, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    yield World(tmp_path, wired, cable, handle_of(request))
    cable.mend()
    cable.refuse_sockets = False


def test_each_change_is_a_line_and_the_verdict_comes_at_the_end(world: World) -> None:
    test, lint = world.run("ci/test"), world.run("lint", "--status", "in_progress")
    watcher = world.watching()
    assert world.shown(watcher) == [["ci/test", "pending"], ["lint", "pending"]]
    asked = len(world.cable.asked)
    world.end(lint, "success", "--summary", "0 findings")
    until(lambda: ["lint", "pass"] in world.shown(watcher), "the change is shown")
    world.end(test, "skipped")
    done = watcher.wait()
    ended(done, 0, "all 2 checks passed on")
    assert ["ci/test", "skip"] in world.shown(watcher)
    assert "0 findings" in done.out
    assert world.cable.sockets >= 1
    assert not [path for path in world.cable.asked[asked:] if path.endswith("/sync/poll")]


def test_a_watcher_that_waits_asks_nothing(world: World) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    until(lambda: world.cable.asked[-1].endswith("/refs/branch/main"), "it has looked at the head")
    asked = len(world.cable.asked)
    time.sleep(2.5)  # more than two intervals
    assert world.cable.asked[asked:] == []
    world.end(test)
    ended(watcher.wait(), 0)


@pytest.mark.parametrize(
    ("conclusion", "code"), [("failure", 1), ("timed_out", 1), ("cancelled", 1), ("neutral", 0)]
)
def test_how_a_run_ends_decides(world: World, conclusion: str, code: int) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    world.end(test, conclusion)
    ended(watcher.wait(), code, "1 check")


def test_the_first_failure_ends_it_only_with_fail_fast(world: World) -> None:
    test, lint = world.run("ci/test"), world.run("lint")
    patient = world.watching()
    world.end(test, "failure")
    ended(world.ann.run(*WATCH, "--fail-fast"), 1, "ci/test")
    assert not patient.over()
    world.end(lint)
    ended(patient.wait(), 1, "1 of 2 checks failed")


def test_only_enabled_checks_count_with_required(world: World) -> None:
    world.ann.ok("repo", "checks", "enable", "ci/test")
    world.run("lint", "--conclusion", "failure")
    watcher = world.watching(*WATCH, "--required")
    world.run("ci/test", "--conclusion", "success")
    ended(watcher.wait(), 0, "1 check passed")
    ended(world.bob.run(*WATCH), 1, "lint")


def test_an_enabled_check_that_never_reports_is_awaited(world: World) -> None:
    world.ann.ok("repo", "checks", "enable", "ci/test")
    done = world.bob.run(*WATCH, "--timeout", "1")
    ended(done, 8, "ci/test (has not reported)")
    watcher = world.watching(*WATCH, "--timeout", "60")
    world.run("ci/test", "--conclusion", "success")
    ended(watcher.wait(), 0)


def test_a_check_that_is_enabled_meanwhile_is_awaited_too(world: World) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    world.ann.ok("repo", "checks", "enable", "late")
    until(lambda: ["late", "pending"] in world.shown(watcher), "it is shown")
    world.end(test)
    until(lambda: ["ci/test", "pass"] in world.shown(watcher), "the change is shown")
    world.ann.ok("repo", "checks", "disable", "late")
    ended(watcher.wait(), 0)


def test_no_check_at_all_is_no_pass(world: World) -> None:
    """`svc pr checks --watch && svc pr merge` merges nothing that no check has looked at."""
    ended(world.bob.run(*WATCH, "--appear", "0"), 1, "svc repo checks enable")
    ended(world.bob.run("repo", "checks", "list", "--branch", "main", "--exit-status"), 1)
    ended(world.bob.run(*WATCH, "--timeout", "0"), 8, "no check has reported")


def test_a_first_check_that_reports_late_is_awaited(world: World) -> None:
    watcher = world.watching()
    test = world.run("ci/test")
    until(lambda: ["ci/test", "pending"] in world.shown(watcher), "it is shown")
    world.end(test, "failure")
    ended(watcher.wait(), 1, "1 check failed on")


def test_a_cut_socket_is_opened_again(world: World) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    before = world.cable.sockets
    world.cable.cut()
    world.cable.mend()
    until(lambda: world.cable.sockets > before, "it listens again")
    world.end(test)
    ended(watcher.wait(), 0, "trying again")


def test_what_happened_while_the_line_was_down_counts(world: World, wired: Node) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    world.cable.cut()
    time.sleep(1.0)
    assert not watcher.over()
    wired.rows("UPDATE run SET status = 'completed', conclusion = 'failure' WHERE id = ?", test)
    world.cable.mend()
    ended(watcher.wait(), 1, "ci/test")


def test_a_relay_that_dies_and_comes_back_is_asked_again(world: World, wired: Node) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    wired.kill()
    time.sleep(0.5)
    assert not watcher.over()
    wired.start()
    world.cable.upstream = wired.port
    world.end(test)
    ended(watcher.wait(), 0, "trying again")


def test_a_relay_that_stays_away_is_waited_for_until_the_time_is_over(world: World) -> None:
    world.run("ci/test")
    watcher = world.watching(*WATCH, "--timeout", "4")
    world.cable.cut()
    ended(watcher.wait(), 8, "1 check not done")


def test_where_no_socket_gets_through_it_asks_again_and_again(world: World) -> None:
    test = world.run("ci/test")
    world.cable.refuse_sockets = True
    watcher = world.watching()
    world.end(test)
    ended(watcher.wait(), 0)


def test_somebody_without_a_session_asks_again_and_again(world: World) -> None:
    world.ann.ok("repo", "visibility", "public", "--yes")
    test = world.run("ci/test")
    anyone = Machine(world.base, "anyone", world.node)
    words = (*WATCH, "-R", world.repo)
    watcher = world.watching(*words, who=anyone, sockets=False)
    world.end(test, "failure")
    ended(watcher.wait(), 1, "ci/test")
    world.run("ci/test")
    watcher = world.watching(*words, who=anyone, sockets=False)
    world.ann.ok("repo", "visibility", "private", "--yes")
    ended(watcher.wait(), 1, "svc: ")


def test_a_session_that_ended_is_exit_4(world: World, wired: Node) -> None:
    world.run("ci/test")
    watcher = world.watching()
    other = Machine(world.base, "other", world.node)
    other.home = world.bob.home  # the same sign-in
    other.ok("logout")
    ended(watcher.wait(), 4, "svc login")


def test_a_head_that_moved_is_stale(world: World) -> None:
    test = world.run("ci/test")
    watcher = world.watching()
    world.write(world.ann, "a.txt", "two\n")
    world.ann.ok("push", "-m", "Second")
    ended(watcher.wait(), 1, "STALE: main moved to")
    # The seal itself stays what it is.
    old = json.loads(world.ann.ok("log", "--json", "id").out)[1]["id"]
    watcher = world.watching("repo", "checks", "list", "--seal", old, "--watch", "--interval", "1")
    world.end(test)
    ended(watcher.wait(), 0)


def test_a_branch_that_is_gone_is_stale(world: World) -> None:
    world.ann.ok("repo", "branch", "side", "--from", "main")
    world.run("ci/test")
    words = ("repo", "checks", "list", "--branch", "side", "--watch", "--interval", "1")
    watcher = world.watching(*words)
    world.ann.ok("repo", "branch-delete", "side", "--yes")
    ended(watcher.wait(), 1, "STALE: side is gone")


def test_an_interrupt_is_exit_130(world: World) -> None:
    world.run("ci/test")
    watcher = world.watching()
    os.kill(watcher.pid, signal.SIGINT)
    ended(watcher.wait(), 130, "interrupted")


def test_json_keeps_the_exit_code_and_stdout_for_the_answer(world: World) -> None:
    test = world.run("ci/test", "--details-url", "https://ci.example/1")
    fields = "name,state,required,attempt,summary,details_url,seal_id,started_at,completed_at"
    watcher = world.watching(*WATCH, "--json", fields)
    world.end(test, "failure", "--summary", "2 failed")
    done = watcher.wait()
    ended(done, 1)
    (row,) = json.loads(done.out)
    assert json.loads(world.bob.run(*WATCH, "--json").out) == [row]
    assert list(row) == fields.split(",")
    assert (row["name"], row["state"], row["attempt"], row["summary"]) == ("ci/test", "fail", 1, "2 failed")
    assert row["completed_at"]
    done = world.bob.run(*WATCH, "--timeout", "0", "--json", "state")
    ended(done, 1)
    world.ann.ok("repo", "checks", "enable", "late")
    done = world.bob.run(*WATCH, "--timeout", "0.5", "--json", "name,state")
    ended(done, 8)
    assert json.loads(done.out)[1] == {"name": "late", "state": "pending"}


def test_a_proposal_is_watched_until_it_has_another_head(world: World) -> None:
    world.ann.ok("repo", "branch", "topic", "--from", "main")
    world.ann.ok("switch", "topic")
    world.write(world.ann, "a.txt", "two\n")
    world.ann.ok("push", "-m", "Second")
    repo = json.loads(world.ann.ok("repo", "view", "--json", "id").out)["id"]
    body = json.dumps({"head": "topic", "base": "main", "title": "Two"})
    world.ann.ok("repo", "api", "-X", "POST", "-d", body, f"repos/{repo}/proposals")
    test = world.run("ci/test")
    look = ("pr", "checks", "1")
    ended(world.bob.run(*look), 0)
    ended(world.bob.run(*look, "--exit-status"), 8)
    watcher = world.watching(*look, "--watch", "--interval", "1")
    world.end(test, "failure", "--summary", "2 failed")
    ended(watcher.wait(), 1, "1 check failed on")
    ended(world.bob.run(*look), 1, "(#1)")
    ended(world.ann.run("pr", "checks"), 1, "(#1)")
    ended(world.ann.run("pr", "checks", "#1", "--required"), 0)
    again = world.ann.ok("repo", "run", "rerun", test).out.strip()
    watcher = world.watching(*look, "--watch", "--interval", "1", "--json", "name,state,attempt")
    world.write(world.ann, "a.txt", "three\n")
    world.ann.ok("push", "-m", "Third")
    done = watcher.wait()
    ended(done, 1, "STALE: #1 moved to")
    assert json.loads(done.out) == [{"name": "ci/test", "state": "pending", "attempt": 2}]
    assert again
    ended(world.bob.run(*look, "--watch", "--appear", "0"), 1, "svc repo checks enable")
    ended(world.bob.run("pr", "checks", "7"), 1, "no proposal #7")
    ended(world.bob.run("pr", "checks", "main"), 1, "comes from branch main")


def test_one_run_is_watched_to_its_end(world: World) -> None:
    test = world.run("ci/test")
    world.run("lint")
    watcher = world.watching("repo", "run", "watch", test[:12], "--interval", "1")
    world.end(test)
    ended(watcher.wait(), 0, "1 check passed")
    ended(world.bob.run("repo", "run", "watch", test), 0, "1 check passed")
    again = world.ann.ok("repo", "run", "rerun", test).out.strip()
    ended(world.bob.run("repo", "run", "watch", again, "--timeout", "0.5"), 8, "not done")
    world.ann.ok("repo", "run", "cancel", again)
    ended(world.bob.run("repo", "run", "watch", again), 1, "cancelled")
    ended(world.bob.run("repo", "run", "view", again, "--exit-status"), 1)


def test_a_look_exits_as_it_is_asked_to(world: World) -> None:
    look = ("repo", "checks", "list", "--branch", "main")
    test = world.run("ci/test")
    ended(world.bob.run(*look), 0)
    ended(world.bob.run(*look, "--exit-status"), 8, "not done")
    world.end(test, "failure")
    ended(world.bob.run(*look), 0)
    ended(world.bob.run(*look, "--exit-status"), 1, "failed")


def test_the_scripts_of_the_guide_run(world: World) -> None:
    page = (ROOT / "docs/guide/checks.md").read_text("utf-8")
    report, enable, wait = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    tools = world.base / "tools"
    tools.mkdir()
    (tools / "svc").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m svc "$@"\n')
    (tools / "svc").chmod(0o755)
    settings = clean_environment(SVC_HOME=str(world.ann.home), SVC_SERVER=world.node.address, BUILD="42")
    settings["PATH"] = f"{tools}:{settings['PATH']}"

    def shell(text: str) -> int:
        where = world.ann.folder
        return subprocess.run(
            ["bash", "-c", text], cwd=where, env=settings, timeout=60, check=False
        ).returncode

    (world.ann.folder / "Makefile").write_text("test:\n\t@echo 3 of 80 failed; exit 1\n")
    assert shell(enable) == 0
    assert shell(report) == 1
    assert shell(wait) == 1
    (world.ann.folder / "Makefile").write_text("test:\n\t@echo all 80 passed\n")
    assert shell(report) == 0
    assert shell(wait) == 0
    (row,) = json.loads(world.ann.ok("repo", "checks", "list", "--branch", "main", "--json=").out)
    assert (row["attempt"], row["state"], row["summary"]) == (2, "pass", "all 80 passed")
    assert row["details_url"] == "https://ci.example/42"
