"""`svc pr checks --watch` and `svc repo checks list --watch` where two relays serve one database: the right
verdict and exit code, whichever relay the news comes from and whatever happens to the watcher's own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import databases
from tests.campaign.cable import Cable
from tests.campaign.conftest import handle_of
from tests.campaign.together.relays import Relays, serving
from tests.campaign.watching.world_of_checks import WATCH, World, ended, until
from tests.campaign.world import Machine, Running

PR = ("pr", "checks", "1", "--watch", "--interval", "1")


@pytest.fixture(scope="module")
def cable() -> Iterator[Cable]:
    made = Cable()
    yield made
    made.close()


@pytest.fixture(scope="module")
def relays(cable: Cable, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relays]:
    with serving(tmp_path_factory.mktemp("relays"), cable) as found:
        yield found


@pytest.fixture
def world(relays: Relays, cable: Cable, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    """The watcher's connections reach relay 1 and those of later commands relay 0."""
    relays.lead_to(0)
    made = World(tmp_path, relays, cable, handle_of(request))
    made.ann.ok("repo", "branch", "topic", "--from", "main")
    made.ann.ok("switch", "topic")
    made.write(made.ann, "a.txt", "two\n")
    made.ann.ok("push", "-m", "Second")
    made.ann.ok("pr", "create", "--title", "Two", "--head", "topic", "--base", "main")
    yield made
    cable.mend()
    for number, relay in enumerate(relays.both):
        if relay.poll() is not None:
            relays.revive(number)


def watching(world: World, relays: Relays, *words: str, who: Machine | None = None) -> Running:
    relays.lead_to(1)
    watcher = world.watching(*words, who=who)
    relays.lead_to(0)
    return watcher


@pytest.mark.parametrize(("conclusion", "code"), [("success", 0), ("failure", 1), ("cancelled", 1)])
def test_what_one_relay_is_told_the_watcher_at_the_other_hears(
    world: World, relays: Relays, conclusion: str, code: int
) -> None:
    test = world.run("ci/test")
    watcher = watching(world, relays, *PR)
    asked = len(world.cable.asked)
    world.end(test, conclusion)
    ended(watcher.wait(), code, "1 check")
    assert not [path for path in world.cable.asked[asked:] if path.endswith("/sync/poll")]


def test_a_cut_socket_goes_on_at_the_other_relay(world: World, relays: Relays) -> None:
    test = world.run("ci/test")
    watcher = watching(world, relays, *PR)
    before = world.cable.sockets
    world.cable.cut()
    world.cable.mend()
    until(lambda: world.cable.sockets > before, "it listens again")
    relays.lead_to(1)
    world.end(test, "failure")
    ended(watcher.wait(), 1, "trying again")


@pytest.mark.parametrize(("conclusion", "code"), [("success", 0), ("failure", 1)])
def test_a_killed_relay_leaves_the_watcher_to_the_other(
    world: World, relays: Relays, conclusion: str, code: int
) -> None:
    test = world.run("ci/test")
    watcher = watching(world, relays, *PR)
    relays.slay(1)
    world.end(test, conclusion)
    ended(watcher.wait(), code, "1 check")


def test_a_push_while_its_relay_is_dead_is_stale(world: World, relays: Relays) -> None:
    world.run("ci/test")
    watcher = watching(world, relays, *PR)
    world.cable.cut()
    relays.slay(1)
    time.sleep(0.3)
    assert not watcher.over()
    world.cable.mend()
    world.write(world.ann, "a.txt", "three\n")
    world.ann.ok("push", "-m", "Third")
    ended(watcher.wait(), 1, "STALE: #1 moved to")


def test_both_relays_killed_and_back(world: World, relays: Relays) -> None:
    test = world.run("ci/test")
    watcher = watching(world, relays, *PR)
    late = watching(world, relays, *PR, "--timeout", "2", who=world.machine("carol"))
    relays.slay(0)
    relays.slay(1)
    ended(late.wait(), 8, "1 check not done")
    assert not watcher.over()
    relays.revive(0)
    relays.revive(1)
    relays.lead_to(0)
    world.end(test)
    ended(watcher.wait(), 0, "trying again")


def test_a_head_that_moves_at_the_other_relay_is_stale(world: World, relays: Relays) -> None:
    world.run("ci/test")
    proposal = watching(world, relays, *PR)
    branch = watching(world, relays, *WATCH[:4], "topic", *WATCH[5:], who=world.machine("carol"))
    world.write(world.ann, "a.txt", "three\n")
    world.ann.ok("push", "-m", "Third")
    ended(proposal.wait(), 1, "STALE: #1 moved to")
    ended(branch.wait(), 1, "STALE: topic moved to")


def test_a_branch_deleted_at_the_other_relay_is_stale(world: World, relays: Relays) -> None:
    world.ann.ok("repo", "branch", "side", "--from", "topic")
    world.run("ci/test")
    watcher = watching(world, relays, *WATCH[:4], "side", *WATCH[5:])
    world.ann.ok("repo", "branch-delete", "side", "--yes")
    ended(watcher.wait(), 1, "STALE: side is gone")


def test_a_session_that_ends_at_the_other_relay_is_exit_4(world: World, relays: Relays) -> None:
    world.run("ci/test")
    watcher = watching(world, relays, *PR)
    other = Machine(world.base, "other", world.node)
    other.home = world.bob.home  # the same sign-in
    other.ok("logout")
    ended(watcher.wait(), 4, "svc login")


def test_an_enabled_check_that_reports_to_nobody_is_exit_8(world: World, relays: Relays) -> None:
    world.ann.ok("repo", "checks", "enable", "late")
    watcher = watching(world, relays, *PR, "--required", "--timeout", "3")
    ended(watcher.wait(), 8, "late (has not reported)")


def test_a_lost_notification_is_made_up_for(world: World, relays: Relays) -> None:
    test = world.run("ci/test")
    watcher = watching(world, relays, *PR)
    databases.rows(
        relays.url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )
    until(lambda: world.ann.run("repo", "run", "view", test).code == 0, "the relay has a database again")
    world.end(test, "failure")
    ended(watcher.wait(), 1, "1 check failed")
