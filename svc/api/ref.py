"""Branches and tags."""

from __future__ import annotations

from collections.abc import Iterator

from localstore.core.model import ref as endpoints
from localstore.core.model.ref import Ref, RefCreate, RefType, RefUpdate
from svc.http.client import Http


class RefCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def list(self, repo_id: str, type: RefType | None = None, limit: int | None = None) -> Iterator[Ref]:
        return self._http.items(endpoints.LIST, limit, {"type": type}, id=repo_id)

    def get(self, repo_id: str, type: RefType, name: str) -> Ref:
        return self._http.send(endpoints.GET, id=repo_id, type=type, name=name)

    def create(self, repo_id: str, body: RefCreate) -> Ref:
        return self._http.send(endpoints.CREATE, body, id=repo_id)

    def move(self, repo_id: str, name: str, body: RefUpdate) -> Ref:
        """Move a branch by compare-and-swap; StaleHead when it stands elsewhere."""
        return self._http.send(endpoints.UPDATE, body, id=repo_id, type="branch", name=name)

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
        self._http.send(endpoints.DELETE, query=query, id=repo_id, type=type, name=name)
