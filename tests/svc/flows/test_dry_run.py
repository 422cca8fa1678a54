"""A dry run says exactly what the run then does: random folders and branches, both compared."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.core.encoding import digest
from localstore.core.errors import SvcError
from localstore.errors import EditsConflict
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from svc.flows import push
from svc.flows.common import begin
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

PATHS = ("a.txt", "b.txt", "d/c.txt", "d/e/f.txt", "x.bin", "d/y.bin", "d", "b.txt/z")
TEXTS = tuple(f"one\ntwo {word}\nthree\n\nfour {word}\nfive\n" for word in ("red", "green", "blue", "grey"))
SEEDS = 120


def records(place: Place) -> list[str]:
    """The record of a working copy as SQL, without what looks at the folder leave there."""
    with place.device() as device:
        path = device.record / "state.db"
    found = sqlite3.connect(path)
    skip = ("folders", "single", "looked", "differs", "asides", "marks")
    try:
        return [line for line in found.iterdump() if not any(f'INTO "{name}' in line for name in skip)]
    finally:
        found.close()


def edit(chance: random.Random, place: Place) -> None:
    path = chance.choice(PATHS)
    target = place.folder / path
    if chance.random() < 0.2 and target.is_file():
        target.unlink()
        return
    if target.is_dir() or any(above.is_file() for above in target.parents):
        return
    text = chance.choice(TEXTS)
    if chance.random() < 0.4:
        text = text.replace("three", chance.choice(("3", "three and a half")))
    place.write(path, b"\0" + text.encode() if path.endswith("bin") else text)


def live(place: Place) -> None:
    """Edits that reach the branch and no seal."""
    with place.device() as device:
        begin(device)
        compose(device, device.scan())
        send(device)


def quietly(work: Callable[[], object]) -> None:
    with suppress(SvcError):
        work()


def outcome(work: Callable[[], Any]) -> tuple[object, object]:
    try:
        found = msgspec.to_builtins(work(), enc_hook=str)
    except EditsConflict as error:  # the run has two files to look at, the dry run names what makes them
        return type(error).__name__, error.conflicts
    except SvcError as error:
        return type(error).__name__, error.detail
    return "done", found


def step(chance: random.Random, place: Place) -> None:
    for _ in range(chance.randrange(4)):
        edit(chance, place)
    work = chance.choice(
        (
            lambda: live(place),
            place.push,
            lambda: place.pull("merge"),
            lambda: place.pull("force"),
            lambda: None,
        )
    )
    quietly(work)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_dry_run_says_what_the_run_does(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    for _ in range(chance.randrange(3, 9)):
        step(chance, chance.choice((ann, bob)))
    for _ in range(chance.randrange(4)):
        edit(chance, ann)
    command = chance.choice(("plain", "merge", "force", "push", "push", "no_delete"))
    if chance.random() < 0.5 and command.startswith(("push", "no")):
        quietly(lambda: ann.pull("merge"))
        for _ in range(chance.randrange(4)):
            edit(chance, ann)
        if chance.random() < 0.5:
            for _ in range(2):
                edit(chance, bob)
            quietly(lambda: bob.pull("merge"))
            quietly(lambda: live(bob))

    def run(dry: bool) -> tuple[object, object]:
        if command in ("plain", "merge", "force"):
            return outcome(lambda: ann.pull(command, dry_run=dry))  # type: ignore[arg-type]
        return outcome(lambda: ann.push("sealed", no_delete=command == "no_delete", dry_run=dry))

    before, known, tree = ann.files(), records(ann), relay.tree("main")
    foretold = run(True)
    assert ann.files() == before
    assert records(ann) == known
    assert relay.tree("main") == tree
    assert run(True) == foretold, "a dry run leaves nothing behind, not even for another one"
    came = run(False)
    if command in ("plain", "merge", "force"):
        _compare_pull(foretold, came, before, ann.files())
    else:
        _compare_push(foretold, came)


def _compare_pull(
    foretold: tuple[object, object],
    came: tuple[object, object],
    before: dict[str, bytes],
    after: dict[str, bytes],
) -> None:
    assert foretold[0] == came[0], (foretold, came)
    if came[0] != "done":
        assert foretold == came
        return
    told, done = _dict(foretold), _dict(came)
    for name in ("seal", "changed", "live", "merged", "conflicts", "skipped", "given_up", "replaced"):
        assert told[name] == done[name], name
    touched = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    kept = {one["path"]: one["kept_as"] for one in done["conflicts"]}
    copies = set(kept.values())
    below = {path for path in touched if any(path.startswith(f"{copy}/") for copy in copies)}
    moved = {path for path in touched if any(path == old or path.startswith(f"{old}/") for old in kept)}
    assert touched - below - moved <= {*told["changed"], *copies, *done["given_up"]}


def _compare_push(foretold: tuple[object, object], came: tuple[object, object]) -> None:
    assert foretold[0] == came[0], (foretold, came)
    if came[0] != "done":
        assert foretold == came
        return
    told, done = _dict(foretold), _dict(came)
    for name in ("sent", "removed", "skipped", "refused", "merged", "conflicts", "kind", "size"):
        assert told[name] == done[name], name
    assert told["unsealed"] == (done["seal"] is not None)


def _dict(found: tuple[object, object]) -> dict[str, Any]:
    assert isinstance(found[1], dict)
    return found[1]


def test_a_conflict_is_foretold_by_name_and_nothing_is_written(tmp_path: Path) -> None:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("c.bin", b"\0one")
    ann.push()
    bob.pull()
    ann.write("c.bin", b"\0ann")
    ann.push()
    bob.write("c.bin", b"\0bob")
    foretold = bob.pull("merge", dry_run=True)
    assert bob.files() == {"c.bin": b"\0bob"}
    assert bob.pull("merge").conflicts == foretold.conflicts
    assert [one.path for one in foretold.conflicts] == ["c.bin"]


def in_each_others_way(tmp_path: Path) -> Place:
    """A folder with an edit that a live edit by somebody else contradicts."""
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", "timeout = 30\n")
    ann.push()
    bob.pull()
    ann.write("a.txt", "timeout = 45\n")
    live(ann)
    bob.write("a.txt", "timeout = 60\n")
    return bob


def test_a_conflict_that_will_stop_a_push_is_foretold_with_the_way_out(tmp_path: Path) -> None:
    bob = in_each_others_way(tmp_path)
    with pytest.raises(EditsConflict, match=r"would not be sealed: a\.txt .*run: svc pull --merge") as told:
        bob.push(dry_run=True)
    assert bob.files() == {"a.txt": b"timeout = 60\n"}
    assert bob.pull("merge").conflicts == told.value.conflicts
    (kept,) = told.value.conflicts
    assert bob.files() == {"a.txt": b"timeout = 45\n", kept.kept_as: b"timeout = 60\n"}
    assert bob.push().seal is not None


def test_a_dry_run_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = in_each_others_way(tmp_path)
    monkeypatch.setattr(push, "PAUSE", float("nan"))  # sleeping for it is a ValueError
    with pytest.raises(EditsConflict):
        bob.push(dry_run=True)
    with pytest.raises(ValueError, match="NaN"):
        bob.push()


def test_a_dry_run_fetches_no_bytes_that_nobody_needs(tmp_path: Path) -> None:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("large.bin", b"\0" * 100_000)
    ann.write("a.txt", "text\n")
    ann.push()

    asked: list[bytes] = []

    def wrapped(transport: Any) -> Any:
        real = transport.fetch_pack

        def fetch(digests: Any) -> Any:
            asked.extend(digests)
            return real(digests)

        transport.fetch_pack = fetch
        return transport

    bob.wrap = wrapped
    assert bob.pull(dry_run=True).changed == ["a.txt", "large.bin"]
    assert asked == [digest(b"text\n")]
