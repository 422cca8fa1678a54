"""Renamed on one side, edited on the other: the edit lands in the renamed file, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.errors import EditsConflict
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from svc.flows.common import begin
from svc.flows.pull import Mode
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

TEXT = "".join(f"line {number}\n" for number in range(40))
THEIRS, MINE = TEXT.replace("line 3\n", "theirs\n"), TEXT.replace("line 30\n", "mine\n")
BOTH = THEIRS.replace("line 30\n", "mine\n")


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    ann = Place(tmp_path, relay, "ann")
    ann.write("a.txt", TEXT)
    ann.write("b.bin", b"\0" + bytes(range(256)))
    ann.write("other.txt", "other\n")
    ann.push("One")
    return ann


@pytest.fixture
def bob(ann: Place, relay: ModelRelay, tmp_path: Path) -> Place:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    return bob


def _rename(place: Place, old: str, new: str) -> None:
    (place.folder / new).parent.mkdir(exist_ok=True)
    (place.folder / old).rename(place.folder / new)


@pytest.mark.parametrize("mine", [TEXT, MINE])
def test_renamed_here_and_edited_there(ann: Place, bob: Place, relay: ModelRelay, mine: str) -> None:
    ann.write("a.txt", THEIRS)
    ann.push("Two")
    _rename(bob, "a.txt", "src/b.txt")
    bob.write("src/b.txt", mine)
    pulled = bob.pull("merge")
    whole = THEIRS if mine == TEXT else BOTH
    assert (bob.files()["src/b.txt"], "a.txt" in bob.files()) == (whole.encode(), False)
    assert ("src/b.txt" in pulled.merged, pulled.conflicts, pulled.returned) == (True, [], {})
    bob.push("Three")
    ann.pull()
    assert ann.files() == bob.files()
    assert sorted(relay.tree("main")) == ["b.bin", "other.txt", "src/b.txt"]


@pytest.mark.parametrize("theirs", [TEXT, THEIRS])
def test_edited_here_and_renamed_there(ann: Place, bob: Place, relay: ModelRelay, theirs: str) -> None:
    _rename(ann, "a.txt", "src/b.txt")
    ann.write("src/b.txt", theirs)
    ann.push("Two")
    bob.write("a.txt", MINE)
    pulled = bob.pull("merge")
    whole = MINE if theirs == TEXT else BOTH
    assert (bob.files()["src/b.txt"], "a.txt" in bob.files()) == (whole.encode(), False)
    assert ("src/b.txt" in pulled.merged, pulled.conflicts, pulled.returned) == (True, [], {})
    bob.push("Three")
    ann.pull()
    assert ann.files() == bob.files()
    assert sorted(relay.tree("main")) == ["b.bin", "other.txt", "src/b.txt"]


@pytest.mark.parametrize("mode", ["plain", "merge"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_what_both_sides_rename_is_named_and_kept_twice(
    ann: Place, bob: Place, dry_run: bool, mode: Mode
) -> None:
    _rename(ann, "a.txt", "of_ann.txt")
    _rename(ann, "b.bin", "same.bin")
    ann.push("Two")
    _rename(bob, "a.txt", "of_bob.txt")
    _rename(bob, "b.bin", "same.bin")
    pulled = bob.pull(mode, dry_run=dry_run)
    assert pulled.renamed_twice == {"a.txt": ("of_bob.txt", "of_ann.txt")}
    assert pulled.returned == {}
    if not dry_run:
        assert bob.read("of_bob.txt") == bob.read("of_ann.txt") == TEXT.encode()


def test_binaries_in_both_directions(ann: Place, bob: Place, relay: ModelRelay) -> None:
    ann.write("b.bin", b"\0theirs")
    ann.push("Two")
    _rename(bob, "b.bin", "c.bin")
    bob.pull("merge")
    assert (bob.files()["c.bin"], "b.bin" in bob.files()) == (b"\0theirs", False)
    bob.push("Three")
    ann.pull()
    _rename(ann, "c.bin", "d/e.bin")
    ann.push("Four")
    bob.write("c.bin", b"\0mine")
    bob.pull("merge")
    assert (bob.files()["d/e.bin"], "c.bin" in bob.files()) == (b"\0mine", False)
    bob.push("Five")
    ann.pull()
    assert ann.files() == bob.files()


def test_what_cannot_be_merged_is_a_conflict_of_the_renamed_file(ann: Place, bob: Place) -> None:
    ann.write("a.txt", TEXT.replace("line 3\n", "theirs\n"))
    ann.push("Two")
    _rename(bob, "a.txt", "b.txt")
    bob.write("b.txt", TEXT.replace("line 3\n", "mine\n"))
    [conflict] = bob.pull("merge").conflicts
    assert conflict.path == "b.txt"
    assert (b"theirs" in bob.read("b.txt"), b"mine" in bob.read(conflict.kept_as)) == (True, True)
    assert "a.txt" not in bob.files()


def test_a_push_that_others_overtake_follows_too(ann: Place, bob: Place, relay: ModelRelay) -> None:
    with ann.device() as copy:  # an edit that is live and not sealed
        begin(copy)
        ann.write("a.txt", THEIRS)
        compose(copy, copy.scan())
        send(copy)
    _rename(bob, "a.txt", "b.txt")
    bob.push("Two")
    assert relay.tree("main")["b.txt"] == THEIRS.encode()
    assert "a.txt" not in relay.tree("main")


def test_a_dry_run_says_the_same_and_changes_nothing(ann: Place, bob: Place) -> None:
    ann.write("a.txt", THEIRS)
    ann.push("Two")
    _rename(bob, "a.txt", "b.txt")
    before = bob.files()
    assert "b.txt" in bob.pull("merge", dry_run=True).merged
    assert bob.files() == before


def test_deleted_there_and_edited_here_is_a_conflict(ann: Place, bob: Place, relay: ModelRelay) -> None:
    for path in ("a.txt", "b.bin"):
        (ann.folder / path).unlink()
    ann.push("Two")
    bob.write("a.txt", MINE)
    bob.write("b.bin", b"\0mine")
    pulled = bob.pull("merge")
    assert [(one.path, one.deleted) for one in pulled.conflicts] == [("a.txt", True), ("b.bin", True)]
    assert [bob.read(one.kept_as) for one in pulled.conflicts] == [MINE.encode(), b"\0mine"]
    assert not {"a.txt", "b.bin"} & bob.files().keys()


def test_a_push_does_not_bring_back_what_others_deleted_live(
    ann: Place, bob: Place, relay: ModelRelay
) -> None:
    with ann.device() as copy:
        begin(copy)
        (ann.folder / "a.txt").unlink()
        compose(copy, copy.scan())
        send(copy)
    bob.write("a.txt", MINE)
    with pytest.raises(EditsConflict):
        bob.push("Two")
    assert "a.txt" not in relay.tree("main")
    assert any(data == MINE.encode() for data in bob.files().values())


@pytest.mark.parametrize("mine", [MINE, TEXT.replace("line 3\n", "mine\n")])
@pytest.mark.parametrize("new", ["a.txt/inner.txt", "other.txt/inner.txt", "taken/inner.txt"])
def test_renamed_there_to_below_a_file_of_this_folder(ann: Place, bob: Place, mine: str, new: str) -> None:
    (ann.folder / "a.txt").unlink()
    (ann.folder / "other.txt").unlink()
    ann.write(new, THEIRS)
    ann.push("Two")
    bob.write("a.txt", mine)
    bob.write("other.txt", "mine, too\n")
    bob.write("taken", "new\n")
    copies = {conflict.path: conflict.kept_as for conflict in bob.pull("merge").conflicts}
    assert bob.read(copies["a.txt"]) == mine.encode()
    assert bob.read(copies["other.txt"]) == b"mine, too\n"
    assert bob.read(copies.get("taken", "taken")) == b"new\n"
    assert bob.read(new) == THEIRS.encode()
    assert bob.pull("merge").changed == []
