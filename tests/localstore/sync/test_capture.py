"""What the walk read is what is captured; what was saved since is captured by the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import begin
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    place = Place(tmp_path, ModelRelay(), "ann")
    place.write("a.txt", "one\n")
    place.push()
    return place


def test_a_save_between_the_walk_and_the_capture(ann: Place) -> None:
    ann.write("a.txt", "one\ntwo\n")
    with ann.device() as device:
        begin(device)
        scan = device.scan()
        ann.write("a.txt", "one\ntwo\nthree\n")
        compose(device, scan)
        assert device.entries["a.txt"].want == digest(b"one\ntwo\n")
        send(device)
    assert ann.relay.tree("main") == {"a.txt": b"one\ntwo\n"}
    assert ann.push().sent == ["a.txt"]
    assert ann.relay.tree("main") == {"a.txt": b"one\ntwo\nthree\n"}


def test_an_edited_text_is_read_once(ann: Place) -> None:
    ann.write("a.txt", "one\ntwo\n")
    with ann.device() as device:
        begin(device)
        scan = device.scan()
        (ann.folder / "a.txt").unlink()
        compose(device, scan)
        assert device.entries["a.txt"].want == digest(b"one\ntwo\n")


def test_only_edited_texts_are_held(ann: Place) -> None:
    ann.write("a.txt", b"\0bytes")
    ann.write("b.txt", "new\n")
    with ann.device() as device:
        assert held(device, b"\0bytes", b"new\n") == []
        device.scan()
        assert held(device, b"\0bytes", b"new\n") == []
        ann.write("a.txt", "edited\n")
        device.scan(lean=True)
        assert held(device, b"edited\n") == []
    ann.write("a.txt", "again\n")
    with ann.device() as device:
        device.scan()
        assert held(device, b"again\n") == [b"again\n"]


def held(device: WorkingCopy, *texts: bytes) -> list[bytes]:
    return [text for text in texts if device.objects.get_cached(digest(text)) is not None]
