"""What was taken back before it was sent is sent by no later command, against the model relay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.core.errors import ServerUnreachable
from localstore.core.model.live import UpdateAnswers, UpdateBatch
from localstore.core.model.protection import BranchProtected
from localstore.errors import LocalEdits
from svc.flows.common import begin
from svc.flows.push import push
from svc.flows.restore import restore
from svc.flows.switch import Target, switch
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place

TEXT = "one\ntwo\nthree\n"
SECRET = "password\n"


class Cut(ModelTransport):
    """The line breaks before the updates arrive, or before their answer does."""

    arrives = False

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        if self.arrives:
            super().updates(batch)
        raise ServerUnreachable("the line broke")


class Deaf(Cut):
    arrives = True


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    place = Place(tmp_path, relay, "ann")
    place.write("a.txt", TEXT)
    place.write("b.bin", b"\0b")
    place.write("c.txt", "gone\n")
    place.push()
    return place


def cut_push(place: Place, line: type[Cut]) -> None:
    place.wrap = lambda _: line(place.relay, place.branch)
    with pytest.raises(ServerUnreachable):
        place.push()
    place.wrap = lambda transport: transport


def edit_all(place: Place) -> None:
    """An edit of a text and of bytes, a new file of each kind, and a removal."""
    place.write("a.txt", TEXT + SECRET)
    place.write("b.bin", b"\0" + SECRET.encode())
    place.write("new.txt", SECRET)
    place.write("new.bin", b"\0" + SECRET.encode())
    (place.folder / "c.txt").unlink()


def take_back(place: Place) -> None:
    with place.device() as copy:
        restore(copy, ["."])
    for name in ("new.txt", "new.bin"):
        (place.folder / name).unlink()


def pull(place: Place) -> None:
    place.pull()


def merge(place: Place) -> None:
    place.pull("merge")


def turn(place: Place) -> None:
    with place.device() as copy:
        switch(copy, Target("side", place.relay.transport("side", place.key), place.key))


def seal(place: Place) -> None:
    assert place.push().seal is None


@pytest.mark.parametrize("command", [pull, merge, turn, seal])
def test_what_was_taken_back_is_not_sent(
    relay: ModelRelay, ann: Place, command: Callable[[Place], None]
) -> None:
    before, sent = relay.tree("main"), len(relay.accepted)
    edit_all(ann)
    cut_push(ann, Cut)
    take_back(ann)
    command(ann)
    assert relay.tree("main") == before
    assert all(update.kind == "delete" for _, update in relay.accepted[sent:])  # nothing with a content
    if command is not turn:
        assert ann.files() == before
        ann.write("a.txt", TEXT + "four\n")  # and the folder works on
        ann.write("b.bin", b"\0later")
        ann.push()
        assert relay.tree("main") == ann.files()


def test_what_had_arrived_although_its_answer_was_lost_is_taken_back_by_a_push(
    relay: ModelRelay, ann: Place
) -> None:
    before = relay.tree("main")
    edit_all(ann)
    cut_push(ann, Deaf)
    assert SECRET.encode() in relay.tree("main")["new.txt"]
    take_back(ann)
    with pytest.raises(LocalEdits):  # it is an edit now, like any other
        ann.pull()
    ann.pull("merge")
    assert ann.files() == before
    ann.push()
    assert relay.tree("main") == before == ann.files()


class Protected(ModelTransport):
    """A branch that takes no updates at all."""

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        raise BranchProtected("main")


@pytest.mark.parametrize("command", [pull, merge])
def test_what_a_protected_branch_refused_and_was_taken_back_is_in_nobodys_way(
    relay: ModelRelay, ann: Place, command: Callable[[Place], None]
) -> None:
    before = relay.tree("main")
    edit_all(ann)
    ann.wrap = lambda _: Protected(relay, "main")
    with pytest.raises(BranchProtected):
        ann.push()
    take_back(ann)
    command(ann)
    assert ann.files() == before
    ann.wrap = lambda transport: transport
    assert ann.push().seal is None
    assert relay.tree("main") == before
    ann.write("a.txt", TEXT + "later\n")
    ann.push()
    assert relay.text("main", "a.txt").decode() == TEXT + "later\n"


@pytest.mark.parametrize("line", [Cut, Deaf])
def test_what_was_edited_further_is_sent_as_it_is_now(
    relay: ModelRelay, ann: Place, tmp_path: Path, line: type[Cut]
) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    edit_all(ann)
    cut_push(ann, line)
    ann.write("a.txt", TEXT + "instead\n")
    ann.write("new.txt", "instead\n")
    ann.write("b.bin", b"\0instead")
    ann.write("c.txt", "back\n")
    ann.pull("merge")
    ann.push()
    bob.pull()
    assert bob.files() == ann.files() == relay.tree("main")
    assert (bob.read("a.txt"), bob.read("c.txt")) == (b"one\ntwo\nthree\ninstead\n", b"back\n")


def test_what_the_folder_still_holds_is_sent(relay: ModelRelay, ann: Place) -> None:
    edit_all(ann)
    cut_push(ann, Cut)
    ann.pull("merge")
    assert relay.tree("main") == ann.files()


def test_edits_of_others_meanwhile_stay(relay: ModelRelay, ann: Place, tmp_path: Path) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    ann.write("a.txt", TEXT + SECRET)
    cut_push(ann, Cut)
    bob.write("a.txt", "zero\n" + TEXT)
    bob.push()
    ann.write("a.txt", TEXT)
    ann.pull()
    assert ann.read("a.txt").decode() == "zero\n" + TEXT
    assert relay.tree("main") == ann.files()


def test_a_rehearsal_takes_nothing_back(relay: ModelRelay, ann: Place) -> None:
    edit_all(ann)
    cut_push(ann, Cut)
    take_back(ann)
    ann.pull(dry_run=True)
    with ann.device() as copy:
        begin(copy)
        assert len(copy.db.flight_kinds()) == 5
        push(copy, "for show", dry_run=True)
        assert len(copy.db.flight_kinds()) == 5


def restore_all(place: Place) -> None:
    with place.device() as copy:
        restore(copy, ["."])


def write_back(place: Place) -> None:
    place.write("a.txt", TEXT)


@pytest.mark.parametrize("undo", [restore_all, write_back])
@pytest.mark.parametrize("command", [pull, merge, turn, seal])
def test_an_edit_that_a_pull_merged_is_none_any_more_once_it_is_undone(
    relay: ModelRelay, ann: Place, undo: Callable[[Place], None], command: Callable[[Place], None]
) -> None:
    before, sent = relay.tree("main"), len(relay.accepted)
    ann.write("a.txt", TEXT + SECRET)
    ann.pull("merge")
    undo(ann)
    command(ann)
    assert len(relay.accepted) == sent
    if command is not turn:
        ann.write("a.txt", TEXT + "four\n")
        ann.push()
        assert relay.tree("main") == ann.files() == {**before, "a.txt": f"{TEXT}four\n".encode()}


def test_an_edit_that_is_undone_does_not_undo_what_others_wrote_meanwhile(
    relay: ModelRelay, ann: Place, tmp_path: Path
) -> None:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    ann.write("a.txt", TEXT + SECRET)
    ann.pull("merge")
    bob.write("a.txt", "zero\n" + TEXT)
    bob.push()
    ann.write("a.txt", TEXT)
    ann.pull()
    assert ann.read("a.txt").decode() == "zero\n" + TEXT
    assert ann.push().seal is None
