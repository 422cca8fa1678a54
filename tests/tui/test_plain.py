"""The line mode: numbered choices, words and nothing that moves a cursor."""

from __future__ import annotations

import io
import sys

import pytest

from tests.svc.conftest import Answer, Svc
from tests.tui.test_app import project

__all__ = ["project"]


@pytest.fixture
def typed(alice: Svc, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    def run(*lines: str) -> Answer:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return alice("tui", "--plain")

    return run


def test_a_file_by_numbers(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    answer = typed("1", "1", "1", "1", "q")
    assert answer.code == 0
    assert project in answer.out
    assert "    return 2" in answer.out


def test_history_and_what_a_seal_changed(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "2", "1", "b", "b", "q").out
    assert "Second" in out
    assert "+    return 2" in out


def test_a_filter_leaves_what_matches(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "1", "/readme", "q").out
    assert out.split("/word filter")[-2].count("\n   1 README.md") == 1
    assert "src/" not in out.split("/word filter")[-2]


def test_nothing_moves_the_cursor(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    out = typed("1", "1", "1", "9", "nonsense", "b", "b", "b").out
    assert "\x1b" not in out
    assert "nonsense is none of the choices" in out
    assert all(ord(character) < 0x2500 for character in out)


def test_the_end_of_the_input_ends_it(project: str, typed) -> None:  # type: ignore[no-untyped-def]
    assert typed("1").code == 0
