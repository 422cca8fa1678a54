"""A folder lacks what its own seal has of others: `svc status` says that a pull brings it, and does not take
it for edits of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.flows.status import FolderStatus, status
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place
from tests.svc.flows.test_may_only_read import send_live


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    """Ann's seal has edits of bob that her folder lacks."""
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    for path in ("a.txt", "b.txt", "c.txt"):
        ann.write(path, "one\n")
    ann.push()
    bob.pull()
    bob.write("a.txt", "one\ntwo\n")
    bob.write("z.txt", "new\n")
    send_live(bob)
    ann.write("q.txt", "mine\n")
    ann.push()
    return ann


def looked_at(place: Place) -> FolderStatus:
    with place.device() as copy:
        return status(copy, offline=True)


def test_it_is_named_apart(ann: Place) -> None:
    found = looked_at(ann)
    assert found.lacking == ["a.txt", "z.txt"]
    assert (found.changed, found.new, found.removed) == ([], [], [])
    ann.pull()
    found = looked_at(ann)
    assert (found.lacking, found.changed, found.removed) == ([], [], [])


def test_edits_of_this_folder_stay_edits(ann: Place) -> None:
    ann.write("a.txt", "mine\none\n")
    ann.write("b.txt", "mine\n")
    (ann.folder / "c.txt").unlink()
    found = looked_at(ann)
    assert (found.lacking, found.changed, found.removed) == (["z.txt"], ["a.txt", "b.txt"], ["c.txt"])
    send_live(ann)
    found = looked_at(ann)
    assert "b.txt" in found.changed
    assert found.removed == ["c.txt"]
