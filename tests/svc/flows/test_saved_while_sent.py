"""A file that a program of this machine writes all the time, such as a log, while a push sends it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place

OLD, NEW = b"\0old", b"\0new"


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    place = Place(tmp_path, ModelRelay(), "ann")
    place.write("app.log", OLD)
    place.push("One")
    return place


def writes(place: Place, path: str, times: int) -> Any:
    """A transport before whose first uploads, `times` of them, a program writes the file."""
    left = [*range(times)]

    class Writing(ModelTransport):
        def have(self, digests: Sequence[bytes]) -> list[bytes]:
            if left:
                place.write(path, NEW + bytes([left.pop()]))
            return super().have(digests)

    return lambda _: Writing(place.relay, "main")


@pytest.mark.parametrize("path", ["app.log", "new.log"])
def test_the_rest_is_sealed_and_the_file_is_named(ann: Place, path: str) -> None:
    before = ann.relay.tree("main")
    ann.write(path, NEW)
    ann.write("notes.txt", "words\n")
    ann.wrap = writes(ann, path, 20)
    pushed = ann.push("Two")
    assert pushed.seal is not None
    assert list(pushed.refused) == [path] and "when none does" in pushed.refused[path]
    assert ann.relay.sealed_tree(pushed.seal) == {**before, "notes.txt": b"words\n"}
    ann.wrap = lambda transport: transport
    assert ann.push("Three").sent == [path]
    assert ann.relay.tree("main")[path] == ann.read(path)


def test_a_file_that_comes_to_rest_is_sent(ann: Place) -> None:
    ann.write("app.log", NEW)
    ann.wrap = writes(ann, "app.log", 2)
    pushed = ann.push("Two")
    assert (pushed.sent, pushed.refused) == (["app.log"], {})
    assert ann.relay.tree("main")["app.log"] == ann.read("app.log")
