"""Somebody loses the role with which they saw private paths. Nothing that only their folder has may go, and
what leaves the folder is said and lies in the trash."""

from __future__ import annotations

import pytest

from tests.campaign.conftest import Place
from tests.campaign.world import Machine

PLAN = "only writers see plan/a.txt, plan/mine.txt now, and you may not write; what was here is in "


@pytest.fixture
def bob(place: Place) -> Machine:
    """He could write, has sealed a file of his own in the private folder, and may only read now."""
    ann = place.ann
    place.write(ann, "README", "hi\n")
    place.write(ann, "plan/a.txt", "a\n")
    place.write(ann, "plan/edited.txt", "b\n")
    ann.ok("push", "-m", "first")
    ann.ok("repo", "paths", "set", "plan", "--private")
    ann.ok("repo", "branch", "other")
    found = Machine(place.base, "bob", place.node)
    handle = f"b{place.handle}"
    found.ok("login", "--device-key", "--handle", handle)
    ann.ok("repo", "collaborator", "add", handle, "--role", "write")
    found.ok("repo", "invite", "accept", place.repo)
    found.ok("repo", "clone", place.repo, str(found.folder), where=place.base)
    place.write(found, "plan/mine.txt", "mine, sealed\n")
    found.ok("push", "-m", "mine")
    place.write(found, "plan/edited.txt", "b\nedited\n")
    place.write(found, "plan/new.txt", "new\n")
    ann.ok("repo", "collaborator", "role", handle, "read")
    return found


def holds_all(bob: Machine) -> None:
    assert bob.files() == {
        "README": b"hi\n",
        "plan/edited.txt": b"b\nedited\n",
        "plan/new.txt": b"new\n",
    }
    assert sorted(bob.trash()) == [b"a\n", b"mine, sealed\n"]


def test_a_pull_moves_what_is_hidden_to_the_trash_and_says_so(bob: Machine) -> None:
    told = bob.ok("pull", "--merge", "--dry-run").err
    assert "only writers see plan/a.txt, plan/mine.txt now, and you may not write; they would move" in told
    assert bob.trash() == []
    assert PLAN + str(bob.home / "trash") in bob.ok("pull", "--merge").err
    holds_all(bob)
    assert "only writers" not in bob.ok("pull").err
    holds_all(bob)


def test_a_pull_that_also_brings_a_seal_keeps_them(place: Place, bob: Machine) -> None:
    place.ann.ok("pull")
    (place.ann.folder / "plan/a.txt").unlink()
    place.write(place.ann, "new.txt", "new\n")
    (place.ann.folder / "README").unlink()
    place.ann.ok("push", "-m", "second")
    assert PLAN in bob.ok("pull", "--merge").err
    assert "README" not in bob.files()
    assert b"hi\n" not in bob.trash()
    assert b"mine, sealed\n" in bob.trash()


@pytest.mark.parametrize("mode", [(), ("--merge",)])
def test_a_switch_keeps_them(bob: Machine, mode: tuple[str, ...]) -> None:
    if not mode:
        bob.folder.joinpath("plan/edited.txt").write_bytes(b"b\n")
    assert "only writers see plan/a.txt, " in bob.ok("switch", "other", *mode).err
    assert {b"a\n", b"mine, sealed\n"} <= {*bob.trash()}
    assert bob.files()["plan/new.txt"] == b"new\n"


def test_a_switch_that_is_refused_takes_nothing_away(place: Place, bob: Machine) -> None:
    before = bob.files()
    place.ann.ok("pull")
    place.ann.ok("switch", "other")
    place.write(place.ann, "README", "on other\n")
    place.ann.ok("push", "-m", "other")
    place.write(bob, "README", "bob's\n")
    said = bob.run("switch", "other")
    assert said.code == 1, said
    assert bob.files() == {**before, "README": b"bob's\n"}
    assert bob.trash() == []
