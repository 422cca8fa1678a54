"""Patience: on a busy machine no test may fail because somebody answered late."""

from __future__ import annotations

import pytest

from localstore.watch import protocol, server


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ASK_SECONDS", 60.0)
    monkeypatch.setattr(protocol, "CONTROL_SECONDS", 60.0)
    monkeypatch.setattr(server, "QUESTION_SECONDS", 3.0)
