"""The app on a real pseudo-terminal."""

from __future__ import annotations

import os
import signal
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.bench.tui import Terminal
from tests.svc.conftest import Svc
from tests.tui.test_app import project

__all__ = ["project"]
SVC = [sys.executable, "-m", "svc"]


def test_bare_svc_opens_the_app_and_ends_clean(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal(SVC, Path.cwd(), 80, 24)
    assert terminal.shows("/project"), terminal.text
    opened = terminal.keys("\r")
    assert terminal.shows("README.md"), terminal.text
    assert opened < 4_000
    assert terminal.keys("j") < 500
    assert terminal.read(1.0, 1.0) == 0
    terminal.close()


def test_the_mouse_is_left_to_the_terminal(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal([*SVC, "tui", "--no-mouse"], Path.cwd(), 80, 24)
    try:
        assert terminal.shows("/project"), terminal.text
        assert 1000 not in left_on(terminal)
    finally:
        terminal.close()


def test_bare_svc_without_a_server_prints_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SVC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("SVC_HOME", str(tmp_path))
    terminal = Terminal(SVC, tmp_path, 80, 60)
    terminal.read(2.5)
    assert any("COMMAND" in line for line in terminal.screen.display)


def test_keys_that_come_at_once_reach_the_prompt_that_they_open(
    project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal(SVC, Path.cwd(), 80, 24)
    try:
        assert terminal.shows("/project"), terminal.text
        terminal.keys("\r")
        assert terminal.shows("8 Set"), terminal.text
        terminal.keys("3")
        assert terminal.shows("Issues open"), terminal.text
        for title in ("Retry stalls", "sessions 1 2 3 quit"):
            terminal.keys(f"a{title}\r")
            assert terminal.shows("text of the issue"), terminal.text
            terminal.keys("\x13")
            assert terminal.shows(f"{title} "), terminal.text
    finally:
        terminal.close()


def test_signing_in_and_out_opens_the_app_anew(
    svc: Svc, node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("SVC_SERVER", node)
    terminal = Terminal([*SVC, "tui"], Path.cwd(), 100, 30)
    try:
        assert terminal.shows("its key makes an account, or signs in"), terminal.text
        terminal.keys("i")
        assert terminal.shows("Inbox"), terminal.text
        assert "asking the server" not in terminal.text
        terminal.keys(":login --device-key --handle t-anew\r")
        assert terminal.shows("@t-anew"), terminal.text
        assert "its key makes an account" not in terminal.text
        terminal.keys(":logout\r")
        assert terminal.shows("its key makes an account, or signs in"), terminal.text
    finally:
        terminal.close()


MODES = (1000, 1002, 1003, 1004, 1006, 1049, 2004)


@pytest.fixture
def opened(project: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The app, which shows a list of repositories."""
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal(SVC, Path.cwd(), 80, 24)
    assert terminal.shows("/project"), terminal.text
    yield terminal
    try:
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def left_on(terminal: Terminal) -> list[int]:
    """The modes that are switched on; 25 for a hidden cursor."""
    said = terminal.said
    found = [mode for mode in MODES if said.rfind(b"\x1b[?%dh" % mode) > said.rfind(b"\x1b[?%dl" % mode)]
    return [*found, *([25] if said.rfind(b"\x1b[?25l") > said.rfind(b"\x1b[?25h") else [])]


def is_raw(terminal: Terminal) -> bool:
    return not termios.tcgetattr(terminal._line)[3] & termios.ECHO


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_killed_app_restores(opened: Terminal, number: signal.Signals) -> None:
    """The terminal is as it was."""
    assert is_raw(opened)
    assert {1000, 1006, 1049, 25} <= {*left_on(opened)}
    assert 1003 not in left_on(opened)  # motion
    os.kill(opened.pid, number)
    _, status = os.waitpid(opened.pid, 0)
    opened.read(0.3)
    assert os.waitstatus_to_exitcode(status) == -number
    assert left_on(opened) == []
    assert not is_raw(opened)


def test_an_app_that_does_not_get_round_to_it_leaves_the_terminal_too(opened: Terminal) -> None:
    os.kill(opened.pid, signal.SIGSTOP)
    os.kill(opened.pid, signal.SIGTERM)
    os.kill(opened.pid, signal.SIGCONT)
    _, status = os.waitpid(opened.pid, 0)
    opened.read(0.3)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGTERM
    assert left_on(opened) == []


def test_an_app_whose_terminal_is_gone_ends(opened: Terminal) -> None:
    os.close(opened._line)
    _, status = os.waitpid(opened.pid, 0)
    assert status != 0


def test_ctrl_z_suspends_and_the_app_comes_back(opened: Terminal, project: str) -> None:
    os.write(opened._line, b"\x1a")
    _, status = os.waitpid(opened.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    opened.read(0.3)
    assert left_on(opened) == []
    assert not is_raw(opened)
    opened.screen.reset()
    os.kill(opened.pid, signal.SIGCONT)
    assert opened.shows("/project"), opened.text
    assert opened.shows("? keys here"), opened.text
    assert is_raw(opened)
