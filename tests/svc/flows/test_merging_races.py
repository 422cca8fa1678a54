"""Races, lies and kills while edits of one text are merged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.core.errors import ServerMisbehaved
from localstore.core.identity.keys import DeviceKey
from localstore.core.model.live import UpdateAnswers, UpdateBatch
from localstore.folder.files import Files
from localstore.sync.working_copy import WorkingCopy
from svc.flows.pull import pull
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import Place
from tests.svc.flows.merging import (
    BOTH,
    TEXT,
    in_conflict,
    live,
    one_side,
    other_side,
    people,
    people_with,
    relay,
    timeout,
)

__all__ = ["people", "relay"]


class Busy(ModelTransport):
    """Somebody else changes the text before each batch of updates. `turns`: what they write."""

    turns: Iterator[Callable[[], None]]
    kinds: list[bool]

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        self.kinds += [one.typed for one in batch.updates if one.kind == "edit_text"]
        for act in self.turns:
            act()
            break
        return super().updates(batch)


def test_after_three_refusals_the_merged_update_goes_as_typed(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, bob = people
    kinds: list[bool] = []

    def writes(number: int) -> Callable[[], None]:
        def act() -> None:
            ann.pull("merge")
            ann.write("app.py", ann.read("app.py").decode() + f"\n\n# note {number}\n")
            live(ann)

        return act

    turns = iter([writes(number) for number in range(4)])

    def busy(_: object) -> Busy:
        made = Busy(relay, "main")
        made.turns, made.kinds = turns, kinds
        return made

    bob.wrap = busy  # type: ignore[assignment]
    bob.write("app.py", one_side(TEXT))
    pushed = bob.push()
    assert kinds == [False, False, False, True]
    assert pushed.seal
    bob.wrap = lambda transport: transport
    bob.pull("merge")
    ann.pull("merge")
    assert ann.files() == bob.files() == relay.tree("main")
    expected = one_side(TEXT) + "".join(f"\n\n# note {number}\n" for number in range(4))
    assert ann.read("app.py").decode() == expected


class Mixing(ModelTransport):
    """A relay that says it has another text than was sent."""

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        found = super().updates(batch)
        answers = [type(one)(**{**_members(one), "digest": digest(b"mixed").hex()}) for one in found.answers]
        return UpdateAnswers(seq=found.seq, answers=answers)


def _members(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__struct_fields__}  # type: ignore[attr-defined]


def test_a_relay_that_has_another_text_than_was_sent_is_named_and_asked_again(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, _ = people
    ann.wrap = lambda _: Mixing(relay, "main")  # type: ignore[assignment]
    ann.write("app.py", timeout(60))
    with pytest.raises(ServerMisbehaved, match=r"app\.py and has another text than was sent"):
        ann.push()
    ann.wrap = lambda transport: transport
    ann.pull("merge")
    assert ann.push().seal
    assert relay.tree("main") == ann.files() == {"app.py": timeout(60).encode()}


# --- killed


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


@contextmanager
def killed_at_step(device: WorkingCopy, number: int) -> Iterator[None]:
    """Die after so many steps of the database."""
    real, left = device.db.step, [number]

    @contextmanager
    def fragile() -> Iterator[None]:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        with real():
            yield

    device.db.step = fragile  # type: ignore[method-assign]
    yield


@pytest.mark.parametrize("conflict", [False, True], ids=["merged", "in conflict"])
def test_a_pull_killed_at_any_step_is_finished_by_the_next(tmp_path: Path, conflict: bool) -> None:
    for number in range(40):
        base, here = tmp_path / str(number), ModelRelay()
        base.mkdir()
        ann, bob = people_with(here, base)
        theirs = timeout(45) if conflict else one_side(TEXT)
        mine = timeout(60) if conflict else other_side(TEXT)
        ann.write("app.py", theirs)
        ann.push()
        bob.write("app.py", mine)
        finished = False
        try:
            with bob.device() as device, killed_at_step(device, number):
                pull(device, "merge")
                finished = True
        except Killed:
            pass
        bob.pull("merge")
        if conflict:
            in_conflict(bob, theirs, mine)
            with bob.device() as device:
                [record] = device.db.conflicts.list()
                assert bob.read(record.kept_as).decode() == mine
        else:
            assert bob.files() == {"app.py": BOTH.encode()}
        bob.push()
        ann.pull("merge")
        assert ann.files() == bob.files() == here.tree("main")
        if finished:
            assert number > 1, "nothing was killed"
            return
    raise AssertionError("a pull has more steps than were tried")


def test_an_answer_that_was_lost_is_not_sent_twice(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people

    class Lost(ModelTransport):
        def updates(self, batch: UpdateBatch) -> UpdateAnswers:
            super().updates(batch)
            raise Killed

    bob.write("app.py", other_side(TEXT))
    bob.wrap = lambda _: Lost(relay, "main")  # type: ignore[assignment]
    with pytest.raises(Killed):
        bob.push()
    bob.wrap = lambda transport: transport
    ann.pull("merge")
    ann.write("app.py", one_side(ann.read("app.py").decode()))
    ann.push()
    bob.write("app.py", other_side(TEXT) + "# more\n")
    bob.pull("merge")
    assert bob.files() == {"app.py": (BOTH + "# more\n").encode()}
    bob.push()
    assert relay.tree("main") == bob.files()


def test_a_refusal_that_was_lost_leaves_the_edit_to_be_merged(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, bob = people

    class Lost(ModelTransport):
        def updates(self, batch: UpdateBatch) -> UpdateAnswers:
            answer = super().updates(batch)
            assert [one.code for one in answer.answers] == ["lane_moved"]
            raise Killed

    ann.write("app.py", timeout(60))
    live(ann)
    bob.write("app.py", timeout(60))
    bob.wrap = lambda _: Lost(relay, "main")  # type: ignore[assignment]
    with pytest.raises(Killed):
        bob.push()
    bob.wrap = lambda transport: transport
    bob.pull("merge")
    assert bob.files() == relay.tree("main") == {"app.py": timeout(60).encode()}


# --- an edit that is in the lane alone


class Saving(Files):
    """Somebody saves right before a write lands, and the process dies before the two are written together."""

    save: Callable[[], None] | None = None

    def exchange(self, path: str, other: str) -> None:
        if self.save is not None:
            self.save()
            self.save = None
            self.create = self.die  # type: ignore[method-assign]
        super().exchange(path, other)

    def die(self, *_: object) -> os.stat_result:
        raise Killed


def saved_in_between(ann: Place, bob: Place) -> None:
    """Bob's save slips into the write of ann's edit; his is in his folder's record, and in no file."""
    ann.write("app.py", one_side(TEXT))
    ann.push()
    with pytest.raises(Killed), bob.device() as device:
        device.files.close()
        device.files = files = Saving(bob.folder)
        files.save = lambda: bob.write("app.py", other_side(TEXT))
        pull(device, "merge")
    assert bob.files() == {"app.py": one_side(TEXT).encode()}


