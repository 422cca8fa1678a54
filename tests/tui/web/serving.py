"""`svc tui --web` in a process of its own, and what asks it."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.patience import PATIENCE
from tests.svc.conftest import ROOT


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    text: str

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Web:
    """The server, at `url` with its token. A variable of its environment that is "" is not set."""

    def __init__(self, *words: str, **environment: str) -> None:
        given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "svc", "tui", "--web", "--no-browser", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in given.items() if value},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.process.communicate(timeout=PATIENCE)
        self.port = int(urlsplit(self.url).port or 0)
        self.token = self.url.partition("?token=")[2]

    def get(self, path: str, *headers: tuple[str, str], method: str = "GET", host: str = "") -> Answer:
        """Send one request with these headers, each as often as it is named."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in (("Host", host or f"127.0.0.1:{self.port}"), *headers):
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read().decode("utf-8", "replace"))
        finally:
            connection.close()

    def enter(self) -> tuple[str, tuple[str, str]]:
        """Exchange the token: (path of the page, the header with the cookie)."""
        answer = self.get(f"/?token={self.token}")
        assert answer.status == 200, answer
        (cookie,) = answer.all("Set-Cookie")
        found = re.search(r'url=(/[^"]+/)"', answer.text)
        assert found, answer.text
        return found[1], ("Cookie", cookie.partition(";")[0])

    def apps(self) -> list[int]:
        """The processes of the apps of its pages."""
        return children(self.process.pid)

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        """(exit code, what it said)."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, said


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in listed]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def serving(*words: str, **environment: str) -> Iterator[Web]:
    web = Web(*words, **environment)
    try:
        yield web
    finally:
        if web.process.poll() is None:
            web.end()
