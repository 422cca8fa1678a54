"""A look where the watcher says so finds what a walk of everything finds, whatever changed in between."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from localstore.folder.files import Files
from localstore.folder.scan import scan
from localstore.folder.scan_result import Scan
from localstore.record.database import SealedFile
from localstore.record.entry import known_by_bytes
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place
from tests.localstore.watch.changing import Changing
from tests.localstore.watch.watching import watched

ROOT = Path(__file__).resolve().parents[3]
ROUNDS = 12
ACTS = 5


@pytest.mark.parametrize("seed", range(40))
def test_random_changes(tmp_path: Path, seed: int) -> None:
    play(tmp_path, seed)


def play(root: Path, seed: int) -> None:
    place = Place(root, ModelRelay(), "ann")
    changing = Changing(place.folder, seed)
    for _ in range(30):
        changing.act()
    with place.device() as device:
        record = device.record
    try:
        with watched(place.folder, record) as running:
            for _ in range(ROUNDS):
                for _ in range(changing.chance.randrange(ACTS)):
                    changing.act()
                with place.device() as device:
                    found = device.scan(lean=True)
                    judge(device, found, changing)
                    know_other_paths(device, found, changing)
            assert not running.ended
    finally:
        changing.close()
        subprocess.run(["chmod", "-R", "u+rwX", place.folder], check=True)  # for whoever removes it


BUSY = """
import sys
from pathlib import Path
from tests.localstore.watch.changing import Changing

changing = Changing(Path(sys.argv[1]), int(sys.argv[2]))
for _ in range(150):
    changing.act()
"""


@pytest.mark.parametrize("seed", range(6))
def test_changes_during_looks(tmp_path: Path, seed: int) -> None:
    play_busily(tmp_path, seed)


def play_busily(root: Path, seed: int) -> None:
    """Somebody changes the folder while it is looked at; when they rest, nothing may have been missed."""
    place = Place(root, ModelRelay(), "ann")
    changing = Changing(place.folder, seed)
    with place.device() as device:
        record = device.record
    try:
        with watched(place.folder, record) as running:
            for number in range(3):
                busy = subprocess.Popen(
                    [sys.executable, "-c", BUSY, str(place.folder), str(100 * seed + number)], cwd=ROOT
                )
                while busy.poll() is None:
                    with place.device() as device:
                        device.scan(lean=True)
                assert busy.returncode == 0
                with place.device() as device:
                    judge(device, device.scan(lean=True), changing)
            assert not running.ended
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", place.folder], check=True)


def judge(device: WorkingCopy, found: Scan, changing: Changing) -> None:
    """Against a walk that knows nothing of before."""
    with closing(Files(device.folder)) as files:
        truth, _ = scan(files, {}, device.db)
    tale = "\n".join(changing.acts)
    assert {p: one.digest for p, one in found.files.items()} == {
        p: one.digest for p, one in truth.files.items()
    }, tale
    assert all(found.find(path) == one for path, one in found.files.items()), tale
    assert found.find("no such file") is None
    assert found.skipped == truth.skipped, tale
    assert found.hidden == truth.hidden, tale
    assert found.ignored == truth.ignored, tale
    sealed = {path: one.digest for path, one in device.db.read_sealed().items()}
    disk = {path: one.digest for path, one in truth.files.items()}
    both = sealed.keys() & disk.keys()
    expected = (
        sorted(path for path in both if sealed[path] != disk[path]),
        sorted(disk.keys() - sealed.keys()),
        sorted(sealed.keys() - disk.keys()),
    )
    assert device.db.changes_since_seal() == expected, tale


def know_other_paths(device: WorkingCopy, found: Scan, changing: Changing) -> None:
    """Sometimes some files, ignored ones too, become tracked or sealed, or are so no longer."""
    chance = changing.chance
    if chance.random() < 0.5:
        return
    names = [*found.files, "build/a", "x/c.log", "y/a", "x/y/b.txt"]
    for path in chance.sample(names, min(3, len(names))):
        if path in device.entries:
            device.forget(path)
        else:
            device.save(known_by_bytes(path, "text", b"." * 32, 1))
        changing.acts.append(f"tracked {path}: {path in device.entries}")
    if chance.random() < 0.5:
        with device.db.step():
            device.db.change_sealed(
                (path, None if chance.random() < 0.3 else SealedFile(one.kind, one.digest, one.size))
                for path, one in chance.sample(sorted(found.files.items()), min(3, len(found.files)))
            )
