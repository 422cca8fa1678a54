"""`--queue` after the session has ended, and on a disk that is full."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest

from svc.http.session import Sessions
from tests.svc.conftest import Svc
from tests.svc.flows.test_large_files import made

QUEUE = ("label", "create", "bug", "-c", "d73a4a", "--queue")


@pytest.fixture
def folder(alice: Svc) -> Svc:
    made(alice, "app", "folder")
    return alice


def test_the_session_has_ended(folder: Svc) -> None:
    sessions = Sessions(Path(os.environ["SVC_HOME"]))
    session = sessions.find(os.environ["SVC_SERVER"])
    assert session is not None
    sessions.save(msgspec.structs.replace(session, expires_at="2026-01-02T03:04:05.000Z"))
    assert folder("label", "list").code == 1
    told = folder(*QUEUE)
    assert told.code == 0, told
    assert "waiting\tcreate label bug" in folder("queue", "list").out
    told = folder("queue", "retry")
    assert told.code == 1
    assert "run: svc login" in told.err
    sessions.save(session)
    assert folder("queue", "retry").code == 0
    assert "bug" in folder("label", "list").out


def test_whoever_never_signed_in_is_asked_to(folder: Svc) -> None:
    assert folder("logout").code == 0
    told = folder(*QUEUE)
    assert told.code == 4
    assert "run: svc login" in told.err


@pytest.mark.parametrize("words", [QUEUE, ("queue", "list"), ("queue", "retry"), ("queue", "drop", "--all")])
def test_the_disk_is_full(folder: Svc, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("localstore.outbox.open_shared", full)
        told = folder(*words)
    assert told.code == 1
    assert "free some space" in told.err
    assert "something broke" not in told.err


def test_what_was_refused_before_is_named(folder: Svc) -> None:
    assert folder(*QUEUE).code == 0
    assert folder("label", "create", "bug", "-c", "d73a4a").code == 0
    assert folder("queue", "retry").code == 1
    told = folder("queue", "retry")
    assert told.code == 0
    assert "1 action refused before; see: svc queue list" in told.err
