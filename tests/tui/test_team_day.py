"""A day of two people on two devices, each with the app on a terminal, by keys alone.

What an editor does is done to the files; everything else is typed into the apps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.bench.tui import Terminal
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.test_app import project

__all__ = ["project"]
SVC = [sys.executable, "-m", "svc"]
DOWN = "\x1b[B"
SHIFT_DOWN = "\x1b[1;2B"
ESC = "\x1b"


class Device:
    """Somebody at a terminal with the app."""

    def __init__(self, home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.folder = home, folder
        with monkeypatch.context() as patch:
            patch.setenv("SVC_HOME", str(home))
            self.terminal = Terminal(SVC, folder, 120, 40)
        self.sees("Repositories")

    @property
    def screen(self) -> str:
        return "\n".join(line.rstrip() for line in self.terminal.screen.display)

    def sees(self, *words: str) -> str:
        """Wait until all the words are shown."""
        until = time.monotonic() + PATIENCE
        while not all(word in self.screen for word in words):
            assert time.monotonic() < until, f"{words} not in\n{self.screen}"
            self.terminal.read(0.1, 0.5)
        return self.screen

    def types(self, *keys: str) -> None:
        for key in keys:
            self.terminal.keys(key)

    def runs(self, line: str, said: str) -> None:
        """Type a command line and read what it prints: beside the keys, or on a screen of its own."""
        self.types(":", line, "\r")
        if "✓ done" in self.sees(said):
            self.types(ESC)


@pytest.fixture
def team(
    project: str, alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Device, Device]]:
    """Ann, who owns the repository, and Ben, who may write; each with a folder of it."""
    monkeypatch.setenv("TERM", "xterm-256color")
    ann, ben = Path(os.environ["SVC_HOME"]), tmp_path / "ben-home"
    handle = f"{os.environ['TEST_HANDLE']}"[:30] + "-ben"
    monkeypatch.setenv("SVC_HOME", str(ben))
    assert alice("login", "--device-key", "--handle", handle).code == 0
    monkeypatch.setenv("SVC_HOME", str(ann))
    assert alice("repo", "collaborator", "add", handle, "--role", "write").code == 0
    monkeypatch.setenv("SVC_HOME", str(ben))
    assert alice("repo", "invite", "accept", project).code == 0
    assert alice("repo", "clone", project, str(tmp_path / "ben")).code == 0
    monkeypatch.setenv("SVC_HOME", str(ann))
    devices = (Device(ann, Path.cwd(), monkeypatch), Device(ben, tmp_path / "ben", monkeypatch))
    yield devices
    for device in devices:
        device.terminal.close()


def test_a_day_of_a_team(team: tuple[Device, Device], project: str, alice: Svc) -> None:
    ann, ben = team
    # Ann opens an issue, makes a label for it and takes it on.
    ann.types("\r")
    ann.sees("8 Set")
    ann.types("3")
    ann.sees("Issues open · 0")
    ann.types("a", "Retry stalls", "\r")
    ann.sees("text of the issue")
    ann.types("\x13")  # an issue without a text
    ann.sees("#1 ", "Retry stalls")
    ann.types(" ", "label create", "\r")
    ann.sees("svc label create", "NAME")
    ann.types("\r", "bug", "\r", "\r")
    ann.sees("Created label bug", "c comment")
    ann.types("\r")
    ann.sees("no text")
    ann.types("l", "bug", "\r")
    ann.sees("bug")
    ann.types("u")
    ann.sees("→ @")
    # Ben sees it, branches, edits, seals and proposes.
    ben.types("\r")
    ben.sees("8 Set")
    ben.types("3")
    ben.sees("Retry stalls", "bug")
    ben.runs("repo branch retry", "Created branch retry")
    ben.runs("switch retry", "On branch retry")
    (ben.folder / "src/main.py").write_text("def main():\n    wait = 1\n    return wait * 3\n")
    ben.runs("push -m 'Wait less'", "Sealed")
    ben.types("p", "r")
    ben.sees("Proposals open · 0")
    ben.types("a")
    ben.sees("retry")
    ben.types("\r")
    ben.sees("title     Wait less")
    ben.types("\r")
    ben.sees("text of the proposal")
    ben.types("\x13")
    ben.sees("#2 ", "Wait less")
    # Ann reviews: two comments that wait, a suggestion on two lines, and a verdict that sends them.
    ann.types(ESC, "p")
    ann.sees("Proposals open · 1", "Wait less")
    ann.types("\r")
    ann.sees("main ← retry", "src/main.py")
    ann.types("\r")
    ann.sees("wait * 3")
    ann.types("p", "/", "wait = 1", "\r", "c", "Why so short?", "\x13")
    ann.sees("1 pending", "Why so short?")
    ann.types("/", "wait = 1", "\r", *5 * [SHIFT_DOWN])  # four of them are on the comment
    ann.types("x")
    ann.sees("in the place of lines 2 to 3")
    ann.types("  # seconds", ESC)
    ann.sees("enter send  e go on")
    ann.types("\r")
    ann.sees("2 pending", "# seconds")
    ann.types("X", "Two things", "\x13")
    ann.types(ESC, ESC)  # the first ends the search
    ann.sees("✗ requests changes")
    # Ben sees it without asking, and takes the suggestion in.
    ben.types("\r")
    ben.sees("✗ requests changes", "Two things")
    ben.types("\r")
    ben.sees("Why so short?", "# seconds")
    ben.types("/", "I suggest", "\r", "a")
    ben.sees("Make a seal on ")
    ben.types("y")
    ben.sees("Applied a suggestion to #2")
    ben.types(ESC, ESC)
    ben.sees("Versions 2")
    # Ann sees the new version, reports a check on it, approves and merges.
    ann.sees("Versions 2")
    ann.types(" ", "record a run", "\r")
    ann.sees("svc repo run create", "NAME")
    ann.types("\r", "lint", "\r")
    ann.types("/", "conclusion", "\r", "n", "\r", "success", "\r", "\r")
    ann.sees("✓ 1/1")
    ann.types("A", "\x13")
    ann.sees("Approved #2")
    ann.types("M")
    ann.sees("one seal of the branch")
    ann.types("/", "squash", "\r", "d", "\r")
    ann.sees("Its own seals are then on")
    ann.types("y")
    ann.sees("Merged #2")
    ann.types(ESC)
    ann.sees("● merged")
    ben.sees("● merged")
    # Ann releases it with a file; Ben finds both.
    ann.types(ESC, "5")
    ann.sees("no releases")
    ann.types("a")
    ann.sees("version of the release")
    ann.types("v1.0.0", "\r")
    ann.sees("notes of the release")
    ann.types(ESC)
    ann.sees("v1.0.0", "files")
    (ann.folder / "built.bin").write_bytes(bytes(range(256)))
    ann.types("/", "files", "\r", "\r", "built.bin", "\r", "S")
    ann.sees("Created release v1.0.0", "1 file")
    ben.types(ESC, "5")
    ben.sees("v1.0.0", "1 file")
    ben.types("\r")
    ben.sees("built.bin")
    ben.types("\r")
    ben.sees("✓ in ")
    assert (ben.folder / "built.bin").read_bytes() == bytes(range(256))
    merged = json.loads(alice("pr", "view", "2", "--json", "state,title").out)
    assert merged == {"state": "merged", "title": "Wait less"}
    assert json.loads(alice("queue", "list", "--json", "action").out) == []
