"""What Ctrl-C says of a command that goes on where it stopped, with the real command and a real relay."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from svc.api.sync_transport import BranchTransport
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made, pushed

GOES_ON = "svc: interrupted; the same command goes on where it stopped\n"


@pytest.mark.parametrize(
    ("step", "command"),
    [
        ("seal", ("repo", "clone", "FULL", "other")),
        ("bootstrap", ("pull", "--merge")),
        ("updates", ("push", "-m", "two")),
    ],
)
def test_a_command_that_goes_on_says_so(
    alice: Svc, monkeypatch: pytest.MonkeyPatch, step: str, command: tuple[str, ...]
) -> None:
    full = made(alice, "app", "folder")
    Path("a.txt").write_text("one\n")
    pushed(alice)
    if command[0] == "push":
        Path("a.txt").write_text("two\n")
    words = [full if word == "FULL" else word for word in command]
    with monkeypatch.context() as patched:
        patched.setattr(BranchTransport, step, _ctrl_c)
        told = alice(*words)
    assert (told.code, told.err.endswith(GOES_ON)) == (130, True), told
    assert alice(*words).code == 0
    assert Path("other/a.txt" if command[1] == "clone" else "a.txt").is_file()


def test_a_command_that_does_not_go_on_says_nothing_of_it(
    alice: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(alice, "app", "folder")
    with monkeypatch.context() as patched:
        patched.setattr(BranchTransport, "bootstrap", _ctrl_c)
        told = alice("pull", "--dry-run")
    assert (told.code, told.err) == (130, "svc: interrupted\n")


def _ctrl_c(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt
