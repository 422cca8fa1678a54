"""Colours that take too long never come, and nothing waits for them."""

from __future__ import annotations

import os
import signal

import pytest
from pygments.lexers import get_all_lexers

from tests.depth import played
from tui.colouring import COLOURING, Colouring
from tui.highlight import colour_text
from tui.lexing import lexer_for, lexer_of, roles_soon
from tui.widgets.colours import Colours

ENDLESS = "\n " * 15_000  # 30 kB for which many lexers take hours
NAMES = sorted({aliases[0] for _, aliases, _, _ in get_all_lexers(plugins=False) if aliases})


def test_a_text_that_takes_too_long_has_no_colours_and_the_next_one_has() -> None:
    assert colour_text(ENDLESS, "README.md") is None
    again = colour_text("x = 1\n", "a.py")
    assert again is not None
    assert again[0] == (("x = ", "text"), ("1", "number"))


def test_a_text_is_coloured_by_its_language_as_by_its_name() -> None:
    by_name, by_language = colour_text("x = 1\n", "a.py"), colour_text("x = 1\n", language="Python")
    assert by_name is not None
    assert by_language is not None
    assert list(by_name) == list(by_language)
    assert colour_text("x = 1\n", language="no such language") is None
    assert colour_text("x = 1\n", "a.no-such-name") is None


def test_a_process_that_was_ended_is_replaced() -> None:
    colouring = Colouring()
    try:
        assert colouring.roles("x = 1\n", path="a.py") is not None
        process = colouring._process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert colouring.roles("x = 1\n", path="a.py") is not None
    finally:
        colouring.close()


def test_the_process_ends_with_the_one_that_asked() -> None:
    colouring = Colouring()
    assert colouring.roles("x = 1\n", path="a.py") is not None
    process = colouring._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(30) == 0


@pytest.mark.parametrize("language", [name for at, name in enumerate(NAMES) if played(at, one_in=8)])
def test_no_lexer_holds_the_app_with_a_line(language: str) -> None:
    lexer = lexer_for(language)
    assert lexer is not None
    for text in (" " * 4_000, "\n " * 2_000, "<" * 4_000, "((((" * 1_000, "a" * 4_000, "\\" * 4_000):
        roles_soon(text, lexer)  # roles or none, but it comes back


def test_a_line_that_takes_too_long_stays_plain() -> None:
    lexer = lexer_of("a.md")
    assert lexer is not None
    assert roles_soon(ENDLESS, lexer) is None
    assert roles_soon("# Title\n", lexer) is not None
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


def test_a_line_that_is_typed_has_its_colours_at_once() -> None:
    assert Colours("a.py").spans(0, "x = 1") == [(0, 4, "text"), (4, 5, "number")]


def test_an_app_that_ends_ends_the_process() -> None:
    assert colour_text("x = 1\n", "a.py") is not None
    COLOURING.close()
    assert colour_text("x = 1\n", "a.py") is not None
