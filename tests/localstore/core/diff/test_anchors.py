"""Lines are found again after their text was edited; suggestions take their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.diff import anchors, suggestions
from localstore.core.diff.anchors import Span
from localstore.core.diff.suggestions import Suggested, SuggestionsOverlap, apply_suggestions
from localstore.core.diff.text_edits import Edit, apply, edits
from scripts.campaign.anchors import measure

TEXT = (
    st.lists(st.sampled_from(["", "a", "b = 1", "    b = 1", "c"]), max_size=12)
    .map("\n".join)
    .map(str.encode)
)


def test_nine_of_ten_anchors_stay_on_their_line_where_a_difference_of_lines_keeps_two_thirds() -> None:
    found = measure(seed=7, files=3, rounds=6)
    assert found.kept["text"] >= 0.9 * found.anchors
    assert found.kept["log"] >= 0.9 * found.anchors
    assert found.kept["lines"] < 0.75 * found.anchors


@pytest.mark.parametrize(
    ("edit", "made"),
    [
        (Edit(0, 0, b"xx"), Span(6, 9)),  # before
        (Edit(4, 0, b"xx"), Span(6, 9)),  # at the start: outside
        (Edit(5, 0, b"xx"), Span(4, 9)),  # inside
        (Edit(7, 0, b"xx"), Span(4, 7)),  # at the end: outside
        (Edit(4, 3, b"xx"), Span(4, 6)),  # all of it replaced
        (Edit(4, 3, b""), Span(4, 4)),  # taken away
        (Edit(0, 9, b""), Span(0, 0)),
        (Edit(2, 3, b"x"), Span(2, 5)),  # over the start
        (Edit(6, 3, b"x"), Span(4, 7)),  # over the end
    ],
)
def test_a_span_goes_through_one_edit(edit: Edit, made: Span) -> None:
    assert anchors.through(Span(4, 7), [edit]) == made


def test_a_line_that_begins_as_its_neighbour_does_is_gone_when_it_is_gone() -> None:
    old = b"line 10\nline 11\nline 12\nline 13\n"
    (made,) = anchors.follow(old, b"line 10\nline 13\n", [anchors.of_lines(old, 2, 3) or Span(0, 0)])
    assert made == Span(8, 8)
    (made,) = anchors.follow(b"line 1\nline 11\n", b"line 1\nline 10\nline 11\n", [Span(7, 14)])
    assert made == Span(15, 22)


@given(TEXT, TEXT, st.data())
def test_spans_stay_within_the_text(old: bytes, new: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(old)))
    span = Span(start, data.draw(st.integers(start, len(old))))
    (made,) = anchors.follow(old, new, [span])
    assert 0 <= made.start <= made.end <= len(new)
    first, last = anchors.lines_of(new, made)
    assert 1 <= first <= last <= max(1, len(new.splitlines()) + 1)
    assert apply(old, edits(old, new)) == new
    assert anchors.follow(old, old, [span]) == [span]


@given(TEXT)
def test_lines_have_bytes_and_bytes_have_lines(text: bytes) -> None:
    lines = text.split(b"\n")
    lines = lines[:-1] if lines[-1] == b"" else lines
    for number, line in enumerate(lines, 1):
        span = anchors.of_lines(text, number, number)
        assert span is not None
        assert text[span.start : span.end] == line
        assert anchors.lines_of(text, span) == (number, number)
    assert anchors.of_lines(text, len(lines) + 1, len(lines) + 1) is None


def test_suggestions_take_the_place_of_lines_as_these_end() -> None:
    text = b"one\r\ntwo\r\nthree"
    assert apply_suggestions(text, [Suggested(2, 2, "2\n2b"), Suggested(1, 1, "")]) == b"2\r\n2b\r\nthree"
    assert apply_suggestions(text, [Suggested(3, 3, "3\n")]) == b"one\r\ntwo\r\n3"
    assert apply_suggestions(b"\n", [Suggested(1, 1, "x")]) == b"x\n"
    with pytest.raises(SuggestionsOverlap):
        apply_suggestions(text, [Suggested(1, 2, "x"), Suggested(2, 3, "y")])
    with pytest.raises(IndexError):
        apply_suggestions(text, [Suggested(4, 4, "x")])
    assert suggestions.message(3, 1, ["bob", "bob"]) == "Apply a suggestion to #3\n\nCo-authored-by: bob"
