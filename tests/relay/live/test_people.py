"""Who is where on a branch."""

from __future__ import annotations

import time

import pytest

from localstore.core.model.sync import People
from relay.events import people
from tests.relay.live.copies import Copies


def test_people_see_each_other_come_move_and_go(copies: Copies) -> None:
    ann, bob = copies(), copies()
    ann.here("a.txt", 3, 7, "edit")
    while not bob.people:
        bob.until(People)
    (there,) = bob.people.values()
    assert (there.who, there.device, there.kind) == (ann.who.handle, "test device", "person")
    assert (there.path, there.line, there.col, there.state) == ("a.txt", 3, 7, "edit")
    bob.here("b.txt", turn="turn 9")
    while not ann.people:
        ann.until(People)
    (other,) = ann.people.values()
    assert (other.kind, other.path) == ("agent", "b.txt")
    late = copies()
    assert {one.who for one in late.people.values()} == {ann.who.handle, bob.who.handle}
    ann.leave()
    while there.conn in bob.people:
        bob.until(People)
    assert bob.people == {}, "nobody is told of themselves"


def test_what_is_said_too_often_is_told_once(copies: Copies) -> None:
    ann, bob = copies(), copies()
    began, told = time.monotonic(), 0
    for line in range(1, 51):
        ann.here("a.txt", line)
    while not bob.people or next(iter(bob.people.values())).line != 50:
        bob.until(People)
        told += 1
    assert told <= 2 + 5 * (time.monotonic() - began + 0.2)


def test_who_says_nothing_any_more_is_gone(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, bob = copies(), copies()
    ann.here("a.txt")
    while not bob.people:
        bob.until(People)
    monkeypatch.setattr(people, "HERE_LIVES", 0.1)  # from the next time that she says where she is
    ann.here("b.txt")
    while bob.people:
        bob.until(People)
