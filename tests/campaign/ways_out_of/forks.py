"""Ways out of errors about forks."""

from __future__ import annotations

import json

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row
from tests.campaign.world import Machine


@row("fork_private", "repo branch")
def _a_private_repository_is_worked_on_in_branches(place: Place) -> None:
    first_push(place)
    refused(place.ann, "repo", "fork", "--name", "mine", says="repo branch NAME")
    place.ann.ok("repo", "branch", "mine")
    place.ann.ok("switch", "mine")


@row("filtered_view", "diff")
def _what_a_partial_fork_cannot_propose_goes_as_a_patch(place: Place) -> None:
    place.write(place.ann, "hidden/key.txt", "secret\n")
    first_push(place)
    place.ann.ok("repo", "visibility", "public", "--yes")
    place.ann.ok("repo", "paths", "set", "hidden", "--private")
    bob = Machine(place.base, "bob", place.node)
    bob.ok("login", "--device-key", "--handle", "bob-parts", where=place.base)
    bob.ok("repo", "fork", place.repo, "--name", "part", where=place.base)
    bob.ok("repo", "clone", "bob-parts/part", str(bob.folder), where=place.base)
    assert not (bob.folder / "hidden").exists()
    place.write(bob, "a.txt", "one\ntwo\n")
    bob.ok("push", "-m", "Two")
    refused(bob, "pr", "create", "-t", "Two", says="diff")
    mine, before = (one["id"] for one in json.loads(bob.ok("log", "--json", "id").out))
    assert "+two" in bob.ok("diff", f"{before}..{mine}").out.splitlines()
    place.write(place.ann, "a.txt", "one\ntwo\n")
    place.ann.ok("push", "-m", "Two, by bob")


@row("conflict", "repo clone")
@row("conflict", "pr checkout")
def _another_s_proposal_is_looked_at_in_a_clone_of_the_parent(place: Place) -> None:
    first_push(place)
    place.ann.ok("repo", "visibility", "public", "--yes")
    bob = Machine(place.base, "bob", place.node)
    bob.ok("login", "--device-key", "--handle", "bob-looks", where=place.base)
    bob.ok("repo", "fork", place.repo, "--name", "part", where=place.base)
    bob.ok("repo", "clone", "bob-looks/part", str(bob.folder), where=place.base)
    place.ann.ok("repo", "branch", "topic")
    place.ann.ok("switch", "topic")
    place.write(place.ann, "a.txt", "by ann\n")
    place.ann.ok("push", "-m", "Topic")
    place.ann.ok("pr", "create", "-t", "Topic")
    refused(bob, "pr", "checkout", "1", says=f"repo clone {place.repo}")
    parent = place.base / "parent"
    bob.ok("repo", "clone", place.repo, str(parent), where=place.base)
    bob.ok("pr", "checkout", "1", where=parent)
    assert (parent / "a.txt").read_text() == "by ann\n"
