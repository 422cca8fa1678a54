"""A directory or a file that the user may not write: it holds up no other file, and is named."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.errors import DiskError
from svc.flows.restore import restore
from svc.flows.status import status
from tests.localstore.live.test_rest import Device, require_rest
from tests.localstore.model_relay import ModelRelay

FILES = ("a.txt", "other.txt", "src/one.txt", "src/gone.txt")


@contextmanager
def forbidden(path: Path) -> Iterator[None]:
    """A context in which nobody may write the file, or change the directory. For root that is an attribute of
    the file system."""
    if os.geteuid():
        mode = path.stat().st_mode
        path.chmod(mode & ~0o222)
        try:
            yield
        finally:
            path.chmod(mode)
        return
    if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", path], check=False).returncode:
        pytest.skip("as root on a file system without attributes, everything can be written")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Device, Device]]:
    relay = ModelRelay()
    ann, bob = Device(tmp_path, relay, "ann"), Device(tmp_path, relay, "bob")
    for path in FILES:
        ann.place.write(path, "old\n")
    ann.place.push()
    bob.place.pull()
    for device in (ann, bob):
        device.turn()
    yield ann, bob
    for device in (ann, bob):
        device.rounds.close()


def change(ann: Device) -> None:
    for path in ("a.txt", "other.txt", "src/one.txt", "src/new.txt"):
        ann.save(path, b"new\n")
    ann.remove("src/gone.txt")
    ann.capture()


def test_live_sync_goes_on_beside_a_forbidden_directory(pair: tuple[Device, Device]) -> None:
    ann, bob = pair
    change(ann)
    with forbidden(bob.place.folder / "src"):
        require_rest(ann.place.relay, ann)
        for _ in range(6):
            bob.connected = False
            bob.turn()
        files = bob.place.files()
        assert {files["a.txt"], files["other.txt"]} == {b"new\n"}
        assert (files["src/one.txt"], files["src/gone.txt"], "src/new.txt" in files) == (
            b"old\n", b"old\n", False,
        )  # fmt: skip
        with bob.place.device() as copy:
            left_out = copy.db.unwritable()
        assert set(left_out) == {"src/one.txt", "src/new.txt", "src/gone.txt"}
    bob.place.pull()
    require_rest(ann.place.relay, ann, bob)


@pytest.mark.parametrize("place", ["src", "src/one.txt"])
def test_a_pull_writes_the_others_and_names_these(pair: tuple[Device, Device], place: str) -> None:
    ann, bob = pair
    change(ann)
    require_rest(ann.place.relay, ann)
    ann.place.push()
    with forbidden(bob.place.folder / place):
        pulled = bob.place.pull()
        left = {item.path: item.reason for item in pulled.skipped}
        assert "src/one.txt" in left and "src/one.txt" not in pulled.changed
        assert all("permi" in reason for reason in left.values())
        assert bob.place.read("a.txt") == b"new\n"
        bob.place.write("a.txt", "mine\n")
        bob.place.push()  # sends nothing of what this folder could not take
    assert ann.place.relay.tree("main") == {
        "a.txt": b"mine\n", "other.txt": b"new\n", "src/one.txt": b"new\n", "src/new.txt": b"new\n",
    }  # fmt: skip
    bob.place.pull()
    ann.place.pull()
    assert bob.place.files() == ann.place.files()
    with bob.place.device() as copy:
        assert status(copy).skipped == []


def test_what_the_user_asks_for_is_refused_by_name(pair: tuple[Device, Device]) -> None:
    _, bob = pair
    bob.save("src/one.txt", b"mine\n")
    with (
        forbidden(bob.place.folder / "src"),
        pytest.raises(DiskError) as refused,
        bob.place.device() as copy,
    ):
        restore(copy, ["src/one.txt"])
    assert "src/one.txt" in str(refused.value)
    assert bob.place.read("src/one.txt") == b"mine\n"
