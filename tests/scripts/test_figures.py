"""The figures of how the relay is cut."""

from __future__ import annotations

import pytest

from scripts import figures


def test_a_ball_is_the_largest_circle_of_imports() -> None:
    chain: dict[str, set[str]] = {"a": {"b"}, "b": {"c"}, "c": set()}
    assert figures.ball(chain) == set()
    assert figures.ball({**chain, "c": {"b"}}) == {"b", "c"}
    assert figures.ball({**chain, "c": {"a"}}) == {"a", "b", "c"}


def test_lines_of_imports_are_counted_wherever_they_stand() -> None:
    text = "import a\nfrom b import (\n    c,\n    d,\n)\n\n\ndef f():\n    import g\n"
    assert figures.import_lines(text) == 6


def test_the_subjects_of_the_relay_are_no_ball(capsys: pytest.CaptureFixture[str]) -> None:
    figures.main()
    lines = (line.strip().partition("  ") for line in capsys.readouterr().out.splitlines())
    measured = {name: int(figure.replace(",", "")) for figure, _, name in lines}
    assert measured["subjects"] > 15
    assert measured["subjects in one ball"] == 0
    assert measured["pairs of subjects that import each other"] == 0
    assert measured["lines of imports in all rooms"] < 0.1 * measured["lines of all rooms"]
    assert (
        measured["nouns"] - measured["nouns served from one subject"] <= 1
    )  # proposals, whose merge is tried
