"""Edits that are on the branch and in no seal stay in the folder while their author may only read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.svc.conftest import Svc

MINE = {"a.txt": "one\nand mine\n", "new.txt": "new\n"}


@pytest.fixture
def sent(alice: Svc, monkeypatch: pytest.MonkeyPatch) -> Svc:
    """alice in a folder of a public repository. The branch has her edits, and no seal has them."""
    repo = f"{os.environ['TEST_HANDLE']}/app"
    assert alice("repo", "create", "app", "--public").code == 0
    assert alice("repo", "init", repo).code == 0
    Path("a.txt").write_text("one\n")
    assert alice("push", "-m", "One").code == 0
    for path, text in MINE.items():
        Path(path).write_text(text)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("svc.flows.push.seal", interrupted)
        assert alice("push", "-m", "Two").code == 130
    return alice


def files() -> dict[str, str]:
    return {path.name: path.read_text() for path in Path().iterdir() if path.is_file()}


def test_signed_out_a_pull_asks_to_sign_in(sent: Svc) -> None:
    assert sent("logout").code == 0
    for words in (["pull"], ["pull", "--merge"], ["pull", "--force"]):
        refused = sent(*words)
        assert refused.code == 4, words
        assert "in no seal yet" in refused.err
        assert "run: svc login" in refused.err
    assert files() == MINE
    assert sent("login", "--device-key", "--handle", os.environ["TEST_HANDLE"]).code == 0
    assert sent("pull").code == 0
    assert files() == MINE


def test_archived_a_pull_leaves_them(sent: Svc) -> None:
    assert sent("repo", "archive", "--yes").code == 0
    told = sent("pull")
    assert told.code == 1
    assert "a.txt" in told.err
    assert sent("pull", "--merge").code == 0
    assert files() == MINE
    assert sent("status").out == "changed\ta.txt\t\nnew\tnew.txt\t\n"
    assert sent("repo", "unarchive").code == 0
    assert sent("pull").code == 0
    assert files() == MINE
    assert sent("push", "-m", "Two").code == 0
    assert sent("status").out == ""
