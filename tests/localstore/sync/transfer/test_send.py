from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LanesRequest,
    LaneStates,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
    UpdateInvalid,
)
from localstore.sync.capture import capture
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from localstore.sync.transfer.transport import Transport
from svc.flows.common import begin
from svc.flows.push import push
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place


class Asked(ModelTransport):
    """Counts what a device asks for."""

    log: list[tuple[str, Any]]

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        answer = super().bootstrap(request)
        self.log.append(("rows", len(answer.rows)))
        return answer

    def lanes(self, request: LanesRequest) -> LaneStates:
        self.log.append(("lanes", len(request.lanes)))
        return super().lanes(request)


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


def listening(place: Place) -> list[tuple[str, Any]]:
    log: list[tuple[str, Any]] = []

    def wrap(transport: Transport) -> Transport:
        assert isinstance(transport, ModelTransport)
        asked = Asked(transport.relay, transport.name)
        asked.log = log
        return asked

    place.wrap = wrap
    return log


def test_rows_of_new_files_are_not_asked_for_again(relay: ModelRelay, tmp_path: Path) -> None:
    ann = Place(tmp_path, relay, "ann")
    for number in range(5):
        ann.write(f"f{number}.txt", f"{number}\n")
    ann.push()
    log = listening(ann)
    ann.write("new.txt", "new\n")
    ann.push()
    assert log == [("rows", 0)]
    with ann.device() as device:
        assert device.db.rows().keys() == relay.branches["main"].files.keys()
        assert device.db.number("since") == relay.branches["main"].seq


def test_updates_of_others_between_ours_are_still_asked_for(relay: ModelRelay, tmp_path: Path) -> None:
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", "a\n")
    ann.push()
    bob.pull()
    bob.write("b.txt", "b\n")
    bob.push()
    ann.pull()

    class Between(ModelTransport):
        """Bob's update arrives after Ann has seen the frontier and before hers."""

        def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
            answer = super().bootstrap(request)
            if not done:
                done.append(True)
                bob.write("between.txt", "b\n")
                (bob.folder / "b.txt").unlink()
                bob.push()
            return answer

    done: list[bool] = []
    ann.wrap = lambda transport: Between(relay, "main")
    ann.write("c.txt", "c\n")
    with pytest.raises(Exception, match="svc pull"):
        ann.push()
    ann.wrap = lambda transport: transport
    ann.pull("merge")
    ann.push()
    bob.pull()
    assert ann.files() == bob.files() == {"a.txt": b"a\n", "between.txt": b"b\n", "c.txt": b"c\n"}


def test_a_new_epoch_is_followed_without_losing_a_round(tmp_path: Path) -> None:
    relay = ModelRelay()
    relay.random.random = lambda: 1.0  # type: ignore[method-assign] - every lane gets its new epoch
    ann = Place(tmp_path, relay, "ann")
    ann.write("a.txt", "one\n")
    ann.write("b.txt", "one\n")
    ann.push()
    ann.write("a.txt", "one\ntwo\n")
    ann.push()
    log = listening(ann)
    ann.write("a.txt", "one\ntwo\nthree\n")
    pushed = ann.push()
    assert pushed.sent == ["a.txt"]
    assert [what for what, _ in log] == ["rows"]
    assert relay.tree("main")["a.txt"] == b"one\ntwo\nthree\n"


class Thrifty(ModelTransport):
    """A relay that has a smaller budget for the edits of one file than this device thinks. `taken`: the
    number of operations of every update that came, None for a new version."""

    budget: int
    taken: list[int | None]

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        self.taken += [one.ops and len(one.ops) for one in batch.updates]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(limits, "UPDATE_WORK", self.budget)
            try:
                return super().updates(batch)
            except UpdateInvalid as error:
                (one,) = batch.updates
                refused = UpdateAnswer(n=one.n, result="refused", code=error.code, detail=error.detail)
                return UpdateAnswers(seq=self.branch.seq, answers=[refused])


def thrifty(place: Place, budget: int) -> list[int | None]:
    taken: list[int | None] = []

    def wrap(transport: Transport) -> Transport:
        assert isinstance(transport, ModelTransport)
        made = Thrifty(transport.relay, transport.name)
        made.budget, made.taken = budget, taken
        return made

    place.wrap = wrap
    return taken


