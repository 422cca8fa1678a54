"""Patience: on a busy machine no test may fail because somebody answered late."""

from __future__ import annotations

import pytest

from localstore.watch import server, talk


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk, "ASK_SECONDS", 60.0)
    monkeypatch.setattr(talk, "MEET_SECONDS", 60.0)
    monkeypatch.setattr(server, "HEAR_SECONDS", 3.0)