def texts_of(place: Place) -> set[bytes]:
    """All files, and what is in the trash."""
    trash = (place.home.root / "trash").rglob("*")
    return {*place.files().values(), *(one.read_bytes() for one in trash if one.is_file())}


def test_a_save_in_the_lane_alone_is_written_by_the_next_pull(people: tuple[Place, Place]) -> None:
    ann, bob = people
    saved_in_between(ann, bob)
    bob.pull("merge")
    assert bob.files() == {"app.py": BOTH.encode()}


@pytest.mark.parametrize("moved", [False, True], ids=["alone", "with an edit by others"])
def test_bytes_over_a_save_in_the_lane_alone_leave_it_whole(people: tuple[Place, Place], moved: bool) -> None:
    ann, bob = people
    saved_in_between(ann, bob)
    if moved:
        ann.write("app.py", one_side(TEXT) + "# the end\n")
        ann.push()
    bob.write("app.py", b"\0bytes")
    bob.pull("merge")
    found = texts_of(bob)
    assert b"\0bytes" in found
    assert any(BOTH.encode() in one for one in found)


def test_a_forced_pull_trashes_a_save_in_the_lane_alone(people: tuple[Place, Place]) -> None:
    ann, bob = people
    saved_in_between(ann, bob)
    bob.pull("force")
    assert bob.files() == {"app.py": one_side(TEXT).encode()}
    assert BOTH.encode() in texts_of(bob)


def test_another_key_takes_a_save_in_the_lane_alone_along(people: tuple[Place, Place]) -> None:
    ann, bob = people
    saved_in_between(ann, bob)
    bob.key = DeviceKey.generate(b"another".ljust(32, b"."))
    bob.pull("merge")
    assert any(BOTH.encode() in one for one in texts_of(bob))
