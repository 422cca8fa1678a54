"""The outbox: order, folding, its clock, several processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore import outbox as outboxes
from localstore.outbox import Outbox, QueuedAction, moment

ORIGIN, ANN, BOB = "https://node.example", "ann", "bob"
ISSUE = "/repos/r/issues/1"


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def outbox(tmp_path: Path, clock: Clock) -> Iterator[Outbox]:
    found = Outbox(tmp_path / outboxes.FILE, clock)
    yield found
    found.close()


def add(
    outbox: Outbox, path: str, value: Any = True, account: str = ANN, origin: str = ORIGIN
) -> QueuedAction:
    return outbox.add(origin, account, account, "ann/notes", path, value)


def paths(outbox: Outbox) -> list[tuple[str, Any]]:
    return [(entry.path, entry.value) for entry in outbox.list()]


def test_actions_come_out_as_they_went_in(outbox: Outbox, tmp_path: Path) -> None:
    made = [add(outbox, f"{ISSUE}/comments/+", {"body": str(n)}) for n in range(5)]
    again = Outbox(tmp_path / outboxes.FILE)
    assert again.list() == made
    again.close()
    assert outbox.next(ORIGIN, ANN) == made[0]
    outbox.remove(made[0].id)
    assert outbox.next(ORIGIN, ANN) == made[1]
    assert outbox.next(ORIGIN, BOB) is None


def test_the_file_is_its_owners_alone(outbox: Outbox, tmp_path: Path) -> None:
    assert (tmp_path / outboxes.FILE).stat().st_mode & 0o777 == 0o600


def test_a_refused_action_moves_aside_and_returns_to_its_place(outbox: Outbox) -> None:
    first, second = add(outbox, "/a/+"), add(outbox, "/b/+")
    outbox.count_attempt(first.id)
    outbox.refuse(first.id, "forbidden", "no")
    assert outbox.next(ORIGIN, ANN) == second
    outbox.retry(first.id)
    found = outbox.next(ORIGIN, ANN)
    assert found is not None
    assert (found.id, found.state, found.attempts, found.code, found.reason) == (
        first.id,
        "waiting",
        1,
        "",
        "",
    )


def test_values_of_one_field_fold_into_the_last(outbox: Outbox) -> None:
    add(outbox, ISSUE, {"title": "one", "state": "closed"})
    add(outbox, f"{ISSUE}/comments/+", {"body": "between"})
    add(outbox, ISSUE, {"title": "two"})
    assert paths(outbox) == [
        (f"{ISSUE}/comments/+", {"body": "between"}),
        (ISSUE, {"title": "two", "state": "closed"}),
    ]
    add(outbox, f"{ISSUE}/labels/bug", True)
    add(outbox, f"{ISSUE}/labels/bug", None)
    assert paths(outbox)[-1] == (f"{ISSUE}/labels/bug", None)
    assert len(outbox.list()) == 3


def test_a_reason_goes_with_the_state_that_it_explained(outbox: Outbox) -> None:
    add(outbox, ISSUE, {"title": "one", "state": "closed", "state_reason": "completed"})
    add(outbox, ISSUE, {"state": "open"})
    assert paths(outbox) == [(ISSUE, {"title": "one", "state": "open"})]
    add(outbox, ISSUE, {"state": "closed", "state_reason": "not_planned"})
    add(outbox, ISSUE, {"title": "two"})
    closed = {"title": "two", "state": "closed", "state_reason": "not_planned"}
    assert paths(outbox) == [(ISSUE, closed)]


def test_what_was_sent_or_adds_or_is_anothers_does_not_fold(outbox: Outbox) -> None:
    first = add(outbox, ISSUE, {"title": "one"})
    outbox.count_attempt(first.id)
    add(outbox, ISSUE, {"title": "two"})
    add(outbox, ISSUE, {"title": "of bob"}, BOB)
    add(outbox, ISSUE, {"title": "elsewhere"}, ANN, "https://other.example")
    add(outbox, f"{ISSUE}/comments/+", {"body": "same"})
    add(outbox, f"{ISSUE}/comments/+", {"body": "same"})
    add(outbox, "/repos/r/issues/2", {"add_labels": ["a"]})
    add(outbox, "/repos/r/issues/2", {"add_labels": ["b"]})
    assert len(outbox.list()) == 8


def test_the_clock_only_goes_forward(outbox: Outbox, clock: Clock) -> None:
    stamps = []
    for step in (0, 0, -3600, 0, 5, -5):
        clock.now += step
        stamps.append(add(outbox, "/a/+").timestamp)
    assert stamps == sorted(set(stamps))
    assert moment(stamps[0]) == "2023-11-14T22:13:20.000Z"


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(st.integers(-3, 3), min_size=1, max_size=40), last=st.integers(0, 9999))
def test_timestamps_are_ordered_whatever_the_wall_clock_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], last: int
) -> None:
    clock = Clock()
    outbox = Outbox(tmp_path_factory.mktemp("outbox") / outboxes.FILE, clock)
    outbox._db.execute("INSERT INTO clock VALUES (1, ?)", (f"{int(clock.now * 1000):015d}-{last:04d}",))
    stamps = []
    for step in steps:
        clock.now += step / 1000
        stamps.append(add(outbox, "/a/+").timestamp)
    assert stamps == sorted(set(stamps))
    assert [entry.timestamp for entry in outbox.list()] == stamps
    outbox.close()


def test_several_processes_add_at_once(tmp_path: Path) -> None:
    boxes = [Outbox(tmp_path / outboxes.FILE) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda box=box, n=n: [add(box, f"/{n}/+", i) for i in range(25)])
        for n, box in enumerate(boxes)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = boxes[0].list()
    assert len(found) == len({entry.id for entry in found}) == 100
    for n in range(4):
        assert [entry.value for entry in found if entry.path == f"/{n}/+"] == list(range(25))
    for box in boxes:
        box.close()


def test_it_does_not_grow_without_end(outbox: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "KEPT", 3)
    for n in range(3):
        add(outbox, f"/{n}/+")
    with pytest.raises(OverflowError):
        add(outbox, "/3/+")
    assert len(outbox.list()) == 3


def test_a_whole_value_replaces_the_one_before(outbox: Outbox) -> None:
    """What the later one leaves out is off, as on the server."""
    names = ("https://a", "u", "ann", "ann/notes", "/listing")
    outbox.add(*names, {"name": "Notes", "category": "Writing"}, "whole")
    outbox.add(*names, {"name": "Field notes"}, "whole")
    assert [entry.value for entry in outbox.list()] == [{"name": "Field notes"}]


def test_values_about_several_things_stay_apart(outbox: Outbox) -> None:
    names = ("https://a", "u", "ann", "ann/notes", "/paths")
    outbox.add(*names, {"path": "a"}, "never")
    outbox.add(*names, {"path": "b"}, "never")
    assert [entry.value for entry in outbox.list()] == [{"path": "a"}, {"path": "b"}]
