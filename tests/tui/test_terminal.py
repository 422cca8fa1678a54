"""The app on a real pseudo-terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from scripts.bench.tui import Terminal
from tests.tui.test_app import project

__all__ = ["project"]
SVC = [sys.executable, "-m", "svc"]


def test_bare_svc_opens_the_app_and_ends_clean(project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    terminal = Terminal(SVC, Path.cwd(), 80, 24)
    terminal.read(2.5)
    assert any(project in line for line in terminal.screen.display)
    opened = terminal.keys("\r")
    assert any("README.md" in line for line in terminal.screen.display)
    assert opened < 4_000
    assert terminal.keys("j") < 500
    assert terminal.read(1.0, 1.0) == 0
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
        assert terminal.shows(project), terminal.text
        terminal.keys("\r")
        assert terminal.shows("8Settings"), terminal.text
        terminal.keys("3")
        assert terminal.shows("Issues, open"), terminal.text
        for title in ("Retry stalls", "sessions 1 2 3 quit"):
            terminal.keys(f"a{title}\r")
            assert terminal.shows(f"{title} "), terminal.text
    finally:
        terminal.close()
