"""Runs and checks of a repository, as tests make and read them."""

from __future__ import annotations

import secrets
from typing import Any

import httpx

from tests.relay.histories import Repository, ok


def sealed(repo: Repository, branch: str = "main") -> str:
    return repo.seal({"f": secrets.token_bytes(8)}, branch=branch)[0]


def run(repo: Repository, seal: str, name: str = "ci/test", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(
        repo.http.post(f"{repo.url}/runs", json={"name": name, "seal_id": seal, **more})
    )
    return made


def checks(repo: Repository, seal: str) -> dict[str, Any]:
    found: dict[str, Any] = repo.get(f"/seals/{seal}/checks")
    return found


def refused(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    problem: dict[str, Any] = answer.json()
    return problem
