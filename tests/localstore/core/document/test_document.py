"""Documents: writing reaches the target, and what two write at once elsewhere both stays."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.document import content
from localstore.core.document.content import check_content, encode
from localstore.core.document.document import EMPTY, YjsDocument
from localstore.core.document.pairs import pairs
from localstore.core.errors import Invalid, TooLarge
from localstore.core.model.document import DocumentDamaged
from localstore.core.model.limits import DOCUMENT_BYTES, DOCUMENT_DEPTH, DOCUMENT_KEY_BYTES, DOCUMENT_PARTS

TEXT = st.text(st.sampled_from("ab é𝄞\n\x00"), max_size=12)
SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-content.EXACT, content.EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["a", "b", "id", ""]), inner),
    max_leaves=12,
)


def _written(*contents: Any) -> tuple[YjsDocument, list[bytes]]:
    document = YjsDocument(1)
    return document, [document.write(check_content(value)) for value in contents]


@given(st.lists(VALUE, min_size=1, max_size=4))
def test_every_write_reaches_its_target_here_and_at_who_applies_it(contents: list[Any]) -> None:
    document, updates = _written()
    for value in contents:
        updates.append(document.write(check_content(value)))
        assert encode(document.content()) == encode(check_content(value))
        assert encode(YjsDocument(2, updates).content()) == encode(check_content(value))
        assert document.write(check_content(value)) == EMPTY
    assert encode(YjsDocument(3, [document.state()]).content()) == encode(check_content(contents[-1]))


@given(VALUE, VALUE, VALUE)
def test_two_who_write_at_once_end_with_the_same(base: Any, mine: Any, yours: Any) -> None:
    _, updates = _written(base)
    one, two = YjsDocument(2, updates), YjsDocument(3, updates)
    first, second = one.write(check_content(mine)), two.write(check_content(yours))
    one.apply(second)
    two.apply(first)
    assert encode(one.content()) == encode(two.content())


def _both(base: Any, mine: Any, yours: Any) -> Any:
    _, updates = _written(base)
    one, two = YjsDocument(2, updates), YjsDocument(3, updates)
    one.apply(two.write(check_content(yours)))  # one has not written yet
    other = YjsDocument(4, updates)
    one.apply(other.write(check_content(mine)))
    return one.content()


@pytest.mark.parametrize(
    ("base", "mine", "yours", "merged"),
    [
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 2}),
        ({"a": 1}, {"a": 1, "b": 2}, {"a": 1, "c": 3}, {"a": 1, "b": 2, "c": 3}),
        ({"a": 1, "b": 2}, {"b": 2}, {"a": 1, "b": 3}, {"b": 3}),
        ("one two three", "ONE two three", "one two THREE", "ONE two THREE"),
        ([1, 2, 3], [0, 1, 2, 3], [1, 2, 3, 4], [0, 1, 2, 3, 4]),
        ([1, 2, 3], [1, 3], [1, 2, 3, 4], [1, 3, 4]),
        (
            [{"id": 1, "x": 1, "y": 1}],
            [{"id": 0}, {"id": 1, "x": 2, "y": 1}],
            [{"id": 1, "x": 1, "y": 2}],
            [{"id": 0}, {"id": 1, "x": 2, "y": 2}],
        ),
        (
            {"tasks": ["buy some milk", "sell the cow"]},
            {"tasks": ["buy some oat milk", "sell the cow"]},
            {"tasks": ["buy some milk", "sell the old cow", "rest"]},
            {"tasks": ["buy some oat milk", "sell the old cow", "rest"]},
        ),
        ([[1, 2], [3, 4]], [[1, 2, 5], [3, 4]], [[0, 1, 2], [3, 4]], [[0, 1, 2, 5], [3, 4]]),
    ],
)
def test_what_two_change_elsewhere_both_stays(base: Any, mine: Any, yours: Any, merged: Any) -> None:
    assert _both(base, mine, yours) == merged
    assert _both(base, yours, mine) == merged


@given(st.integers(2, 30), st.data())
def test_different_words_of_one_text_and_members_of_one_object_survive(count: int, data: Any) -> None:
    first, second = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
    words = [f"word{at}" for at in range(count)]

    def edited(at: int) -> list[str]:
        return [*words[:at], f"NEW{at}", *words[at + 1 :]]

    expected = edited(first)
    expected[second] = f"NEW{second}"
    text = _both("  ".join(words), "  ".join(edited(first)), "  ".join(edited(second)))
    assert text == "  ".join(expected)
    numbered = dict(enumerate(words)).items()
    members = {str(at): word for at, word in numbered}
    merged = _both(members, members | {str(first): "x"}, members | {str(second): "y"})
    assert merged == members | {str(first): "x", str(second): "y"}


def test_a_word_changes_as_a_whole() -> None:
    assert _both({"state": "new"}, {"state": "open"}, {"state": "done"})["state"] in ("open", "done")


def test_a_small_change_of_large_content_is_a_small_update() -> None:
    base = {"rows": [{"id": at, "text": f"row number {at}"} for at in range(3000)]}
    document, _ = _written(base)
    base["rows"][1500]["text"] = "row number one and a half thousand"
    base["rows"].insert(7, {"id": "new"})  # type: ignore[dict-item]
    assert len(document.write(check_content(base))) < 300
    assert document.content() == base


def test_a_shuffled_list_of_every_allowed_part_is_bounded_work_and_right() -> None:
    rows = [{"id": at, "t": "a b"} for at in range(DOCUMENT_PARTS // 4)]
    document, _ = _written(rows)
    shuffled = random.Random(1).sample(rows, len(rows))
    document.write(check_content(shuffled))
    assert document.content() == shuffled


def test_items_are_paired_in_order_and_by_id() -> None:
    assert pairs([{"id": 1}, {"id": 2}], [{"id": 3}, {"id": 1, "x": 1}, {"id": 2, "y": 1}]) == [
        (0, 1),
        (1, 2),
    ]
    assert pairs([1, 2], [3, 4, 5]) == []
    assert pairs(["one two three"], ["four", "one two"]) == [(0, 1)]
    assert pairs([], [1]) == []


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("x" * DOCUMENT_BYTES, TooLarge),
        ([0] * DOCUMENT_PARTS, TooLarge),
        ([[[0] * (DOCUMENT_PARTS // 3)] * 2] * 2, TooLarge),
        ({"k" * (DOCUMENT_KEY_BYTES + 1): 1}, TooLarge),
        ({"a": 1 << 53}, Invalid),
        ({"a": -(1 << 70)}, Invalid),
        ({"\ud800": 1}, Invalid),
        (["\udfff"], Invalid),
        (float("nan"), Invalid),
        (float("inf"), Invalid),
        ({1: 2}, Invalid),
        (b"bytes", Invalid),
    ],
)
def test_content_beyond_a_bound_is_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_content(value)


def test_depth_is_bounded_before_anything_recurses() -> None:
    deep: Any = 1
    for _ in range(DOCUMENT_DEPTH):
        deep = [deep]
    document, _ = _written(deep)
    assert document.content() == deep
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(TooLarge):
        check_content(deep)
    while isinstance(deep, dict):  # else its end recurses
        deep = deep.pop("a")


@pytest.mark.parametrize(
    "number", [0.1, 1.5, 1e300, -0.0, 1.0, 16777217, content.EXACT, -content.EXACT, 2.0**60]
)
def test_numbers_come_back_as_they_were(number: float) -> None:
    document, _ = _written({"n": number})
    assert document.content() == {"n": number}
    assert msgspec.json.decode(encode(document.content())) == {"n": number}


def test_bytes_that_are_no_operations_are_a_damage_that_is_named() -> None:
    with pytest.raises(DocumentDamaged):
        YjsDocument(1, [b"\xff\xff\xff"])


def test_a_list_that_differs_everywhere_is_changed_in_few_runs() -> None:
    drawn = random.Random(2)
    old, new = ([drawn.randrange(2) for _ in range(DOCUMENT_PARTS - 1000)] for _ in range(2))
    document, _ = _written(old)
    update = document.write(check_content(new))
    assert document.content() == new
    assert len(update) < 2 * len(encode(new))


def test_what_is_inserted_beside_what_another_inserts_stays_together() -> None:
    words = ["a a", {"b": [1]}, 2, 3, ["c c"], None]
    merged = _both([0, 9], [0, *words, 9], [0, "x", "y", 9])
    assert merged in ([0, *words, "x", "y", 9], [0, "x", "y", *words, 9])
