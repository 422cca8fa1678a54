"""The repository that a page is about, and the addresses of its pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args
from urllib.parse import quote, urlencode

from localstore.core.errors import Forbidden, Unauthorized
from localstore.core.model.repo import Kind, Repo
from localstore.core.names import page_path
from localstore.core.rights import OPERATIONS
from relay.base.edition import EDITION
from relay.caller import Caller, View
from relay.domain.repository import repo as repos
from relay.gate.gate import view_at
from relay.http.routing import TABLE
from relay.render.jobs import Links

ANY = "apps"  # the address of an app, and accepted for every kind
PREFIXES = (ANY, *get_args(Kind))
_READS = OPERATIONS["history.tree"]


@dataclass(frozen=True, slots=True)
class Place:
    """A repository and how its pages show it. `view`: for reading files. `page`: address of its page, without
    that of the node. `images`: whether texts show images of the repository."""

    view: View
    repo: Repo
    page: str
    node: str
    images: bool = True

    @property
    def dev(self) -> str:
        return f"{self.page}/dev"

    def tab(self, tab: str, **query: str | int | None) -> str:
        """The address of a tab; members that are None or "" are left out."""
        given = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return f"{self.dev}?{urlencode({'tab': tab, **given}, quote_via=quote, safe='/')}"

    def code(self, at: str, path: str = "", **query: str | int | None) -> str:
        """The address of a file or folder at a branch, tag or seal."""
        return self.tab("code", at=at, path=path, **query)

    def raw(self, seal: str, path: str = "") -> str:
        """The address of the bytes of a file."""
        return f"/api/v1/repos/{self.repo.id}/raw/{seal}/{quote(path)}"

    def links(self, seal: str, folder: str) -> Links:
        """Tells where relative links in a text of this folder lead."""
        return Links(
            folder=folder,
            page=f"{self.tab('code', at=seal)}&path=",
            raw=self.raw(seal) if self.images else "",
            address=self.dev,
        )

    def offers(self, operation: str) -> bool:
        """Whether the node offers this operation of the API: its flag is on, and the edition has it."""
        flag = next(route.flag for route in TABLE if route.operation.name == operation)
        on = flag is None or self.view.node.config.flags.on(flag)
        return on and OPERATIONS[operation].in_edition(EDITION)

    def may(self, operation: str) -> bool:
        """Whether the node offers this operation of the API and the reader may use it."""
        if not self.offers(operation):
            return False
        try:
            replace(self.view, operation=OPERATIONS[operation]).require_allowed()
        except (Forbidden, Unauthorized):
            return False
        return True


def address_of(repo: Repo) -> str:
    """The address of a repository's page, without the node's."""
    return quote(page_path(repo.kind, repo.full_name))


async def find(caller: Caller, owner: str, name: str) -> Place:
    """The repository at this address. Raises NotFound where it is missing or hidden."""
    view = await view_at(_READS, caller, owner, name)
    repo = await repos.get(view)
    return Place(view, repo, address_of(repo), caller.node.config.public_url)
