"""What push, pull and status say when others, another device or an interruption came between."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.cmd.push import _sentence
from svc.flows import switch as switch_flow
from svc.flows.push import PushResult, _send_all
from svc.flows.status import status
from svc.flows.switch import Target, switch
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "ann")


@pytest.fixture
def bob(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "bob")


def _save_live(place: Place) -> None:
    """As `svc watch` does: send the edits and seal nothing."""
    place.pull("merge")
    with place.device() as device:
        _send_all(device, PushResult(), True)


def test_a_seal_counts_the_saves_that_were_live_before_it(ann: Place, bob: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.pull()
    ann.write("b.txt", "live\n")
    (ann.folder / "a.txt").unlink()
    _save_live(ann)
    done = ann.push("live before")
    assert (done.sent, done.removed) == ([], [])
    assert _sentence(done) == f"Sealed {done.seal[:12]}: 1 file, 1 removed"


def test_a_seal_names_the_author_of_several_live_edits_once(ann: Place, bob: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.pull()
    for name in ("b.txt", "c.txt"):
        bob.write(name, "live\n")
    _save_live(bob)
    ann.pull()
    ann.write("a.txt", "two\n")
    assert "; also live edits by @other in b.txt, c.txt" in _sentence(ann.push())


def test_a_seal_offers_a_pull_for_what_the_folder_lacks_alone(ann: Place, bob: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.pull()
    bob.write("theirs.txt", "live\n")
    _save_live(bob)
    ann.pull()  # the folder has it, as after a watch
    ann.write("a.txt", "two\n")
    done = ann.push()
    assert done.live_by.keys() == {"theirs.txt"}
    assert _sentence(done) == f"Sealed {done.seal[:12]}: 1 file; also live edits by @other in theirs.txt"

    bob.pull()
    bob.write("theirs.txt", "live again\n")
    _save_live(bob)
    ann.write("a.txt", "three\n")
    done = ann.push()
    assert _sentence(done).endswith("in theirs.txt (svc pull brings them)")


def test_a_file_that_comes_back_after_a_delete_is_told(ann: Place, bob: Place) -> None:
    for name in ("moved.txt", "gone.txt", "kept.txt"):
        ann.write(name, f"one\ntwo\n{name}\n")
    ann.push()
    bob.pull()
    for name in ("moved.txt", "gone.txt", "kept.txt"):
        bob.write(name, f"ONE\ntwo\n{name}\n")
    bob.push()
    (ann.folder / "moved.txt").rename(ann.folder / "new.txt")
    (ann.folder / "gone.txt").unlink()
    pulled = ann.pull("merge")
    assert pulled.returned == {"gone.txt": None}
    assert "moved.txt" not in ann.files()
    assert ann.read("new.txt") == b"ONE\ntwo\nmoved.txt\n"
    assert ann.pull("merge").returned == {}


def test_status_after_an_interrupted_switch_does_not_say_that_there_is_no_seal(
    ann: Place, relay: ModelRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    side = Place(ann.folder.parent, relay, "side", "side")
    side.write("a.txt", "two\n")
    head = side.push().seal

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, ann.device() as device, pytest.raises(KeyboardInterrupt):
        patch.setattr(switch_flow, "pull", killed)
        switch(device, Target("side", relay.transport("side", ann.key), ann.key), "plain")
    ann.branch = "side"
    with ann.device() as device:
        found = status(device)
    assert found.uncompared and found.head == head
    ann.pull()
    assert ann.read("a.txt") == b"two\n"
    with ann.device() as device:
        assert not status(device).uncompared
