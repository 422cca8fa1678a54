"""API keys on a command line."""

from __future__ import annotations

from tests.svc.conftest import Svc


def test_in_a_pipe_the_secret_is_the_answer_and_not_on_stderr(alice: Svc) -> None:
    created = alice("auth", "key", "create", "printer")
    assert created.code == 0
    assert created.out.startswith("svck_")
    assert "Created the API key printer" in created.err
    assert created.out.strip() not in created.err
    key = alice("auth", "key", "list", "--jq", ".[0].id").out.strip()
    rotated = alice("auth", "key", "rotate", key, "--yes")
    assert rotated.out.startswith("svck_")
    assert rotated.out.strip() not in rotated.err
