"""The cache of merged trees."""

from __future__ import annotations

from localstore.core.merge.three_way import MergedTree
from relay.memory.outcomes import EACH, Key, Outcome, Outcomes


def key(number: int, repo: str = "repo", apart: bool = False) -> Key:
    return repo, (b"base",), b"ours %d" % number, b"theirs", apart


def outcome(size: int) -> Outcome:
    """One that takes so many bytes and an entry more."""
    return Outcome(MergedTree({}, {b"digest": bytes(size)}, [], []), {})


def test_an_outcome_is_of_one_repository_and_one_way_to_merge() -> None:
    kept = Outcomes()
    kept.put(key(1), outcome(1))
    assert kept.get(key(1)) == outcome(1)
    assert kept.get(key(2)) is None
    assert kept.get(key(1, "another")) is None
    assert kept.get(key(1, apart=True)) is None


def test_the_least_recently_used_go_first() -> None:
    kept = Outcomes(most=3 * (EACH + 100))
    for number in range(3):
        kept.put(key(number), outcome(100))
    assert kept.get(key(0)) is not None
    kept.put(key(3), outcome(100))
    assert [number for number in range(4) if kept.get(key(number))] == [0, 2, 3]
    kept.put(key(3), outcome(100))  # a second time
    assert [number for number in range(4) if kept.get(key(number))] == [0, 2, 3]


def test_one_that_takes_too_much_is_not_kept() -> None:
    kept = Outcomes(largest=1000)
    kept.put(key(1), outcome(1001))
    assert kept.get(key(1)) is None
