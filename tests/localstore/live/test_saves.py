"""When a save counts."""

from __future__ import annotations

from localstore.live.saves import LONGEST, VANISHED, WRITING, Saves


def full(path: str) -> bool:
    return False


def test_a_closed_file_counts_at_once() -> None:
    saves = Saves()
    saves.record_written("a", 10.0)
    saves.record_closed("a", 10.01)
    assert saves.pop_due(10.01, full, 9) == (["a"], set())
    assert not saves


def test_a_write_alone_waits_for_its_end() -> None:
    saves = Saves()
    saves.record_written("a", 10.0)
    saves.record_written("a", 10.04)
    assert saves.next_due() == 10.04 + WRITING
    assert saves.pop_due(10.0 + WRITING, full, 9) == ([], set())
    assert saves.pop_due(10.04 + WRITING, full, 9) == (["a"], set())


def test_a_file_that_was_moved_away_for_a_moment_is_not_deleted() -> None:
    saves = Saves()
    saves.record_vanished("a", 10.0)
    assert saves.pop_due(10.01, full, 9) == ([], set())
    saves.record_closed("a", 10.02)
    assert saves.pop_due(10.02, full, 9) == (["a"], set())
    assert saves.pop_due(10.0 + VANISHED, full, 9) == ([], set())


def test_a_truncated_file_waits_once() -> None:
    saves = Saves()
    saves.record_closed("a", 10.0)
    assert saves.pop_due(10.0, lambda path: True, 9) == ([], set())
    assert saves.pop_due(10.0 + WRITING, lambda path: True, 9) == (["a"], set())


def test_takes_no_more_than_asked() -> None:
    saves = Saves()
    for number in range(5):
        saves.record_closed(str(number), 1.0)
    assert len(saves.pop_due(2.0, full, 3)[0]) == 3
    assert len(saves.pop_due(2.0, full, 3)[0]) == 2


def test_folders_are_named_apart() -> None:
    saves = Saves()
    saves.record_changed_below("d/", 1.0)
    saves.record_changed_below("d/", 1.2)
    assert saves.pop_due(1.0 + VANISHED, full, 9) == ([], {"d/"})
    assert saves.next_due() is None


def test_a_removal_of_many_files_is_one() -> None:
    saves = Saves()
    for number in range(200):
        saves.record_vanished(f"d/{number}", 0.01 * number)
        if number % 50 == 49:
            saves.record_changed_below(f"d{number}/", 0.01 * number)
            assert saves.pop_due(0.01 * number, lambda _: False, 100) == ([], set())
    saves.record_closed("other", 2.0)
    assert saves.pop_due(2.0, lambda _: False, 100) == (["other"], set())
    due = saves.next_due()
    assert due is not None and due > 2.0
    gone, below = saves.pop_due(due, lambda _: False, 100)
    assert (len(gone), len(below)) == (200, 4)
    assert not saves


def test_a_removal_without_end_counts_after_a_while() -> None:
    saves = Saves()
    at = 0.0
    while at <= LONGEST:
        saves.record_vanished(f"{at}", at)
        at += 0.1
    assert saves.pop_due(LONGEST, lambda _: False, 100)[0]
