"""Conflict copies whose place became a file: they are kept beside it, also after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.record.database import Intent
from localstore.sync.aside import MOVING, forget_and_move_aside
from localstore.sync.conflicts import record_versions
from localstore.sync.settle import recover
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    ann = Place(tmp_path, ModelRelay(), "ann")
    ann.write("lib", "a file\n")
    ann.write("a.txt", "mine\n")
    ann.push("One")
    return ann


@pytest.mark.parametrize("of", ["lib/b.txt", "a.txt/b.txt", "lib/deep/b.txt"])
@pytest.mark.parametrize("killed", [False, True])
def test_a_copy_of_a_path_below_a_file(ann: Place, of: str, killed: bool) -> None:
    with ann.device() as copy:
        if killed:
            with copy.db.step():
                copy.forget("a.txt")
                copy.db.put_intents([Intent("a.txt", of, None, None, MOVING)])
            recover(copy)
        else:
            forget_and_move_aside(copy, "a.txt", of)
        [recorded] = copy.db.conflicts.list()
        assert (recorded.path, "/" in recorded.kept_as) == (of, False)
        assert copy.db.intents() == []
    assert (ann.read(recorded.kept_as), ann.read("lib")) == (b"mine\n", b"a file\n")
    assert "a.txt" not in ann.files()


def test_a_recorded_name_below_what_became_a_file(ann: Place) -> None:
    with ann.device() as copy:
        mine = copy.digest_on_disk("a.txt")
        with copy.db.step():
            record_versions(copy, "new/b.txt", b"\0" * 32, mine)
            copy.forget("a.txt")
            copy.db.put_intents([Intent("a.txt", "new/b.txt", None, None, MOVING)])
        assert [clash.kept_as.startswith("new/") for clash in copy.db.conflicts.list()] == [True]
        ann.write("new", "a file\n")  # before the move was finished
        recover(copy)
        [clash] = copy.db.conflicts.list()
        assert (clash.path, clash.theirs, "/" in clash.kept_as) == ("new/b.txt", b"\0" * 32, False)
    assert ann.read(clash.kept_as) == b"mine\n"
