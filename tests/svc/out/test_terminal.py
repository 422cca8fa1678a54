"""What only a terminal shows: colours that repeat words, links, and questions that are left."""

from __future__ import annotations

import io
import sys

import pytest

from localstore.core.errors import Unauthorized
from svc.console import Column, Out

STATES = (Column("state", kind="state"), Column("path"), Column("reason"))
ROWS = [{"state": "new", "path": "a"}, {"state": "odd", "path": "\x1b[31mb"}]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def speaker(**environment: str) -> tuple[Out, io.StringIO, io.StringIO]:
    stdout, stderr = Terminal(), Terminal()
    return Out({"TERM": "xterm", "PAGER": "cat", **environment}, stdout, stderr), stdout, stderr


def test_states_are_coloured_words() -> None:
    out, stdout, _ = speaker()
    out.rows(ROWS, STATES)
    assert stdout.getvalue() == ("\x1b[1mSTATE  PATH\x1b[0m\n\x1b[32mnew  \x1b[0m  a\nodd    \\x1b[31mb\n"), (
        "what no record has needs no column"
    )


@pytest.mark.parametrize(
    "environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}, {"SVC_PLAIN": "1"}]
)
def test_without_colours_there_is_no_escape(environment: dict[str, str]) -> None:
    out, stdout, stderr = speaker(**environment)
    out.rows(ROWS, STATES)
    out.link("https://node.example/x")
    out.meter("send", 1, 2)
    out.note("done")
    assert "\x1b[3" not in stdout.getvalue()
    assert "\x1b]" not in stdout.getvalue()
    assert "\x1b[3" not in stderr.getvalue()


def test_an_address_is_a_link_and_cannot_leave_it() -> None:
    out, stdout, _ = speaker()
    out.link("https://node.example/\x1b\\evil\x07")
    address = "https://node.example/\\x1b\\evil\\x07"
    assert stdout.getvalue() == f"\x1b]8;;{address}\x1b\\{address}\x1b]8;;\x1b\\\n"


def test_a_question_that_is_left_ends_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    class Leaves(Terminal):
        def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
            raise KeyboardInterrupt

    out, _, stderr = speaker()
    monkeypatch.setattr(sys, "stdin", Leaves())
    with pytest.raises(KeyboardInterrupt):
        out.ask("Really")
    assert stderr.getvalue() == "Really [y/N] \n"
    monkeypatch.setattr(sys, "stdin", Terminal(""))  # Ctrl-D
    assert out.ask("Really") is False
    assert stderr.getvalue().endswith("Really [y/N] \n")


@pytest.mark.parametrize("columns", ["1", "20", "nonsense"])
def test_a_tiny_terminal_is_no_error(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    out, stdout, _ = speaker(NO_COLOR="1")
    out.rows([{"state": "new", "path": "p" * 200, "reason": "日本語" * 40}], STATES)
    assert stdout.getvalue().startswith("ST")


def test_a_moment_in_an_error_is_relative_on_a_terminal_and_whole_elsewhere() -> None:
    ended = "2001-01-01T00:00:00Z"
    error = Unauthorized(f"the session ended at {ended}; run: svc login", ended_at=ended, opened_at=7)
    out, _, stderr = speaker()
    out.error(error)
    assert stderr.getvalue() == "svc: the session ended 2001-01-01; run: svc login\n"
    piped, stderr = io.StringIO(), io.StringIO()
    Out({}, piped, stderr).error(error)
    assert stderr.getvalue() == f"svc: {error.detail}\n"
