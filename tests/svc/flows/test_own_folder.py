"""SVC_HOME inside a working copy: its keys, sessions and records are never sent, and never overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.errors import ClientError
from localstore.folder import link
from localstore.home import Home
from svc.http.identity import FILE, load_identity
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import LINK, Place


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    """Somebody whose SVC_HOME lies in the folder."""
    place = Place(tmp_path, ModelRelay(), "ann")
    place.home = Home(place.folder / ".config/svc")
    return place


def test_a_push_sends_nothing_of_svc_home(ann: Place) -> None:
    load_identity(ann.home.root)
    ann.write("notes.txt", "words\n")
    pushed = ann.push()
    assert [(item.path, item.reason) for item in pushed.skipped] == [(".config/svc", "svc's own data")]
    with ann.device() as device:
        assert sorted(device.entries) == ["notes.txt"]


def test_an_older_svc_home_is_left_out_from_its_first_use(ann: Place) -> None:
    ann.write(".config/svc/device.json", "{}")
    ann.push()
    with ann.device() as device:
        assert not device.entries


def test_a_pull_does_not_overwrite_svc_home(ann: Place, tmp_path: Path) -> None:
    identity = load_identity(ann.home.root)
    bob = Place(tmp_path, ann.relay, "bob")
    for name in (FILE, "settings.json", "sessions/http%3A%2F%2Flocalhost"):
        bob.write(f".config/svc/{name}", "another's\n")
    bob.write(".config/other", "setting\n")
    bob.push()
    ann.pull()
    assert ann.read(".config/other") == b"setting\n"
    assert load_identity(ann.home.root).device.id == identity.device.id
    assert not (ann.home.root / "settings.json").exists() and not (ann.home.root / "sessions").exists()


def test_svc_home_itself_is_no_working_copy(ann: Place) -> None:
    ann.home = Home(ann.folder)
    with pytest.raises(ClientError, match="is SVC_HOME"):
        ann.push()


def test_svc_home_cannot_be_linked(ann: Place) -> None:
    load_identity(ann.home.root)
    with pytest.raises(ClientError, match="is never pushed; link another"):
        link.write_repo(ann.home.root, LINK)
