"""Finds the roles (keyword, string, …) of the parts of a source text. It does so in a separate process,
because there is no limit to the time that a lexer may take.

    roles = colouring.roles("x = 1", path="a.py")       None: no lexer, or the text took too long
    colouring.close()

The process answers one request at a time and then waits for the next. It ends if a text takes too long, or
when this process ends."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from array import array
from contextlib import suppress
from typing import IO, NamedTuple

NICE = 5  # what colours does not slow down what is typed
NAMES = ("text", "comment", "keyword", "string", "number", "name", "title")  # of roles
HEAD = struct.Struct("<BII")  # of a question and of an answer: what kind it is, and two lengths
BY_PATH, BY_LANGUAGE = 0, 1  # kinds of questions
NOTHING, FOUND = 0, 1  # kinds of answers


class Roles(NamedTuple):
    """The roles of the parts of a text. `text`: the text as the lexer returns it, whose line breaks may
    differ. `at`: the positions at which parts begin, in order. `names`: for each part the index of its role
    in NAMES."""

    text: str
    at: array[int]
    names: bytes


class Colouring:
    """Runs a separate process that finds the roles (keyword, string, …) in source texts. It is started at the
    first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed: subprocess.Popen[bytes] | None = None

    def roles(self, text: str, path: str = "", language: str = "") -> Roles | None:
        """Returns the roles of the parts of a text. Returns None if no lexer knows this kind of text, or if
        it takes too long. `path` or `language`: the name of the file or of the language, by which the lexer
        is chosen. Waits for the answer, so call it on a thread."""
        with self._lock:
            try:
                return self._ask(BY_LANGUAGE if language else BY_PATH, language or path, text)
            except (OSError, EOFError):
                self._end()
                return None

    def close(self) -> None:
        """End the process. A thread that is waiting for its answer gets None."""
        process = self._process
        if process is not None:
            self._killed = process
            process.kill()

    def _ask(self, kind: int, name: str, text: str) -> Roles | None:
        process = self._running()
        source, out = process.stdin, process.stdout
        assert source is not None  # noqa: S101
        assert out is not None  # noqa: S101
        words, body = name.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass")
        source.write(HEAD.pack(kind, len(words), len(body)) + words + body)
        source.flush()
        answer, length, count = HEAD.unpack(_read(out, HEAD.size))
        if answer != FOUND:
            return None
        back = _read(out, length).decode("utf-8", "surrogatepass")
        at = array("I")
        at.frombytes(_read(out, count * at.itemsize))
        return Roles(back, at, _read(out, count))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is not None and (self._process is self._killed or self._process.poll() is not None):
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tui.lexing"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # keys and signals of the terminal are the app's
            )
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, NICE)
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.wait()


def _read(source: IO[bytes], length: int) -> bytes:
    """Reads exactly `length` bytes. Raises EOFError if the process ends before that."""
    data = source.read(length)
    if len(data) < length:
        raise EOFError
    return data


COLOURING = Colouring()
"""The one of this process."""
