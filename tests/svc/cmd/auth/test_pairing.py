"""`svc auth device pair` and `svc login --qr` as people meet them: two homes, two terminals, six digits."""

from __future__ import annotations

import errno
import os
import pty
import re
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, clean_environment

LOGIN = ("login", "--no-git-credential")  # a question of its own at the end


class Terminal:
    """One command on a terminal of its own, with a person to answer."""

    def __init__(self, home: Path, *words: str) -> None:
        self.text = ""
        self._near, far = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "svc", *words],
            stdin=far,
            stdout=far,
            stderr=far,
            env=clean_environment(SVC_HOME=str(home), COLUMNS="100", TERM="dumb", LC_ALL="C.UTF-8"),
            cwd=ROOT,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's & has it ignored
        )
        os.close(far)

    def until(self, pattern: str) -> str:
        """The first group of the pattern, once the command has printed it."""
        end = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self.text)) is None:
            assert self._read(end), f"{pattern} never came:\n{self.text}"
        return match[1]

    def type(self, text: str) -> None:
        os.write(self._near, text.encode())

    def end(self) -> int:
        """The exit code, once the command has ended."""
        end = time.monotonic() + PATIENCE
        while self._read(end):
            pass
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._near)

    def _read(self, end: float) -> bool:
        """Whether the command has printed more before `end`."""
        left = max(end - time.monotonic(), 0)
        if not select.select([self._near], [], [], left)[0]:
            return False
        try:
            piece = os.read(self._near, 65536)
        except OSError as error:  # the command has closed its end
            assert error.errno == errno.EIO
            return False
        self.text += piece.decode(errors="replace").replace("\r\n", "\n")
        return bool(piece)


Open = Callable[..., Terminal]


@pytest.fixture
def terminal() -> Iterator[Open]:
    opened: list[Terminal] = []

    def start(home: Path, *words: str) -> Terminal:
        opened.append(Terminal(home, *words))
        return opened[-1]

    yield start
    for one in opened:
        with suppress(OSError):
            one.close()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_two_homes_in_two_terminals_pair(answer: str, node: str, tmp_path: Path, terminal: Open) -> None:
    handle = f"q{secrets.token_hex(6)}"
    laptop, tablet = tmp_path / "laptop", tmp_path / "tablet"
    login = terminal(laptop, *LOGIN, "--server", node, "--device-key", "--handle", handle)
    login.until("(Signed in)")
    assert login.end() == 0
    drawing = terminal(laptop, "auth", "device", "pair", "--name", "tablet")
    text = drawing.until(r"svc login --qr (\S+)\n")
    assert "█▀" in drawing.text or "█▄" in drawing.text
    joining = terminal(tablet, *LOGIN, "--qr", text)
    digits = drawing.until(r"Digits: (\d{3} \d{3})\n")
    assert joining.until(r"Digits: (\d{3} \d{3})\n") == digits
    assert handle in joining.until(r"(joins the account .*) \[y/N\]")
    drawing.until(r"(tablet is added\.) \[y/N\]")
    joining.type(f"{answer}\n")
    if answer == "n":
        assert joining.end() == 1
        assert "no device was added" in joining.text
        drawing.type("y\n")
        assert drawing.end() == 1
        assert "refused" in drawing.text
        return
    drawing.type("y\n")
    assert (drawing.end(), joining.end()) == (0, 0)
    assert "Added tablet" in drawing.text
    assert f"Signed in to {node} as {handle}" in joining.text


def test_a_killed_end_adds_nothing(node: str, tmp_path: Path, terminal: Open) -> None:
    """The machine that draws the code dies with the digits on its screen; the other waits, and nothing is
    added."""
    handle, laptop, tablet = f"q{secrets.token_hex(6)}", tmp_path / "laptop", tmp_path / "tablet"
    login = terminal(laptop, *LOGIN, "--server", node, "--device-key", "--handle", handle)
    assert (login.until("(Signed in)"), login.end()) == ("Signed in", 0)
    drawing = terminal(laptop, "auth", "device", "pair")
    joining = terminal(tablet, *LOGIN, "--qr", drawing.until(r"svc login --qr (\S+)\n"))
    drawing.until(r"(Digits: )")
    joining.until(r"(\[y/N\])")
    drawing.process.kill()
    assert drawing.process.wait(PATIENCE) != 0
    joining.type("y\n")
    listed = terminal(laptop, "auth", "device", "list", "--jq", "length")
    assert (listed.until(r"(\d+)\n"), listed.end()) == ("1", 0)
    joining.process.terminate()
    assert joining.process.wait(PATIENCE) != 0
    later = terminal(laptop, "auth", "device", "pair")  # and another code works
    again = terminal(tablet, *LOGIN, "--qr", later.until(r"svc login --qr (\S+)\n"))
    again.until(r"(\[y/N\])")
    again.type("y\n")
    later.until(r"(\[y/N\])")
    later.type("y\n")
    assert (later.end(), again.end()) == (0, 0)


def test_an_interrupted_end_ends_the_pairing_for_both(node: str, tmp_path: Path, terminal: Open) -> None:
    handle, laptop, tablet = f"q{secrets.token_hex(6)}", tmp_path / "laptop", tmp_path / "tablet"
    login = terminal(laptop, *LOGIN, "--server", node, "--device-key", "--handle", handle)
    assert (login.until("(Signed in)"), login.end()) == ("Signed in", 0)
    drawing = terminal(laptop, "auth", "device", "pair")
    joining = terminal(tablet, *LOGIN, "--qr", drawing.until(r"svc login --qr (\S+)\n"))
    drawing.until(r"(\[y/N\])")
    joining.until(r"(\[y/N\])")
    drawing.process.send_signal(signal.SIGINT)
    assert drawing.end() == 130
    joining.type("y\n")
    assert joining.end() == 1
    assert "refused" in joining.text
    early = terminal(laptop, "auth", "device", "pair")
    text = early.until(r"svc login --qr (\S+)\n")
    early.until(r"(Waiting for the other device)")
    early.process.send_signal(signal.SIGINT)
    assert early.end() == 130
    late = terminal(tablet, *LOGIN, "--qr", text)
    assert late.end() == 1
    assert "Digits" not in late.text
