"""`svc status` where the server refuses to answer: what differs in the folder is shown all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made, pushed


@pytest.fixture
def edited(alice: Svc) -> Svc:
    """alice in a folder of a private repository, with an edit."""
    made(alice, "app", "folder")
    Path("a.txt").write_text("one\n")
    pushed(alice)
    Path("a.txt").write_text("two\n")
    return alice


def shows_the_edit(svc: Svc) -> str:
    """Expect the edit, and return what is said beside it."""
    answer = svc("status")
    assert (answer.code, answer.out) == (0, "changed\ta.txt\t\n"), answer
    assert "not compared with the server" in answer.err
    record = json.loads(svc("status", "--json").out)
    assert (record["changed"], record["offline"], record["head"]) == (["a.txt"], True, None)
    return answer.err


def test_after_the_session_was_revoked(edited: Svc) -> None:
    sessions = json.loads(edited("auth", "token", "list", "--json", "id").out)
    for session in sessions:
        assert edited("auth", "token", "revoke", session["id"], "--yes").code == 0
    assert "run: svc login" in shows_the_edit(edited)
    assert edited("push", "-m", "Two").code == 4


def test_signed_out(edited: Svc) -> None:
    assert edited("logout").code == 0
    told = shows_the_edit(edited)
    assert "without a session" in told
    assert "run: svc login" in told
    assert "deleted" not in told


def test_after_the_repository_was_deleted(edited: Svc) -> None:
    assert edited("repo", "delete", "--yes").code == 0
    assert "was deleted, or is hidden from you" in shows_the_edit(edited)
