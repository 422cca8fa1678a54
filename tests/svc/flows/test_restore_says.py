"""What `svc restore` tells of an edit that an earlier push began to send, with the real command and a real
relay."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.errors import ServerUnreachable
from localstore.core.model.live import UpdateAnswers, UpdateBatch
from svc.api.sync_transport import BranchTransport
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made, pushed


@pytest.fixture
def full(alice: Svc) -> str:
    """The folder we are in is linked to this new repository, which has one file."""
    full = made(alice, "app", "folder")
    Path("a.txt").write_text("one\n")
    pushed(alice)
    return full


def cut_push(alice: Svc, monkeypatch: pytest.MonkeyPatch, arrives: bool) -> None:
    """A push of a password whose line breaks, before the updates arrive or before their answer does."""
    Path("a.txt").write_text("one\npassword\n")
    send = BranchTransport.updates

    def cut(self: BranchTransport, batch: UpdateBatch) -> UpdateAnswers:
        if arrives:
            send(self, batch)
        raise ServerUnreachable("the line broke")

    with monkeypatch.context() as patched:
        patched.setattr(BranchTransport, "updates", cut)
        assert alice("push", "-m", "two").code == 1


def test_what_was_on_its_way_is_taken_back(
    alice: Svc, full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_push(alice, monkeypatch, arrives=False)
    told = alice("restore", "a.txt")
    assert "an earlier command began to send a.txt; that was taken back" in told.err
    assert alice("pull").code == 0
    assert pushed(alice)["seal"] is None
    assert alice("repo", "clone", full, str(tmp_path / "other")).code == 0
    assert (tmp_path / "other/a.txt").read_text() == "one\n"


def test_what_had_arrived_is_named(alice: Svc, full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cut_push(alice, monkeypatch, arrives=True)
    told = alice("restore", "a.txt")
    assert told.code == 0
    assert "the edit of a.txt had already arrived at the server" in told.err
    assert Path("a.txt").read_text() == "one\n"
    assert alice("push", "-m", "taken back").code == 0
    assert Path("a.txt").read_text() == "one\n"


def test_without_the_server_it_says_that_it_is_not_known(
    alice: Svc, full: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_push(alice, monkeypatch, arrives=False)
    with monkeypatch.context() as patched:
        patched.setattr(BranchTransport, "bootstrap", _unreachable)
        told = alice("restore", "a.txt")
    assert told.code == 0
    assert "Whether that arrived is not known now (the line broke)" in told.err
    assert Path("a.txt").read_text() == "one\n"
    assert alice("pull").code == 0
    assert Path("a.txt").read_text() == "one\n"


def test_after_a_push_that_a_protected_branch_refused_nothing_is_on_the_way(alice: Svc, full: str) -> None:
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    Path("a.txt").write_text("one\npassword\n")
    Path("new.txt").write_text("new\n")
    Path("b.bin").write_bytes(b"\0b")
    assert "protected" in alice("push", "-m", "two").err
    told = alice("status")
    assert "on the way" not in told.err
    assert told.out.split() == ["changed", "a.txt", "new", "b.bin", "new", "new.txt"]
    told = alice("restore", ".")
    assert told.code == 0
    assert "an earlier command" not in told.err
    assert Path("a.txt").read_text() == "one\n"
    assert alice("pull").code == 0


def test_what_a_protected_branch_refused_is_pushed_once_the_rule_is_gone(alice: Svc, full: str) -> None:
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    Path("a.txt").write_text("one\ntwo\n")
    Path("new.txt").write_text("new\n")
    for _ in range(2):
        assert "protected" in alice("push", "-m", "two").err
        assert alice("pull", "--merge").code == 0
        assert Path("a.txt").read_text() == "one\ntwo\n"
    assert alice("repo", "protect", "clear", "main", "--yes").code == 0
    Path("a.txt").write_text("zero\none\ntwo\n")
    assert sorted(pushed(alice)["sent"]) == ["a.txt", "new.txt"]
    assert alice("status").out == ""


def _unreachable(*_: object) -> None:
    raise ServerUnreachable("the line broke")
