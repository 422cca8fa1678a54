"""`svc push` without -m: a message written in an editor, at a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.svc.conftest import ROOT, Answer, Svc

EDITOR = """
import pathlib, sys
what, seen, file = sys.argv[1:]
found = pathlib.Path(file).read_text()
pathlib.Path(seen).write_text(found)
if what == "fail":
    sys.exit(3)
if what != "nothing":
    pathlib.Path(file).write_text(what.replace("_", " ") * (20_000 if what == "long" else 1) + found)
"""


@pytest.fixture
def folder(alice: Svc) -> Path:
    """A linked folder with one seal, then a new, a changed and a removed file."""
    assert alice("repo", "create", "app").code == 0
    assert alice("repo", "init", f"{os.environ['TEST_HANDLE']}/app").code == 0
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("one\n")
    assert alice("push", "-m", "First").code == 0
    Path("a.txt").write_text("one\ntwo\n")
    Path("b.txt").unlink()
    Path("new\x1b[2J.txt").write_text("new\n")
    return Path.cwd()


def at_terminal(editor: str, *words: str) -> Answer:
    """`svc push`, or other words, where somebody sits who writes with `editor`."""
    near, far = pty.openpty()
    settings = {"TERM": "xterm", "VISUAL": editor, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "svc", *(words or ("push",))],
        stdin=far,
        stdout=far,
        stderr=subprocess.PIPE,
        env={**os.environ, **settings},
    ) as process:
        err = process.communicate(timeout=PATIENCE)[1].decode()
    os.close(far)
    out = b""
    try:
        while piece := os.read(near, 65536):
            out += piece
    except OSError:  # the other side is closed
        os.close(near)
    return Answer(process.returncode, out.decode(), err)


def writes(tmp_path: Path, what: str) -> str:
    program = tmp_path / "my editor.py"
    program.write_text(EDITOR)
    return f"{sys.executable} '{program}' {what} {tmp_path / 'seen'}"


def messages(svc: Svc) -> list[str]:
    return [seal["message"] for seal in json.loads(svc("log", "--json", "message").out)]


def test_a_message_is_written_above_what_would_be_sent(alice: Svc, folder: Path, tmp_path: Path) -> None:
    told = at_terminal(writes(tmp_path, "Read_it_once"))
    assert told.code == 0, told
    assert "Sealed" in told.out
    assert messages(alice) == ["Read it once", "First"]
    shown = (tmp_path / "seen").read_text()
    assert shown.startswith("\n# What the seal says.")
    assert "/app, branch main" in shown
    lists = "# to send:\n#   a.txt\n#\n# to remove:\n#   b.txt\n#\n# to skip:\n#   new"
    lists += "\\x1b[2J.txt (unsafe name)\n"
    assert shown.endswith(lists)


@pytest.mark.parametrize(("what", "code", "said"), [("nothing", 1, "empty"), ("fail", 1, "ended with 3")])
def test_without_a_message_nothing_is_sent(
    alice: Svc, folder: Path, tmp_path: Path, what: str, code: int, said: str
) -> None:
    told = at_terminal(writes(tmp_path, what))
    assert (told.code, len(told.err.splitlines())) == (code, 1), told
    assert said in told.err
    assert "nothing was sent" in told.err
    assert messages(alice) == ["First"]
    assert json.loads(alice("status", "--json", "changed").out) == {"changed": ["a.txt"]}


def test_a_message_outlives_a_push_that_fails(folder: Path, tmp_path: Path) -> None:
    told = at_terminal(writes(tmp_path, "long"))
    assert told.code == 1
    kept = re.search(r"your message is kept in (\S+);", told.err)
    assert kept, told
    assert Path(kept[1]).read_text().startswith("longlong")
    shutil.rmtree(Path(kept[1]).parent)


def test_nobody_writes_for_a_push_that_is_refused(
    alice: Svc, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    assert alice("repo", "clone", f"{os.environ['TEST_HANDLE']}/app", str(other)).code == 0
    monkeypatch.chdir(other)
    Path("c.txt").write_text("theirs\n")
    assert alice("push", "-m", "Theirs").code == 0
    monkeypatch.chdir(folder)
    told = at_terminal(writes(tmp_path, "Mine"))
    assert (told.code, (tmp_path / "seen").exists()) == (1, False), told
    assert "svc pull" in told.err


def test_nobody_writes_where_nothing_is_left_to_seal(alice: Svc, folder: Path, tmp_path: Path) -> None:
    assert alice("push", "-m", "Second").code == 0
    told = at_terminal(writes(tmp_path, "Mine"))
    assert (told.code, (tmp_path / "seen").exists()) == (0, False), told
    assert "Nothing to seal" in told.out
    assert messages(alice) == ["Second", "First"]


def test_what_is_live_already_still_wants_a_message(alice: Svc, folder: Path, tmp_path: Path) -> None:
    """Sent by a push whose message was refused: nothing is left to send, but all of it to seal."""
    told = at_terminal(writes(tmp_path, "long"))
    assert told.code == 1, told
    told = at_terminal(writes(tmp_path, "Mine"))
    assert told.code == 0, told
    assert "the live edits of the branch will be sealed" in (tmp_path / "seen").read_text()
    assert messages(alice) == ["Mine", "First"]


def test_a_seal_of_removals_alone_counts_no_files(folder: Path, tmp_path: Path) -> None:
    Path("a.txt").write_text("one\n")
    told = at_terminal(writes(tmp_path, "Without_b"))
    assert re.search(r"Sealed \w{12}: 1 removed\s", told.out), told


def test_an_editor_that_is_not_there(folder: Path) -> None:
    told = at_terminal("no-such-editor --wait")
    assert (told.code, told.err) == (
        2,
        "svc: there is no editor no-such-editor; set EDITOR, or say the message with -m\n",
    ), told


def test_nobody_is_asked_in_a_pipe(alice: Svc, folder: Path) -> None:
    told = alice("push")
    assert told.code == 2
    assert "add -m" in told.err
