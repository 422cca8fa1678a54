"""The relay comes back from an older backup, and nothing that the folders have is lost, against the model
relay."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from localstore.errors import EditsConflict, LocalEdits, UnpulledSeal
from tests.depth import rounds
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

TEXT = "".join(f"line {number}\n" for number in range(12))


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def places(relay: ModelRelay, tmp_path: Path) -> list[Place]:
    """Three devices at one seal."""
    found = [Place(tmp_path, relay, name) for name in ("ann", "bob", "cyd")]
    found[0].write("a.txt", TEXT)
    found[0].write("b.bin", b"\0one")
    found[0].write("gone.txt", "gone\n")
    found[0].push()
    for place in found[1:]:
        place.pull()
    return found


def later(place: Place) -> None:
    """A seal that no backup has."""
    place.write("a.txt", TEXT.replace("line 3", "line three") + "added\n")
    place.write("b.bin", b"\0two")
    place.write("new.txt", "new\n")
    (place.folder / "gone.txt").unlink()
    place.push()


def sent(place: Place) -> None:
    """Push, with a pull before it if others were first."""
    for _ in range(5):
        try:
            place.push()
            return
        except (UnpulledSeal, EditsConflict):
            place.pull("merge")
    pytest.fail("the push never went through")


def test_a_push_sends_it_all_again(relay: ModelRelay, places: list[Place]) -> None:
    ann = places[0]
    restore = relay.backup()
    later(ann)
    mine = ann.files()
    restore()
    assert ann.push().seal is not None
    assert relay.tree("main") == mine == ann.files()
    assert relay.sealed_tree(relay.branches["main"].head) == mine


def test_a_pull_says_what_is_in_the_way_and_a_merge_keeps_it(relay: ModelRelay, places: list[Place]) -> None:
    ann = places[0]
    restore = relay.backup()
    later(ann)
    mine = ann.files()
    restore()
    with ann.device() as copy:
        from svc.flows.pull import pull

        with pytest.raises(LocalEdits) as refused:
            pull(copy)
        assert copy.moved_back == relay.branches["main"].head
    assert refused.value.extra["paths"] == ["a.txt", "b.bin", "gone.txt"]
    ann.pull("merge")
    assert ann.files() == mine
    for number in range(3):
        ann.write("b.bin", b"\0again %d" % number)
        assert ann.push().seal is not None
        assert ann.pull("merge").changed == []
    assert relay.tree("main") == ann.files()


def test_a_dry_run_says_that_the_branch_moved_back(relay: ModelRelay, places: list[Place]) -> None:
    from svc.flows.pull import pull
    from svc.flows.push import push

    ann = places[0]
    restore = relay.backup()
    later(ann)
    restore()
    for _ in range(2):  # a dry run changes nothing, so the next one says it too
        with ann.device() as copy:
            assert push(copy, "again", dry_run=True).unsealed
            assert copy.moved_back == relay.branches["main"].head
        with ann.device() as copy:
            pull(copy, "merge", dry_run=True)
            assert copy.moved_back == relay.branches["main"].head
        with ann.device() as copy:
            with pytest.raises(LocalEdits):
                pull(copy, dry_run=True)
            assert copy.moved_back == relay.branches["main"].head


def test_a_status_does_not_take_what_moved_back_for_newer(relay: ModelRelay, places: list[Place]) -> None:
    from svc.flows.status import status

    ann = places[0]
    restore = relay.backup()
    later(ann)
    with places[1].device() as copy:
        found = status(copy)
        assert (found.branch_state, found.behind) == ("here", True)
    restore()
    with ann.device() as copy:
        found = status(copy)
        assert (found.branch_state, found.behind) == ("moved_back", False)
        assert "is older than this folder" in found.advice
    ann.push()
    with ann.device() as copy:
        found = status(copy)
        assert (found.branch_state, found.behind, found.advice) == ("here", False, "")


def test_edits_without_a_seal_are_sent_again_too(relay: ModelRelay, places: list[Place]) -> None:
    """Live edits were confirmed and are lost, and so is the replica that made some of them."""
    ann, bob, _ = places
    restore = relay.backup()
    ann.write("a.txt", TEXT + "sent\n")
    with ann.device() as copy:
        from localstore.sync.compose import compose
        from localstore.sync.transfer.send import send
        from svc.flows.common import begin

        begin(copy)
        compose(copy, copy.scan())
        send(copy)
        begin(copy)
    bob.pull("merge")
    assert bob.read("a.txt").decode() == TEXT + "sent\n"
    restore()
    sent(bob)
    sent(ann)
    assert relay.text("main", "a.txt").decode() == TEXT + "sent\n" == ann.read("a.txt").decode()


@pytest.mark.parametrize("first", [0, 1, 2])
def test_devices_that_all_had_it_agree_again(relay: ModelRelay, places: list[Place], first: int) -> None:
    restore = relay.backup()
    later(places[0])
    for place in places[1:]:
        place.pull()
    mine = places[0].files()
    restore()
    order = [*places[first:], *places[:first], *places]
    for place in order:
        sent(place)
    for place in places:
        place.pull("merge")
        assert place.files() == mine == relay.tree("main")


def test_who_was_further_loses_nothing_to_who_was_behind(relay: ModelRelay, places: list[Place]) -> None:
    ann, bob, cyd = places
    restore = relay.backup()
    later(ann)
    bob.pull()
    bob.write("a.txt", bob.read("a.txt").decode().replace("line 9", "by bob 9"))  # unsent
    ann.write("a.txt", ann.read("a.txt").decode() + "further\n")
    ann.push()
    restore()
    for place in (cyd, ann, bob, ann, cyd):
        sent(place)
    ann.pull("merge")
    bob.pull("merge")
    text = ann.read("a.txt").decode()
    assert all(word in text for word in ("line three", "added", "further", "by bob 9"))
    assert ann.files() == bob.files() == cyd.files() == relay.tree("main")
    assert not [path for path in ann.files() if "conflict" in path]


def test_a_device_that_came_after_the_backup(relay: ModelRelay, places: list[Place], tmp_path: Path) -> None:
    restore = relay.backup()
    later(places[0])
    dan = Place(tmp_path, relay, "dan")
    dan.pull()
    dan.write("by-dan.txt", "dan\n")
    dan.push()
    mine = dan.files()
    restore()
    sent(dan)
    sent(places[0])
    assert dan.files() == mine == places[0].files() == relay.tree("main")


def test_before_the_first_seal(relay: ModelRelay, tmp_path: Path) -> None:
    ann = Place(tmp_path, relay, "ann")
    restore = relay.backup()
    ann.write("a.txt", "one\n")
    ann.push()
    restore()
    assert ann.push().seal is not None
    assert relay.tree("main") == ann.files() == {"a.txt": b"one\n"}


@pytest.mark.parametrize("seed", range(rounds(10, 200)))
def test_no_word_is_lost_whoever_comes_first(relay: ModelRelay, places: list[Place], seed: int) -> None:
    """Each device adds words; a backup is taken somewhere and restored later."""
    rolls = random.Random(seed)
    words: set[str] = set()
    back = [rolls.randrange(2, 6), rolls.randrange(6, 10)]
    restore = relay.backup()
    for step in range(14):
        if step == back[0]:
            restore = relay.backup()
        if step == back[1]:
            restore()
        place = rolls.choice(places)
        word = f"w{step}x{place.folder.name}"
        name = rolls.choice(["a.txt", f"{word}.txt"])
        lines = place.read(name).decode().splitlines(True) if name in place.files() else []
        lines.insert(rolls.randint(0, len(lines)), f"{word}\n")
        place.write(name, "".join(lines))
        words.add(word)
        if rolls.random() < 0.7:
            sent(place)
    for place in [*places, *places, *places]:
        sent(place)
    for place in places:
        place.pull("merge")
        assert place.files() == relay.tree("main")
    everything = b"".join(relay.tree("main").values()).decode()
    assert {word for word in words if word not in everything} == set()
