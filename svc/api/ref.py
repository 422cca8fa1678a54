"""Branches and tags."""

from __future__ import annotations

from collections.abc import Iterator

from localstore.core.model import Ref
from localstore.core.model.ref import RefCreate, RefType, RefUpdate
from svc.api.repo import at
from svc.http.client import Http, segments


class RefCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, repo_id: str, type: RefType | None = None, limit: int | None = None) -> Iterator[Ref]:
        return self._http.pages(f"{at(repo_id)}/refs", Ref, query={"type": type}, limit=limit)

    def get(self, repo_id: str, type: RefType, name: str) -> Ref:
        return self._http.call("GET", _one(repo_id, type, name), Ref)

    def create(self, repo_id: str, body: RefCreate) -> Ref:
        return self._http.call("POST", f"{at(repo_id)}/refs", Ref, body=body, creates=True)

    def move(self, repo_id: str, name: str, body: RefUpdate) -> Ref:
        """Move a branch by compare-and-swap; StaleHead when it stands elsewhere."""
        return self._http.call("PATCH", _one(repo_id, "branch", name), Ref, body=body)

    def delete(
        self,
        repo_id: str,
        type: RefType,
        name: str,
        *,
        discard_live: bool = False,
        expected_head: str | None = None,
    ) -> None:
        query = {"discard_live": "true" if discard_live else None, "expected_head": expected_head}
        self._http.do("DELETE", _one(repo_id, type, name), query=query)


def _one(repo_id: str, type: RefType, name: str) -> str:
    return f"{at(repo_id)}/refs/{type}/{segments(name)}"
