"""Which seals of two versions are pairs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.model.history import ChangedFile
from svc.flows.proposal import range_diff
from svc.flows.proposal.range_diff import Pair, SealDiff, Work, change_of, pair_seals


def step(seal: str, *lines: str, whole: bool = True) -> SealDiff:
    return SealDiff(seal, f"seal {seal}", lines, whole)


def marks(pairs: list[Pair]) -> list[tuple[str, int | None, int | None]]:
    return [(one.mark, one.old, one.new) for one in pairs]


LONG = [f"+line {n}" for n in range(20)]
STEPS = st.lists(
    st.lists(st.sampled_from(["+a", "+b", "-c", "+d", "-e"]), min_size=1, max_size=6), max_size=6
)


def test_equal_changes_are_pairs_wherever_they_stand() -> None:
    old = [step("a", "+1"), step("b", "+2"), step("c", "+3")]
    new = [step("x", "+3"), step("y", "+1"), step("z", "+9", "+8", "+7")]
    assert marks(pair_seals(old, new)) == [("<", 2, None), ("=", 3, 1), ("=", 1, 2), (">", None, 3)]


def test_the_least_different_are_pairs_and_show_the_difference() -> None:
    old = [step("a", *LONG), step("b", "-x", "-y")]
    new = [step("c", *LONG[:-1], "+other"), step("d", "+new", "+newer")]
    pairs = pair_seals(old, new)
    assert marks(pairs) == [("!", 1, 1), (">", None, 2), ("<", 2, None)]
    assert "++other" in pairs[0].diff
    assert "-+line 19" in pairs[0].diff


def test_what_cannot_be_compared_whole_is_equal_to_itself_alone() -> None:
    assert marks(pair_seals([step("a", "+1", whole=False)], [step("a", "+1", whole=False)])) == [("=", 1, 1)]
    assert marks(pair_seals([step("a", "+1", whole=False)], [step("b", "+1", whole=False)])) == [("!", 1, 1)]


def test_positions_are_left_out() -> None:
    def file(patch: str | None) -> ChangedFile:
        return ChangedFile(
            path="f", status="modified", binary=patch is None, additions=1, deletions=0, patch=patch
        )

    head = "diff --git a/f b/f\n--- a/f\n+++ b/f\n"
    one, whole = change_of([file(head + "@@ -1,2 +1,3 @@\n a\n+x\n")])
    other, _ = change_of([file(head + "@@ -7,2 +9,3 @@\n a\n+x\n")])
    assert (one == other, whole) == (True, True)
    assert change_of([file(None)])[1] is False


@given(STEPS, STEPS)
def test_each_seal_stands_in_one_pair(old: list[list[str]], new: list[list[str]]) -> None:
    before = [step(f"o{n}", *lines) for n, lines in enumerate(old)]
    after = [step(f"n{n}", *lines) for n, lines in enumerate(new)]
    pairs = pair_seals(before, after)
    assert [one.new for one in pairs if one.new] == list(range(1, len(new) + 1))
    assert sorted(one.old for one in pairs if one.old) == list(range(1, len(old) + 1))
    same = sum(one.mark == "=" for one in pairs)
    shared = sum(
        min(old.count(lines), new.count(lines)) for lines in {tuple(one): one for one in old}.values()
    )
    assert same == shared
    assert all((one.mark == "!") == bool(one.diff) for one in pairs)


def test_so_much_is_compared_and_the_likeliest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many changes that are alike in most lines, by somebody who would have us compare each with each."""
    compared = []
    distance = range_diff._distance

    def counted(one: SealDiff, other: SealDiff) -> int | None:
        compared.append(len(one.lines) + len(other.lines))
        return distance(one, other)

    monkeypatch.setattr(range_diff, "_distance", counted)
    shared = [f"+{n}" for n in range(60)]
    old = [step(str(n), *shared, *(f"+old {n} {at}" for at in range(40))) for n in range(30)]
    new = [SealDiff(f"new {n}", one.message, (*one.lines[:-1], "+x"), True) for n, one in enumerate(old)]
    work = Work(10_000)
    pairs = pair_seals(old, new, work)
    assert sum(compared) <= 10_000
    assert work.short
    assert marks(pairs) == [("!", n, n) for n in range(1, 31)]  # those of one message came first
    assert not Work(10_000_000).short


def test_changes_that_have_too_little_in_common_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: SealDiff) -> int | None:
        raise AssertionError("counting their lines told it")

    monkeypatch.setattr(range_diff, "_distance", refused)
    old = [step("a", *(f"+{n}" for n in range(100))), step("b", "+1")]
    new = [step("c", *(f"+other {n}" for n in range(100)))]
    assert {one.mark for one in pair_seals(old, new)} == {"<", ">"}
