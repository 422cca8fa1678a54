"""Binary files that the branch renamed or copied are copied here, and not fetched again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from localstore.sync.transfer.transport import Transport
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place
from tests.svc.flows.test_large_files import noise

ICONS = {f"icons/{number}.bin": b"\0" + noise(number, 900) for number in range(20)}
SCENE = noise(50, 3_000_000)


class CountingTransport:
    """A transport that counts the bytes of fetched objects."""

    fetched = 0

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        for piece in self._transport.fetch_pack(digests):
            CountingTransport.fetched += len(piece)
            yield piece


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    ann = Place(tmp_path, relay, "ann")
    for path, data in ICONS.items():
        ann.write(path, data)
    ann.write("scene.bin", SCENE)
    ann.write("notes.txt", "one\n")
    ann.push("One")
    return ann


@pytest.fixture
def bob(ann: Place, relay: ModelRelay, tmp_path: Path) -> Place:
    bob = Place(tmp_path, relay, "bob")
    bob.pull()
    bob.wrap = lambda transport: CountingTransport(transport)  # type: ignore[assignment,return-value]
    CountingTransport.fetched = 0
    return bob


def _rename(place: Place, old: str, new: str) -> None:
    (place.folder / new).parent.mkdir(exist_ok=True, parents=True)
    (place.folder / old).rename(place.folder / new)


def _brought(ann: Place, bob: Place, **options: bool) -> int:
    """How many bytes bob's pull of ann's work fetches. Afterwards both folders are equal."""
    ann.push("Two")
    bob.pull("merge", **options)
    assert bob.files() == ann.files()
    return CountingTransport.fetched


def test_a_pull_of_renamed_files_fetches_none_of_them(ann: Place, bob: Place) -> None:
    _rename(ann, "icons", "pictures/icons")
    _rename(ann, "scene.bin", "scenes/one.bin")
    assert _brought(ann, bob) < 1000
    assert not (bob.folder / "icons").exists()


def test_a_pull_of_a_copied_file_fetches_nothing(ann: Place, bob: Place) -> None:
    ann.write("again.bin", SCENE)
    assert _brought(ann, bob) < 1000


def test_two_files_that_change_names(ann: Place, bob: Place) -> None:
    _rename(ann, "icons/1.bin", "x")
    _rename(ann, "icons/2.bin", "icons/1.bin")
    _rename(ann, "x", "icons/2.bin")
    _brought(ann, bob)


def test_a_file_in_whose_place_a_folder_is(ann: Place, bob: Place) -> None:
    _rename(ann, "scene.bin", "x")
    _rename(ann, "x", "scene.bin/one.bin")
    _brought(ann, bob)


def test_a_folder_in_whose_place_a_file_of_it_is(ann: Place, bob: Place) -> None:
    for path in list(ICONS)[1:]:
        (ann.folder / path).unlink()
    _rename(ann, "icons/0.bin", "x")
    (ann.folder / "icons").rmdir()
    _rename(ann, "x", "icons")
    _brought(ann, bob)


def test_a_renamed_file_that_was_edited_here_keeps_the_edit(ann: Place, bob: Place) -> None:
    _rename(ann, "scene.bin", "one.bin")
    bob.write("scene.bin", SCENE[:-1] + b"!")
    ann.push("Two")
    pulled = bob.pull("merge")
    assert "scene.bin" not in bob.files()
    kept = [path for path, data in bob.files().items() if data == SCENE[:-1] + b"!"]
    assert kept == ["one.bin"] or kept == [conflict.kept_as for conflict in pulled.conflicts]


def test_a_dry_run_names_the_same_files(ann: Place, bob: Place) -> None:
    _rename(ann, "scene.bin", "one.bin")
    ann.push("Two")
    before = bob.files()
    dry = bob.pull("merge", dry_run=True)
    assert bob.files() == before
    done = bob.pull("merge")
    assert (dry.changed, dry.removed) == (done.changed, done.removed)
    assert bob.files() == ann.files()
