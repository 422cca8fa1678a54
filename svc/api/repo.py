"""Calls that find a repository."""

from __future__ import annotations

from localstore.core.errors import NotFound
from localstore.core.model import repo as repos
from localstore.core.model.repo import Coordinates, Repo, RepoQuery
from svc.http.client import Http


class RepoCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def find(self, owner: str, name: str) -> Repo:
        """Return the repository OWNER/NAME. A former name finds it, too. Raises NotFound if it does not exist
        or is hidden."""
        if self._http.credential is not None:
            page = self._http.send(repos.LIST, query=RepoQuery(owner=owner, name=name, limit=1))
            if page.items:
                return page.items[0]
        try:
            public = self._http.send(repos.COORDINATES, kind="apps", owner=owner, name=name)
            if self._http.credential is None:
                return _as_anyone(public)
            return self._http.send(repos.GET, id=public.id)
        except NotFound:
            hint = "check the name" if self._http.credential else "check the name, or sign in: svc login"
            raise NotFound(
                f"{owner}/{name} on {self._http.origin} does not exist or is hidden; {hint}"
            ) from None

    def find_linked(self, repo_id: str, full_name: str) -> Repo:
        """Return the repository that a folder is linked to. It is looked up by id if the user is signed in,
        else by name."""
        if self._http.credential is None:
            return self.find(*full_name.split("/", 1))
        return self._http.send(repos.GET, id=repo_id)


def _as_anyone(public: Coordinates) -> Repo:
    """Return a public repository as a reader without a session sees it. `public` has its id, owner, name and
    so on, but no times, so its times are empty."""
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
        parent=public.parent,
        clone_url=public.clone_url,
    )
