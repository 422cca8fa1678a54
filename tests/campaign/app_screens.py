"""Every screen of the app: the keys that lead there from Home, and words that stand on it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

from scripts.bench.tui import Terminal
from tests.campaign.conftest import Place
from tests.campaign.world import Broken, Machine

ESC, DOWN = "\x1b", "j"


class Stop(NamedTuple):
    """`keys`: one after the other. `act`: keys of a change there, which is queued where `queues`, else kept
    as a draft that `kept` shows."""

    keys: tuple[str, ...]
    words: str
    act: tuple[str, ...] = ()
    queues: int = 0
    kept: str = ""


STOPS: dict[str, Stop] = {
    "home": Stop((), "Repositories 1"),
    "overview": Stop(("\r", "1"), "Read me."),
    "code": Stop(("\r", "2"), "src/"),
    "file": Stop(("\r", "2", DOWN, "\r"), "Read me."),
    "find": Stop(("\r", "2", "t"), "src/main.py"),
    "history": Stop(("\r", "2", "h"), "First"),
    "seal": Stop(("\r", "2", "h", "\r"), "return 1"),
    "issues": Stop(("\r", "3"), "Retry stalls", ("a", "New one\r", "S"), 1),
    "issue": Stop(("\r", "3", "/", "stalls", "\r", "\r"), "It hangs", ("c", "Later\x13"), 1),
    "proposals": Stop(("\r", "3", "p"), "Return three"),
    "proposal": Stop(("\r", "3", "p", "\r"), "main ← topic", ("c", "Later too\x13"), 1),
    "files": Stop(("\r", "3", "p", "\r", "\r"), "return 3", ("G", "c", "Why\x13"), 1),
    "workflows": Stop(("\r", "4"), "lint"),
    "run": Stop(("\r", "4", "G", "\r"), "Two lines", ("u",), 1),
    "releases": Stop(("\r", "5"), "v1"),
    "release": Stop(("\r", "5", "\r"), "Good."),
    "security": Stop(("\r", "6"), "Advisories 0"),
    "insights": Stop(("\r", "7"), "Dependents 0"),
    "settings": Stop(
        ("\r", "8"),
        "default branch",
        ("g", "\r", "\x05", "\x15", "Better\r"),
        0,
        "Better  was Notes on parsing",
    ),
    "role": Stop(("\r", "8", "c"), "name of a check", ("ci\r",), 1),
    "rule": Stop(
        ("\r", "8", "/", "main", "\r", "G", "\r"),
        "branches main",
        ("g", "\r"),
        0,
        "not saved",
    ),
    "inbox": Stop(("i",), "nothing new"),
    "account": Stop(("a",), "Tokens for scripts"),
    "sync": Stop(("s",), "Connection"),
    "keys": Stop(("?",), "go to a repository"),
    "palette": Stop((" ",), "go to a repository"),
    "repositories": Stop(("w",), "filter"),
}


def furnish(place: Place) -> None:
    """Give the repository something for every screen."""
    ann = place.ann
    place.write(ann, "README.md", "# Project\n\nRead me.\n")
    place.write(ann, "src/main.py", "def main():\n    return 1\n")
    ann.ok("push", "-m", "First")
    ann.ok("repo", "edit", "-d", "Notes on parsing")
    ann.ok("label", "create", "bug")
    ann.ok("issue", "create", "-t", "Retry stalls", "-b", "It hangs")
    ann.ok("repo", "branch", "topic")
    ann.ok("switch", "topic")
    place.write(ann, "src/main.py", "def main():\n    return 3\n")
    ann.ok("push", "-m", "Third")
    ann.ok("pr", "create", "--base", "main", "-t", "Return three", "-b", "Because")
    ann.ok("switch", "main")
    seal = ann.ok("log", "main", "--json", "id").json()[0]["id"]
    words = ("repo", "run", "create", "lint", "--seal", seal)
    ann.ok(*words, "--conclusion", "failure", "--summary", "Two lines too long")
    ann.ok("repo", "release", "create", "v1", "README.md", "--notes", "First one\n\nGood.")
    ann.ok("repo", "protect", "set", "main", "--require-checks")


class App:
    """The app of a machine on a pseudo-terminal."""

    def __init__(
        self,
        machine: Machine,
        command: list[str],
        width: int = 80,
        height: int = 24,
        colours: bool = False,
    ) -> None:
        environment = {"SVC_HOME": str(machine.home), "SVC_SERVER": machine.node.address}
        environment |= {} if colours else {"NO_COLOR": "1"}
        self.terminal = Terminal(command, Path(machine.folder), width, height, environment)
        self.expect("Repositories 1")

    def expect(self, words: str) -> None:
        """Wait for words. Raises Broken if they do not come, and for a traceback."""
        found = self.terminal.shows(words)
        text = self.terminal.text
        if not found or "Traceback" in text or "something went wrong" in text:
            raise Broken(f"«{words}» is not on the screen:\n{text}")

    def go(self, stop: Stop) -> None:
        """Walk from Home."""
        for key in stop.keys:
            before = self.terminal.text
            self.type(key)
            self._changes(before)
        self.expect(stop.words)

    def type(self, keys: str) -> None:
        self.terminal.keys(keys, 0.15)

    def costs(self, keys: str) -> int:
        """Type, and wait until the screen is still: the bytes that came."""
        count = self.terminal.keys(keys, 0.3)
        while more := self.terminal.read(0.3, 1.0):
            count += more
        return count

    def back(self) -> None:
        """Return to Home from wherever it is."""
        for _ in range(8):
            if "\n Repositories " in self.terminal.text:
                return
            before = self.terminal.text
            self.type(ESC)
            self._changes(before)
        raise Broken(f"esc does not lead Home:\n{self.terminal.text}")

    def _changes(self, before: str) -> None:
        """Wait until the screen is another one and stays so: a key too many at Home ends the app."""
        until = time.monotonic() + 10
        while self.terminal.text == before and time.monotonic() < until:
            self.terminal.read(0.1, 0.5)
        while self.terminal.read(0.3, 1.0):
            pass

    def leave(self) -> None:
        """End it as people do. Raises Broken unless the terminal is as it was."""
        code = self.terminal.leave()
        if code != 0:
            raise Broken(f"the app ended with {code}:\n{self.terminal.text}")
        for sequence in (b"\x1b[?1049l", b"\x1b[?25h"):
            if sequence not in self.terminal.said:
                raise Broken(f"the terminal is left without {sequence!r}")
