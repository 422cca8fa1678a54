"""A folder on a disk that takes `Thing` and `thing` for one name.

The systems that run these tests mount none, so `Folding` finds names as such a disk does; the rest is real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.paths import case_collisions
from localstore.folder.files import Files
from localstore.home import Home
from svc.flows.clone import CloneResult, clone
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import LINK, Place


class Folding(Files):
    """Finds a name under any spelling; a new one keeps the spelling that it was made with."""

    def _parent(self, path: str, make: bool = False) -> tuple[int, str]:
        here, found = Path(self.root), []
        for name in path.split("/"):
            there = [one.name for one in here.iterdir()] if here.is_dir() else []
            known = next((one for one in there if one.casefold() == name.casefold()), name)
            found.append(known)
            here /= known
        return super()._parent("/".join(found), make)


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "ann")


def folded_clone(ann: Place, folder: Path, monkeypatch: pytest.MonkeyPatch) -> CloneResult:
    monkeypatch.setattr("localstore.sync.working_copy.Files", Folding)
    home = Home(folder.parent / "folding-home")
    return clone(ann.relay.transport("main", ann.key), home, LINK, folder, ann.key)


@pytest.mark.parametrize(
    ("names", "left_out"),
    [
        (["Thing", "thing/inner.txt"], ["thing/inner.txt"]),
        (["THING/inner.txt", "thing"], ["thing"]),
        (["A.txt", "a.txt"], ["a.txt"]),
        (["Dir/one", "dir/two"], ["dir/two"]),
    ],
)
def test_a_clone_writes_what_the_disk_can_hold_and_names_the_rest(
    names: list[str], left_out: list[str], ann: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*names, "other.txt"]:
        ann.write(name, f"{name}\n")
    ann.push()
    sealed = ann.relay.tree("main")
    done = folded_clone(ann, tmp_path / "folding", monkeypatch)
    assert [one.path for one in done.skipped] == left_out
    assert all("takes it for" in one.reason for one in done.skipped)
    place = Place.__new__(Place)
    place.__dict__.update(
        ann.__dict__ | {"folder": tmp_path / "folding", "home": Home(tmp_path / "folding-home")}
    )
    assert place.files() == {name: data for name, data in sealed.items() if name not in left_out}
    place.write("other.txt", "changed\n")
    place.push()
    assert [one.path for one in place.pull().skipped] == left_out
    assert ann.relay.tree("main") == sealed | {"other.txt": b"changed\n"}


def test_what_is_here_keeps_its_place_when_a_clashing_name_comes(
    ann: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.write("thing", "here\n")
    ann.push()
    folded_clone(ann, tmp_path / "folding", monkeypatch)
    monkeypatch.undo()
    ann.write("Thing", "another\n")
    ann.push()
    monkeypatch.setattr("localstore.sync.working_copy.Files", Folding)
    place = Place.__new__(Place)
    place.__dict__.update(
        ann.__dict__ | {"folder": tmp_path / "folding", "home": Home(tmp_path / "folding-home")}
    )
    assert [one.path for one in place.pull().skipped] == ["Thing"]
    assert place.files() == {"thing": b"here\n"}


def test_clashes_names_the_holder() -> None:
    assert case_collisions(["a", "A", "b/C", "B/c", "d"]) == {"A": "a", "B/c": "b/C"}
