"""Which removals are asked about."""

from __future__ import annotations

from localstore.core.removals import count_lost, removes_most


def test_more_than_half_of_a_hundred() -> None:
    assert not removes_most(50, 100)
    assert removes_most(51, 100)
    assert not removes_most(99, 99)
    assert not removes_most(0, 1000)
    assert removes_most(100, 100)


def test_a_renamed_file_is_not_lost_and_names_one_file_alone() -> None:
    assert count_lost([b"a", b"b"], [b"b", b"a", b"c"]) == 0
    assert count_lost([b"a", b"a", b"a"], [b"a"]) == 2
    assert count_lost([b"a"], []) == 1