def captured(place: Place, path: str, saves: Iterable[str]) -> None:
    """Each of the saves becomes an operation of its own, none of which is sent."""
    for text in saves:
        place.write(path, text)
        with place.device() as device:
            capture(device, [path])


def test_captured_edits_go_in_updates_of_a_few(relay: ModelRelay, tmp_path: Path) -> None:
    ann = Place(tmp_path, relay, "ann")
    ann.write("a.txt", "0\n")
    ann.push()
    captured(ann, "a.txt", ["".join(f"{line}\n" for line in range(n)) for n in range(2, 22)])
    taken = thrifty(ann, limits.UPDATE_WORK)
    assert ann.push().sent == ["a.txt"]
    assert taken == [limits.EDITS_AT_ONCE, limits.EDITS_AT_ONCE, 20 - 2 * limits.EDITS_AT_ONCE]
    assert relay.tree("main") == ann.files()


def test_edits_that_are_too_costly_for_the_relay_go_as_a_new_version(
    relay: ModelRelay, tmp_path: Path
) -> None:
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", "0\n")
    ann.push()
    bob.pull()
    captured(ann, "a.txt", ["".join(f"{line}\n" for line in range(n)) for n in (40, 60)])
    taken = thrifty(ann, 2)
    pushed = ann.push()
    assert (pushed.sent, pushed.refused) == (["a.txt"], {})
    assert taken == [2, None]
    bob.pull()
    assert relay.tree("main") == ann.files() == bob.files()


def test_the_first_edit_of_a_lane_is_kept_as_its_update(relay: ModelRelay, tmp_path: Path) -> None:
    ann, text = Place(tmp_path, relay, "ann"), "".join(f"line {number}\n" for number in range(2000))
    ann.write("a.txt", text)
    ann.push()
    ann.write("a.txt", text.replace("line 7\n", "line seven\n"))
    with ann.device() as device:
        begin(device)
        compose(device, device.scan())
        send(device)
        entry, lane = device.entries["a.txt"], relay.branches["main"].files["a.txt"].lane
        update, whole = device.db.lane_state("a.txt") or (b"", True)
        assert (len(update) < 100, whole) == (True, False)
        assert lane is not None
        ours = Lane.load(device.confirmed_state(entry) or b"")
        assert (ours.count_units(), ours.text()) == (lane.count_units(), ann.read("a.txt"))
    ann.write("a.txt", text.replace("line 7\n", "line 7!\n").replace("line 9\n", ""))
    with ann.device() as device:
        begin(device)
        compose(device, device.scan())
        send(device)
        entry, lane = device.entries["a.txt"], relay.branches["main"].files["a.txt"].lane
        assert lane is not None
        assert device.db.lane_state("a.txt") == (lane.state(), True)
        assert device.confirmed_state(entry) == lane.state()
    assert ann.push().seal
    assert relay.tree("main") == {"a.txt": ann.read("a.txt")}


def test_edits_of_long_texts_go_in_several_batches(
    relay: ModelRelay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The relay loads every text that a batch edits."""
    ann = Place(tmp_path, relay, "ann")
    for number in range(5):
        ann.write(f"{number}.txt", "a line\n" * 100)
    ann.push()
    monkeypatch.setattr(limits, "EDITED_TEXTS", 1500)
    sent: list[int] = []

    class Counted(ModelTransport):
        def updates(self, batch: UpdateBatch) -> UpdateAnswers:
            sent.append(len(batch.updates))
            return super().updates(batch)

    ann.wrap = lambda _: Counted(relay, "main")
    for number in range(5):
        ann.write(f"{number}.txt", f"{number}\n" + "a line\n" * 100)
    ann.push()
    assert sent[:3] == [2, 2, 1]


def test_the_bytes_of_a_pack_are_reported_while_it_is_sent(relay: ModelRelay, tmp_path: Path) -> None:
    ann, size = Place(tmp_path, relay, "ann"), 3 * limits.MIB
    ann.write("a.bin", random.Random(1).randbytes(size))
    reports: list[tuple[int, int | None, int]] = []

    def progress(phase: str, done: int, total: int | None, bytes: int = 0) -> None:
        if phase == "upload":
            reports.append((done, total, bytes))

    with ann.device() as device:
        device.progress = progress
        push(device, "One")
    done, total, sent = reports[-1]
    assert (done, sent >= size) == (total, True)
    assert len({bytes for _, _, bytes in reports}) > size / (128 * limits.KIB)
    assert all(bytes == sent for done, _, bytes in reports if done == total)
