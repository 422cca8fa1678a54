"""Repositories."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from localstore.core.errors import NotFound
from localstore.core.model.base import Page
from localstore.core.model.repo import Coordinates, Deleted, Repo, RepoCreate
from svc.http.client import Http
from svc.http.target import segment

ROOT = "/api/v1/repos"


def at(repo_id: str) -> str:
    """The path of one repository's routes."""
    return f"{ROOT}/{segment(repo_id)}"


class RepoCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, body: RepoCreate) -> Repo:
        return self._http.call("POST", ROOT, Repo, body=body, creates=True)

    def get(self, repo_id: str) -> Repo:
        return self._http.call("GET", at(repo_id), Repo)

    def find(self, owner: str, name: str) -> Repo:
        """OWNER/NAME as the caller may see it, also under a former name; NotFound otherwise."""
        if self._http.credential is not None:
            page = self._http.call("GET", ROOT, Page[Repo], query={"owner": owner, "name": name, "limit": 1})
            if page.items:
                return page.items[0]
        try:
            public = self.coordinates(owner, name)
            return _as_anyone(public) if self._http.credential is None else self.get(public.id)
        except NotFound:
            hint = "check the name" if self._http.credential else "check the name, or sign in: svc login"
            raise NotFound(
                f"{owner}/{name} on {self._http.origin} does not exist or is hidden; {hint}"
            ) from None

    def linked(self, repo_id: str, full_name: str) -> Repo:
        """The repository of a linked folder: by id, by its name where nobody is signed in."""
        if self._http.credential is None:
            return self.find(*full_name.split("/", 1))
        return self.get(repo_id)

    def coordinates(self, owner: str, name: str) -> Coordinates:
        """What anyone may know of a public repository."""
        path = f"/api/v1/public/apps/{segment(owner)}/{segment(name)}"
        return self._http.call("GET", path, Coordinates)

    def list(
        self, owner: str | None = None, state: Literal["deleted"] | None = None, limit: int | None = None
    ) -> Iterator[Repo]:
        """Repositories the caller may see; `owner` a handle or `@me`."""
        return self._http.pages(ROOT, Repo, query={"owner": owner, "state": state}, limit=limit)

    def search(
        self, text: str, sort: Literal["trending", "recent"] | None, limit: int | None = None
    ) -> Iterator[Repo]:
        return self._http.pages("/api/v1/search/repos", Repo, query={"q": text, "sort": sort}, limit=limit)

    def patch(self, repo_id: str, changes: dict[str, Any]) -> Repo:
        """Change the named members only (JSON merge patch)."""
        return self._http.call("PATCH", at(repo_id), Repo, body=changes)

    def delete(self, repo_id: str) -> Deleted:
        return self._http.call("DELETE", at(repo_id), Deleted)

    def restore(self, restore_id: str) -> Repo:
        return self._http.call("POST", f"{at(restore_id)}/restore", Repo)


def _as_anyone(public: Coordinates) -> Repo:
    """A public repository as its coordinates show it; its times are for those who sign in."""
    return Repo(
        id=public.id,
        owner=public.owner,
        name=public.name,
        full_name=public.full_name,
        kind=public.kind,
        class_=public.class_,
        default_branch=public.default_branch,
        description=public.description,
        visibility="public",
        archived=public.archived,
        state="archived" if public.archived else "active",
        created_at="",
        updated_at="",
    )
