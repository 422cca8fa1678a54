"""At rest the disk is the frontier: saves, removals and renames of texts and bytes on two devices, with the
relay away and back, against the model relay."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localstore.live.rounds import Rounds
from localstore.sync.transfer.send import batch_of
from localstore.sync.working_copy import WorkingCopy
from tests.depth import rounds
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

NAMES = ("a.txt", "b.txt", "c.bin", "d.bin", "e.bin", "sub/f.bin")


class Device:
    """A watched folder whose rounds are run by hand, in the order of `svc.agent.rounds`."""

    def __init__(self, root: Path, relay: ModelRelay, name: str) -> None:
        self.place, self.rounds = Place(root, relay, name), Rounds()
        self.connected = False
        self.saves: list[str] = []

    def round(self, work: Callable[[WorkingCopy], object]) -> None:
        with self.place.device() as copy:
            self.rounds.begin(copy, None)
            work(copy)
            self.rounds.finish(copy)

    def save(self, path: str, data: bytes) -> None:
        self.place.write(path, data)
        self.saves.append(path)

    def remove(self, path: str) -> None:
        (self.place.folder / path).unlink()
        self.saves.append(path)

    def rename(self, path: str, new: str) -> None:
        (self.place.folder / path).rename(self.place.folder / new)
        self.saves += [path, new]

    def capture(self) -> None:
        """Take in the saves, and the conflict copies that svc made, which a watcher hears of as well."""
        self.saves += [path for path in self.place.files() if "sync-conflict" in path]
        saves, self.saves = list(dict.fromkeys(self.saves)), []
        self.round(lambda copy: self.rounds.capture_saved(copy, saves))

    def turn(self) -> bool:
        """Do once what is due. Returns whether anything is left."""
        busy = False

        def work(copy: WorkingCopy) -> None:
            nonlocal busy
            if not self.connected:
                self.rounds.bootstrap(copy)
                self.connected = True
            updates = self.rounds.outgoing(copy)
            if updates:
                answers = copy.transport.updates(batch_of(copy, updates))
                sent = self.rounds.record_answers(copy, updates, answers)
                self.rounds.again(copy, [*sent.accepted, *sent.costly])
            if self.rounds.frames.paths:
                self.rounds.bring(copy)
            busy = bool(updates or self.rounds.frames.paths or copy.db.flight_kinds())

        self.round(work)
        return busy


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def devices(relay: ModelRelay, tmp_path: Path) -> Iterator[tuple[Device, Device]]:
    ann, bob = Device(tmp_path, relay, "ann"), Device(tmp_path, relay, "bob")
    for name in NAMES:
        ann.place.write(name, content(name, "first"))
    ann.place.push()
    bob.place.pull()
    yield ann, bob
    for device in (ann, bob):
        device.rounds.close()


def content(name: str, words: str) -> bytes:
    return (b"\0" if name.endswith(".bin") else b"") + words.encode() + b"\n"


def require_rest(relay: ModelRelay, *devices: Device) -> None:
    """Connect all of them and go on until nothing is left; then every disk is the frontier."""
    for _ in range(20):
        for device in devices:
            device.capture()
            device.connected = False  # what the others sent is heard of by a bootstrap
        busy = [device.turn() for device in devices]
        if not any(busy):
            break
    else:
        pytest.fail("they never came to rest")
    for device in devices:
        assert device.place.files() == relay.tree("main")


def put(device: Device, name: str) -> None:
    """A save that is captured and stays in flight."""
    device.save(name, content(name, "second"))
    device.capture()


@pytest.mark.parametrize("name", NAMES)
def test_what_is_saved_again_while_the_relay_is_away_arrives(
    relay: ModelRelay, devices: tuple[Device, Device], name: str
) -> None:
    ann, bob = devices
    put(ann, name)
    ann.save(name, content(name, "third"))
    require_rest(relay, ann, bob)
    assert bob.place.read(name) == content(name, "third")


@pytest.mark.parametrize("name", NAMES)
def test_what_is_removed_after_it_was_saved_goes(
    relay: ModelRelay, devices: tuple[Device, Device], name: str
) -> None:
    ann, bob = devices
    put(ann, name)
    ann.remove(name)
    require_rest(relay, ann, bob)
    assert not (bob.place.folder / name).exists()


@pytest.mark.parametrize("name", ["a.txt", "c.bin", "new.txt", "new.bin"])
def test_what_is_renamed_after_it_was_saved_has_its_new_name_alone(
    relay: ModelRelay, devices: tuple[Device, Device], name: str
) -> None:
    ann, bob = devices
    put(ann, name)
    ann.rename(name, f"moved-{name}")
    require_rest(relay, ann, bob)
    assert not (bob.place.folder / name).exists()
    assert bob.place.read(f"moved-{name}") == content(name, "second")


@pytest.mark.parametrize("name", ["a.txt", "c.bin"])
@pytest.mark.parametrize("data", [b"\0 bytes now\n", b"text now\n", None])
def test_a_save_of_a_path_that_may_have_no_update_yet_is_made_good(
    relay: ModelRelay, devices: tuple[Device, Device], name: str, data: bytes | None
) -> None:
    """The path waits to be brought, and turns out to be as it was."""
    ann, bob = devices
    ann.rounds.frames.paths.add(name)
    if data is None:
        ann.remove(name)
    else:
        ann.save(name, data)
    require_rest(relay, ann, bob)
    assert bob.place.files().get(name) == data


@pytest.mark.parametrize("seed", range(rounds(12, 300)))
def test_whatever_two_devices_do_all_disks_are_the_frontier_at_rest(
    relay: ModelRelay, devices: tuple[Device, Device], seed: int
) -> None:
    rolls = random.Random(seed)
    for step in range(12):
        device = rolls.choice(devices)
        here = sorted(path for path in device.place.files() if "sync-conflict" not in path)
        act = rolls.randrange(6)
        if act == 0 and here:
            device.remove(rolls.choice(here))
        elif act == 1 and here:
            old = rolls.choice(here)
            device.rename(old, f"{step}-{Path(old).name}")
        elif act == 2:
            device.turn()
        elif act == 3:
            device.capture()
        else:
            name = rolls.choice(NAMES)
            device.save(name, content(name, f"{device.place.folder.name} {step}"))
    require_rest(relay, *devices)
