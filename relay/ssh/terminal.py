"""Checks the terminal and command line that a client requests, and opens the pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import struct
import termios
from collections.abc import Mapping

from localstore.core.errors import UsageError

SIDE_MAX = 1000  # rows and columns
LINE_CHARS = 16 * 1024  # of a command
_TERM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")
_CHECKED = {
    "COLORTERM": re.compile(r"truecolor|24bit"),
    "LANG": re.compile(r"[A-Za-z]{1,8}(_[A-Za-z]{2})?(\.[A-Za-z0-9-]{1,12})?(@[a-z]{1,12})?"),
    "NO_COLOR": re.compile(r"[ -~]{1,8}"),
    "TERM_PROGRAM": re.compile(r"[A-Za-z0-9._-]{1,32}"),
}


def environment_of(client_variables: Mapping[bytes, bytes], term: str | None) -> dict[str, str]:
    """The environment variables of a session: TERM, LANG, the allowed ones of the client's variables, and one
    that tells the app that it runs over SSH. `term`: the terminal type that the client requested."""
    variables = {"TERM": term if term and _TERM.fullmatch(term) else "dumb", "LANG": "C.UTF-8"}
    for name, shape in _CHECKED.items():
        value = client_variables.get(name.encode(), b"").decode("ascii", "replace")
        if shape.fullmatch(value):
            variables[name] = value
    return {**variables, "SSH_CONNECTION": "ssh"}  # pages are then shown as links, not opened


def words_of(line: str) -> list[str]:
    """Split a command line into words, without a leading `svc`. No shell interprets the line. Raises
    UsageError for a line that is too long or has an open quote."""
    if len(line) > LINE_CHARS or "\0" in line:
        raise UsageError(f"a command line has at most {LINE_CHARS} characters")
    try:
        words = shlex.split(line)
    except ValueError:
        raise UsageError("the command line has an open quote") from None
    return words[1:] if words[:1] == ["svc"] else words


def open_terminal(columns: int, rows: int) -> tuple[int, int]:
    """Open a pseudo-terminal of this size. Returns (the relay's descriptor, the process's descriptor)."""
    ours, theirs = os.openpty()
    resize(ours, columns, rows)
    os.set_blocking(ours, False)
    return ours, theirs


def resize(ours: int, columns: int, rows: int) -> None:
    """Set the size of a pseudo-terminal; its processes are told by the signal SIGWINCH. `ours`: the relay's
    descriptor of the terminal. A number of columns or rows that is 0 or too large is replaced by 80 or 24."""
    size = (rows if 0 < rows <= SIDE_MAX else 24, columns if 0 < columns <= SIDE_MAX else 80)
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
