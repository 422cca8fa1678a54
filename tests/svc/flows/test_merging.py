"""Edits of one text on two machines: one rule, whichever command brings them together."""

from __future__ import annotations

import shutil

import pytest

from localstore.core.diff.text_merge import mark_conflicts
from localstore.core.identity.keys import DeviceKey
from localstore.errors import EditsConflict
from svc.flows.common import ConflictCopy
from svc.flows.init import init
from svc.flows.restore import restore
from svc.flows.switch import Target, switch
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import LINK, Place
from tests.svc.flows.merging import (
    BOTH,
    TEXT,
    copies,
    in_conflict,
    live,
    one_side,
    other_side,
    people,
    relay,
    timeout,
)

__all__ = ["people", "relay"]

# --- the doors


def test_pull_merges_what_lies_apart_and_says_so(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", one_side(TEXT))
    ann.push()
    bob.write("app.py", other_side(TEXT))
    pulled = bob.pull("merge")
    assert (list(pulled.merged), pulled.conflicts) == (["app.py"], [])
    assert bob.read("app.py").decode() == BOTH
    bob.push()
    ann.pull()
    assert ann.files() == bob.files() == {"app.py": BOTH.encode()}


def test_pull_keeps_both_sides_of_a_conflict_and_records_it(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", one_side(timeout(45)))
    ann.push()
    bob.write("app.py", other_side(timeout(60)))
    pulled = bob.pull("merge")
    in_conflict(bob, one_side(timeout(45)), other_side(timeout(60)))
    [kept] = pulled.conflicts
    assert kept == ConflictCopy("app.py", kept.kept_as, kept.by, "4", "3")
    with bob.device() as device:
        [record] = device.db.conflicts.list()
        texts = [device.objects.get(name or b"") for name in (record.base, record.theirs, record.mine)]
    assert texts == [TEXT.encode(), one_side(timeout(45)).encode(), other_side(timeout(60)).encode()]
    bob.push()
    ann.pull()
    assert ann.files() == bob.files()


def test_a_push_that_loses_a_race_merges_and_seals(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people
    ann.write("app.py", one_side(TEXT))
    live(ann)
    bob.write("app.py", other_side(TEXT))
    pushed = bob.push()
    assert list(pushed.merged) == ["app.py"]
    assert bob.read("app.py").decode() == BOTH
    assert relay.sealed_tree(pushed.seal) == {"app.py": BOTH.encode()}


def test_the_same_edit_at_both_ends_of_a_race_is_one(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people
    for place in people:
        place.write("app.py", timeout(60).replace("retries = 3\n", "retries = 3\ndelay = 1\n"))
    live(ann)
    assert bob.push().conflicts == []
    assert relay.tree("main")["app.py"] == ann.read("app.py") == bob.read("app.py")
    assert copies(bob) == {}


def test_a_push_that_meets_a_conflict_stops_before_sealing(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, bob = people
    ann.write("app.py", timeout(45))
    live(ann)
    bob.write("app.py", timeout(60))
    head = relay.branches["main"].head
    with pytest.raises(EditsConflict, match=r"not sealed: app\.py conflicts with .*then push again"):
        bob.push()
    assert relay.branches["main"].head == head
    in_conflict(bob, timeout(45), timeout(60))
    pushed = bob.push()
    assert relay.sealed_tree(pushed.seal) == bob.files()


def test_switch_carries_an_edit_by_the_same_rule(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, _ = people
    side = Place(ann.folder.parent, relay, "side", "side")
    side.write("app.py", one_side(timeout(45)))
    side.write("same.py", "x = 1\n")
    side.push()
    ann.write("app.py", timeout(60))
    ann.write("same.py", "x = 1\n")
    with ann.device() as device:
        done = switch(device, Target("side", relay.transport("side", ann.key), ann.key), "merge")
    in_conflict(ann, one_side(timeout(45)), timeout(60))
    assert [(kept.path, kept.lines, kept.kept_lines) for kept in done.pulled.conflicts] == [
        ("app.py", "4", "3")
    ]


def test_a_folder_linked_again_mixes_nothing(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", timeout(45))
    ann.push()
    shutil.rmtree(bob.folder / ".svc")
    bob.write("app.py", timeout(60))
    init(bob.relay.transport("main", bob.key), bob.home, LINK, bob.folder, bob.key)
    bob.pull("merge")
    in_conflict(bob, timeout(45), timeout(60))


def test_a_folder_copied_with_its_link_merges_what_was_edited_since(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", one_side(TEXT))
    ann.push()
    shutil.copytree(bob.folder, bob.folder.with_name("copy"))
    bob.folder = bob.folder.with_name("copy")
    bob.write("app.py", other_side(TEXT))
    bob.pull("merge")
    assert bob.files() == {"app.py": BOTH.encode()}


def test_another_key_takes_over_and_merges_what_was_not_sent(people: tuple[Place, Place]) -> None:
    ann, bob = people
    bob.write("app.py", other_side(TEXT))
    bob.pull("merge")
    ann.write("app.py", one_side(TEXT))
    ann.push()
    bob.key = DeviceKey.generate(b"another".ljust(32, b"."))
    bob.pull("merge")
    assert bob.files() == {"app.py": BOTH.encode()}


def test_a_restored_text_is_an_edit_like_any_other(people: tuple[Place, Place]) -> None:
    ann, bob = people
    bob.write("app.py", other_side(TEXT))
    bob.push()
    ann.pull()
    ann.write("app.py", one_side(other_side(TEXT)))
    ann.push()
    first = next(seal for seal, sealed in bob.relay.seals.items() if not sealed.seal.parents)
    with bob.device() as device:
        restore(device, ["app.py"], first)
    assert bob.read("app.py").decode() == TEXT
    bob.pull("merge")
    assert bob.files() == {"app.py": one_side(TEXT).encode()}


def test_windows_line_endings_stand_against_nothing(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", TEXT.replace("\n", "\r\n"))
    ann.push()
    bob.write("app.py", timeout(60))
    assert bob.pull("merge").conflicts == []
    assert bob.files() == {"app.py": timeout(60).replace("\n", "\r\n").encode()}


# --- markers


def test_a_text_that_holds_our_markers_is_not_sealed(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people
    ann.write("app.py", timeout(45))
    ann.push()
    bob.write("app.py", timeout(60))
    bob.pull("merge")
    bob.write(
        "app.py", mark_conflicts(TEXT.encode(), timeout(45).encode(), timeout(60).encode(), "theirs", "mine")
    )
    shutil.copy(bob.folder / "app.py", bob.folder / "new.py")
    bob.write("other.py", "fine\n")
    pushed = bob.push()
    assert sorted(pushed.refused) == ["app.py", "new.py"]
    assert "svc resolve" in pushed.refused["app.py"]
    sealed = relay.sealed_tree(pushed.seal)
    assert (sealed["app.py"], sealed["other.py"]) == (timeout(45).encode(), b"fine\n")
    bob.write("app.py", timeout(50))
    assert bob.push().sent == ["app.py"]
    assert relay.tree("main")["app.py"] == timeout(50).encode()
