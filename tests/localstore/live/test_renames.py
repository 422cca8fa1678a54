"""Renamed on one device, edited on the other, in folders that are live: the edit is in the renamed file on
all devices, the old name is gone, and nothing is lost. Against the model relay, with rounds run by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from localstore.agent.talk import FolderEvent
from localstore.live.rounds import Done, Rounds
from localstore.sync.merging import advance
from localstore.sync.remote import read_remote
from localstore.sync.transfer.send import batch_of
from localstore.sync.working_copy import WorkingCopy
from svc.cmd.watch import sentence_of
from tests.localstore.histories import Killed
from tests.localstore.life import Life
from tests.localstore.live.test_rest import Device, require_rest
from tests.localstore.model_relay import ModelRelay

TEXT = "".join(f"line {number}\n" for number in range(40))
THEIRS, MINE = TEXT.replace("line 3\n", "theirs\n"), TEXT.replace("line 30\n", "mine\n")
BOTH = THEIRS.replace("line 30\n", "mine\n")


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def pair(relay: ModelRelay, tmp_path: Path) -> Iterator[tuple[Device, Device]]:
    """`ann` renames, `bob` edits. Both are live."""
    ann, bob = Device(tmp_path, relay, "ann"), Device(tmp_path, relay, "bob")
    for path in ("a.txt", "src/one.txt", "src/two.txt"):
        ann.place.write(path, path + "\n" + TEXT)
    ann.place.write("b.bin", b"\0" + bytes(range(256)))
    ann.place.write("other.txt", "other\n")
    ann.place.push()
    bob.place.pull()
    for device in (ann, bob):
        device.turn()
    yield ann, bob
    for device in (ann, bob):
        device.rounds.close()


def edit(device: Device, path: str, old: str, new: str) -> None:
    device.save(path, device.place.read(path).replace(f"{old}\n".encode(), f"{new}\n".encode()))


def rename(device: Device, old: str, new: str) -> None:
    (device.place.folder / new).parent.mkdir(parents=True, exist_ok=True)
    device.rename(old, new)


def finish(device: Device) -> None:
    """Send and bring until nothing is due here."""
    for _ in range(20):
        device.connected = False  # as in `require_rest`
        if not device.turn():
            return
    pytest.fail("it never came to rest")


def in_order(
    order: str, ann: Device, bob: Device, renaming: Callable[[], None], editing: Callable[[], None]
) -> None:
    """`renaming` on ann and `editing` on bob, neither of which has seen the other."""
    steps = [(ann, renaming), (bob, editing)]
    if order == "edited first":
        steps.reverse()
    for device, act in steps:
        act()
        device.capture()
        if order != "both at once":
            finish(device)


@pytest.mark.parametrize("order", ["renamed first", "edited first", "both at once"])
@pytest.mark.parametrize("also", [False, True])
def test_an_edit_lands_in_the_renamed_text(
    relay: ModelRelay, pair: tuple[Device, Device], order: str, also: bool
) -> None:
    ann, bob = pair

    def renaming() -> None:
        rename(ann, "a.txt", "new/b.txt")
        if also:
            edit(ann, "new/b.txt", "line 3", "theirs")

    in_order(order, ann, bob, renaming, lambda: edit(bob, "a.txt", "line 30", "mine"))
    require_rest(relay, ann, bob)
    want = "a.txt\n" + (BOTH if also else MINE)
    assert bob.place.files().get("new/b.txt", b"").decode() == want
    assert sorted(relay.tree("main")) == ["b.bin", "new/b.txt", "other.txt", "src/one.txt", "src/two.txt"]


@pytest.mark.parametrize("order", ["renamed first", "edited first", "both at once"])
def test_new_bytes_land_in_the_renamed_file(
    relay: ModelRelay, pair: tuple[Device, Device], order: str
) -> None:
    ann, bob = pair
    in_order(order, ann, bob, lambda: rename(ann, "b.bin", "c.bin"), lambda: bob.save("b.bin", b"\0mine"))
    require_rest(relay, ann, bob)
    assert bob.place.files().get("c.bin") == b"\0mine"
    assert "b.bin" not in relay.tree("main")


@pytest.mark.parametrize("order", ["renamed first", "edited first", "both at once"])
def test_edits_in_a_renamed_folder(relay: ModelRelay, pair: tuple[Device, Device], order: str) -> None:
    ann, bob = pair

    def renaming() -> None:
        for name in ("one.txt", "two.txt"):
            rename(ann, f"src/{name}", f"lib/deep/{name}")

    def editing() -> None:
        edit(bob, "src/one.txt", "line 3", "in one")
        edit(bob, "src/two.txt", "line 3", "in two")

    in_order(order, ann, bob, renaming, editing)
    require_rest(relay, ann, bob)
    assert b"in one" in ann.place.read("lib/deep/one.txt")
    assert b"in two" in ann.place.read("lib/deep/two.txt")
    assert not [path for path in relay.tree("main") if path.startswith("src/")]


def test_a_folder_of_more_files_than_a_batch_takes(relay: ModelRelay, tmp_path: Path) -> None:
    ann, bob = Device(tmp_path, relay, "ann"), Device(tmp_path, relay, "bob")
    names = [f"{number}.txt" for number in range(260)]
    for name in names:
        ann.place.write(f"src/{name}", f"{name}\n{TEXT}")
    ann.place.push()
    bob.place.pull()
    for name in names:
        rename(ann, f"src/{name}", f"lib/{name}")
    ann.capture()
    ann.turn()  # one batch of two
    for name in names:
        edit(bob, f"src/{name}", "line 3", f"in {name}")
    bob.capture()
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert sorted(tree) == sorted(f"lib/{name}" for name in names)
    assert all(f"in {name}\n".encode() in tree[f"lib/{name}"] for name in names)
    for device in (ann, bob):
        device.rounds.close()


def test_a_file_where_the_folder_of_the_renamed_one_was(
    relay: ModelRelay, pair: tuple[Device, Device]
) -> None:
    ann, bob = pair
    for name in ("one.txt", "two.txt"):
        rename(ann, f"src/{name}", f"lib/{name}")
    (ann.place.folder / "src").rmdir()
    ann.save("src", b"a file now\n")
    ann.capture()
    finish(ann)
    edit(bob, "src/one.txt", "line 3", "by bob")
    bob.capture()
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert tree["src"] == b"a file now\n"
    assert any(b"by bob" in data for data in tree.values())


@pytest.mark.parametrize("more", [False, True])
def test_an_edit_that_came_and_was_not_written_when_the_agent_was_killed(
    relay: ModelRelay, pair: tuple[Device, Device], more: bool
) -> None:
    ann, bob = pair
    edit(bob, "a.txt", "line 3", "by bob")
    bob.capture()
    finish(bob)

    def work(copy: WorkingCopy) -> None:
        ann.rounds.bootstrap(copy)
        row = copy.db.row("a.txt")
        assert row is not None
        [remote] = read_remote(copy, [row])
        advance(copy, copy.entries["a.txt"], remote)

    ann.round(work)
    ann.rounds.close()
    ann.rounds = Rounds()
    rename(ann, "a.txt", "b.txt")
    if more:
        edit(bob, "a.txt", "line 30", "more")
        bob.capture()
        finish(bob)
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert (b"by bob" in tree["b.txt"], b"more" in tree["b.txt"], "a.txt" in tree) == (True, more, False)


def test_an_edit_lands_once_in_the_renamed_text_wherever_the_agent_was_killed(tmp_path: Path) -> None:
    for end in range(1, 1000, 2):
        root, relay = tmp_path / str(end), ModelRelay()
        root.mkdir()
        ann, bob = Device(root, relay, "ann"), Device(root, relay, "bob")
        ann.place.write("a.txt", "a.txt\n" + TEXT)
        ann.place.push()
        bob.place.pull()
        for device in (ann, bob):
            device.turn()
        edit(bob, "a.txt", "line 3", "by bob")
        bob.capture()
        finish(bob)
        rename(ann, "a.txt", "b.txt")
        ann.capture()
        life, killed = Life(end), False
        try:
            ann.round(lambda copy, dying=life, device=ann: _bring_dying(copy, device, dying))  # type: ignore[misc]
        except Killed:
            killed = True
        ann.rounds.close()
        ann.rounds = Rounds()
        ann.saves = ["a.txt", "b.txt"]  # an agent that begins walks the folder
        if b"by bob" in ann.place.read("b.txt"):
            edit(ann, "b.txt", "by bob", "by bob and ann")
        require_rest(relay, ann, bob)
        tree = relay.tree("main")
        assert (sorted(tree), tree["b.txt"].count(b"by bob")) == (["b.txt"], 1), end
        for device in (ann, bob):
            device.rounds.close()
        if not killed:
            assert end > 10
            return


def _bring_dying(copy: WorkingCopy, device: Device, life: Life) -> None:
    device.rounds.bootstrap(copy)
    updates = device.rounds.outgoing(copy)
    answers = copy.transport.updates(batch_of(copy, updates))
    device.rounds.record_answers(copy, updates, answers)
    with life.over(copy):
        device.rounds.bring(copy)


def test_both_rename_it(relay: ModelRelay, pair: tuple[Device, Device]) -> None:
    ann, bob = pair
    for device, name in ((ann, "ann.txt"), (bob, "bob.txt")):
        rename(device, "a.txt", name)
        edit(device, name, "line 3", f"by {name}")
        device.capture()
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert (b"by ann.txt" in tree["ann.txt"], b"by bob.txt" in tree["bob.txt"]) == (True, True)
    assert "a.txt" not in tree


@pytest.mark.parametrize("order", ["renamed first", "edited first", "both at once"])
def test_a_name_that_the_other_made_keeps_both(
    relay: ModelRelay, pair: tuple[Device, Device], order: str
) -> None:
    ann, bob = pair

    def making() -> None:
        bob.save("new.txt", b"quite another text\n")
        edit(bob, "a.txt", "line 3", "by bob")

    in_order(order, ann, bob, lambda: rename(ann, "a.txt", "new.txt"), making)
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert any(b"by bob" in data for data in tree.values())
    assert any(data == b"quite another text\n" for data in tree.values())
    assert any(b"line 39" in data for path, data in tree.items() if not path.startswith("src"))


@pytest.mark.parametrize("order", ["renamed first", "edited first", "both at once"])
@pytest.mark.parametrize("captured", [False, True])
def test_a_new_file_under_the_old_name(
    relay: ModelRelay, pair: tuple[Device, Device], order: str, captured: bool
) -> None:
    ann, bob = pair

    def renaming() -> None:
        rename(ann, "a.txt", "b.txt")
        if captured:
            ann.capture()
            finish(ann)
        ann.save("a.txt", b"another text\n")

    in_order(order, ann, bob, renaming, lambda: edit(bob, "a.txt", "line 3", "by bob"))
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert any(b"by bob" in data for data in tree.values())
    assert any(data == b"another text\n" for data in tree.values())
    assert b"line 39" in tree["b.txt"]
    if captured and order == "renamed first":
        assert (b"by bob" in tree["b.txt"], tree["a.txt"]) == (True, b"another text\n")


@pytest.mark.parametrize("path", ["a.txt", "b.bin"])
def test_deleted_there_and_edited_here_is_a_conflict(
    relay: ModelRelay, pair: tuple[Device, Device], path: str
) -> None:
    ann, bob = pair
    ann.remove(path)
    ann.capture()
    finish(ann)
    bob.save(path, bob.place.read(path) + b"mine\n")
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert path not in tree
    [aside] = [one for one in tree if "sync-conflict" in one]
    assert tree[aside].endswith(b"mine\n")


def test_an_edit_that_does_not_fit_is_kept_beside(relay: ModelRelay, pair: tuple[Device, Device]) -> None:
    ann, bob = pair
    rename(ann, "a.txt", "b.txt")
    edit(ann, "b.txt", "line 3", "by ann")
    ann.capture()
    edit(bob, "a.txt", "line 3", "by bob")
    bob.capture()
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert all(any(words in data for data in tree.values()) for words in (b"by ann", b"by bob"))


def test_an_editor_that_saves_under_the_old_name(relay: ModelRelay, pair: tuple[Device, Device]) -> None:
    ann, bob = pair
    held = bob.place.read("a.txt")
    rename(ann, "a.txt", "b.txt")
    require_rest(relay, ann, bob)
    for old, new in ((b"line 3\n", b"first\n"), (b"line 30\n", b"second\n")):
        held = held.replace(old, new)
        bob.save("a.txt", held)
        require_rest(relay, ann, bob)
        assert (relay.tree("main")["b.txt"], "a.txt" in relay.tree("main")) == (held, False)
    bob.save("a.txt", held)  # once more: it is meant
    require_rest(relay, ann, bob)
    assert relay.tree("main")["a.txt"] == relay.tree("main")["b.txt"] == held


def test_an_editor_whose_first_edit_went_along_saves_again(
    relay: ModelRelay, pair: tuple[Device, Device]
) -> None:
    ann, bob = pair
    edit(bob, "a.txt", "line 3", "by bob")
    rename(ann, "a.txt", "b.txt")
    require_rest(relay, ann, bob)
    held = relay.tree("main")["b.txt"]
    assert b"by bob" in held
    bob.save("a.txt", held.replace(b"line 30\n", b"by bob, later\n"))
    require_rest(relay, ann, bob)
    tree = relay.tree("main")
    assert b"by bob, later\n" in tree["b.txt"]
    assert "a.txt" not in tree


def test_a_copy_under_the_old_name_is_a_new_file(relay: ModelRelay, pair: tuple[Device, Device]) -> None:
    ann, bob = pair
    rename(ann, "a.txt", "b.txt")
    require_rest(relay, ann, bob)
    edit(bob, "b.txt", "line 3", "changed")
    require_rest(relay, ann, bob)
    bob.save("a.txt", bob.place.read("b.txt"))
    require_rest(relay, ann, bob)
    assert relay.tree("main")["a.txt"] == relay.tree("main")["b.txt"]


def test_what_was_followed_is_told(relay: ModelRelay, pair: tuple[Device, Device]) -> None:
    ann, bob = pair
    rename(ann, "a.txt", "b.txt")
    ann.capture()
    finish(ann)
    edit(bob, "a.txt", "line 3", "by bob")
    bob.capture()
    told: list[Done] = []

    def work(copy: WorkingCopy) -> None:
        updates = bob.rounds.outgoing(copy)
        bob.rounds.record_answers(copy, updates, copy.transport.updates(batch_of(copy, updates)))
        bob.rounds.bootstrap(copy)
        told.append(bob.rounds.bring(copy))

    bob.round(work)
    assert told[0].moved == [("a.txt", "b.txt")]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"event": "renamed", "path": "a", "to": "b"}, "a is b now, and the edit of a is in it"),
        ({"event": "renamed", "path": "a", "to": "b", "back": True}, "a is back: it is b here"),
        ({"event": "conflict", "path": "a", "kept_as": "c", "gone": True}, "it was deleted on the branch"),
    ],
)
def test_the_sentences(said: dict[str, object], words: str) -> None:
    assert words in sentence_of(msgspec.convert({"folder": "/f", "at": "now", **said}, FolderEvent))


@pytest.mark.parametrize("order", ["renamed first", "edited first", "both at once"])
@pytest.mark.parametrize("new", ["a.txt/inner.txt", "taken/inner.txt"])
@pytest.mark.parametrize("line", ["line 30", "line 3"])
def test_renamed_to_below_what_is_a_file_here(
    relay: ModelRelay, pair: tuple[Device, Device], order: str, new: str, line: str
) -> None:
    ann, bob = pair

    def renaming() -> None:
        text = ann.place.read("a.txt").replace(b"line 3\n", b"theirs\n")
        ann.rename("a.txt", "moving")
        rename(ann, "moving", new)
        ann.save(new, text)

    def editing() -> None:
        edit(bob, "a.txt", line, "mine")
        bob.save("taken", b"a file\n")

    in_order(order, ann, bob, renaming, editing)
    require_rest(relay, ann, bob)
    for words in (b"theirs\n", b"mine\n", b"a file\n"):
        assert any(words in data for data in bob.place.files().values())


@pytest.mark.parametrize("gone_there", [False, True])
def test_a_wait_for_a_renamed_file_ends_where_a_command_followed_it(
    relay: ModelRelay, pair: tuple[Device, Device], gone_there: bool
) -> None:
    ann, bob = pair
    edit(bob, "a.txt", "line 3", "theirs")
    bob.capture()
    finish(bob)
    ann.rename("a.txt", "b.txt")
    ann.rounds.followed.later["a.txt"] = time.monotonic() + 60  # until b.txt is sent
    ann.rounds.frames.paths.add("a.txt")
    ann.place.pull("merge")
    if gone_there:
        bob.remove("a.txt")
        bob.capture()
        finish(bob)
    ann.capture()
    require_rest(relay, ann, bob)
    assert "a.txt" not in relay.tree("main")
    assert b"theirs" in relay.tree("main")["b.txt"]
