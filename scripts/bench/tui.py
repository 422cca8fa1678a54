"""Measures the bytes that the app sends to a terminal, and its CPU.

    python -m scripts.bench.tui FOLDER [--size 80x24]

FOLDER is a linked working copy whose server runs. The app runs on a real pseudo-terminal. Its output is
counted until it has sent nothing for half a second, and is also passed to a terminal emulator.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import resource
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyte

ROOT = Path(__file__).resolve().parents[2]
KEPT = 65536  # bytes of what was printed that are kept
NEWER = (
    ("Issues", "3"),
    ("an issue", "\r"),
    ("line down", "j"),
    ("back", "\x1b"),
    ("proposals", "p"),
    ("a proposal", "\r"),
    ("its files", "\r"),
    ("page down", "\x04"),
    ("back", "\x1b"),
    ("back", "\x1b"),
    ("Workflows", "4"),
    ("Releases", "5"),
    ("Security", "6"),
    ("Insights", "7"),
    ("Settings", "8"),
    ("line down", "j"),
    ("page down", "\x04"),
    ("next panel", "}"),
    ("inbox", "i"),
    ("back", "\x1b"),
    ("sync", "s"),
    ("keys", "?"),
)
QUIET = 0.5  # seconds without a byte that end a step


class Terminal:
    """A pseudo-terminal on which a program runs, and the content of its screen."""

    SCREEN = pyte.Screen

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        width: int,
        height: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment`: variables for the program in addition to those of this process."""
        self.said = b""  # the end of what it printed
        self.screen = self.SCREEN(width, height)
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self._line = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.chdir(folder)
            os.environ.update(TERM="xterm-256color", COLORTERM="", PYTHONPATH=str(ROOT))
            os.environ.update(environment or {})
            os.execv(command[0], list(command))

    def read(self, quiet: float = QUIET, most: float = 10.0) -> int:
        """Read the program's output until nothing comes for `quiet` seconds, but no longer than `most`
        seconds. Returns the number of bytes."""
        count, began = 0, time.monotonic()
        while time.monotonic() - began < most:
            if not select.select([self._line], [], [], quiet)[0]:
                break
            try:
                data = os.read(self._line, 65536)
            except OSError:
                break
            count += len(data)
            self._answer(data)
            self._stream.feed(data)
            self.said = (self.said + data)[-KEPT:]
        return count

    def keys(self, text: str, quiet: float = QUIET) -> int:
        """Type the text, and read the program's output. Returns its number of bytes."""
        os.write(self._line, text.encode())
        return self.read(quiet)

    def shows(self, words: str, seconds: float = 20.0) -> bool:
        """Whether the words are on the screen, or appear there within `seconds`."""
        until = time.monotonic() + seconds
        while words not in self.text:
            if time.monotonic() > until:
                return False
            self.read(0.1, 1.0)
        return True

    @property
    def text(self) -> str:
        """The text on the screen, without blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self.screen.display)

    def resize(self, width: int, height: int) -> int:
        """Change the size of the terminal, and read the program's output. Returns its number of bytes."""
        self.screen.resize(height, width)
        fcntl.ioctl(self._line, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)
        return self.read()

    def kill(self) -> None:
        """Kill the program with SIGKILL."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._line)

    def leave(self) -> int:
        """End the program by Ctrl-C. Returns its exit code."""
        os.write(self._line, b"\x03")
        self.read(0.5, 5.0)
        _, status = os.waitpid(self.pid, 0)
        os.close(self._line)
        return os.waitstatus_to_exitcode(status)

    def close(self) -> float:
        """End the program. Returns its CPU seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(self._line, b"\x03")
        self.read(0.3, 2.0)
        os.close(self._line)
        os.waitpid(self.pid, 0)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def _answer(self, data: bytes) -> None:
        """Answer as a real terminal does if the program's output asks something about the terminal."""
        if b"\x1b[?2026$p" in data:
            os.write(self._line, b"\x1b[?2026;2$y")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--show", action="store_true", help="print the screens")
    options = parser.parse_args()
    width, height = map(int, options.size.split("x"))
    command = [str(Path(sys.executable).with_name("svc")), "tui"]
    terminal = Terminal(command, options.folder, width, height)
    steps = (
        ("start", ""),
        ("open a repository", "\r"),
        ("tab 1", "1"),
        ("tab 2", "2"),
        ("line down", "j"),
        ("last row", "G"),
        ("open a file", "\r"),
        ("page down", "\x04"),
        ("page down", "\x04"),
        ("line down", "j" * 12),
        ("line down", "j"),
        ("idle 3 s", None),
        *NEWER,
    )
    for name, typed in steps:
        if typed is None:
            count = terminal.read(3.0, 3.1)
        else:
            count = terminal.keys(typed) if typed else terminal.read(1.5)
        print(f"{name:<20} {count:>7} bytes")
        if options.show:
            print("\n".join(line.rstrip() for line in terminal.screen.display), "\n")
    print(f"{'CPU':<20} {terminal.close():>7.2f} s")


if __name__ == "__main__":
    main()
