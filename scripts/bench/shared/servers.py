"""Runs the servers of a comparison, in a temporary folder that is deleted at the end."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.bench.shared.git_server import git_server
from scripts.bench.shared.sides import Git, Side, Svc
from scripts.tour import start_relay


@contextlib.contextmanager
def relay_in(base: Path, python: str = sys.executable) -> Iterator[Svc]:
    """A context that runs a relay with its data in `base`/relay and yields svc, signed in to this relay.
    `python`: the Python that runs both."""
    relay, url = start_relay(base / "relay", python)
    try:
        yield Svc(base, url, relay.pid, python)
    finally:
        relay.terminate()
        relay.wait(20)


@contextlib.contextmanager
def both(python: str = sys.executable) -> Iterator[tuple[Path, list[Side]]]:
    """A context that yields (the folder to work in, [svc, git]), with a running server for each of the two.
    `python`: the Python that runs svc."""
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="svc-bench-")))
        (base / "git").mkdir()
        svc = stack.enter_context(relay_in(base, python))
        pid, url = stack.enter_context(git_server(base / "git"))
        yield base, [svc, Git(base / "git", url, pid)]
