"""The repository that a page is about, and the addresses of its pages."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cache
from typing import get_args
from urllib.parse import quote, urlencode

from localstore.core.model.base import Actor
from localstore.core.model.repo import Kind, Repo
from localstore.core.model.rights import OPERATIONS
from localstore.core.names import page_path
from relay.base.edition import EDITION
from relay.base.flags import TIME_MACHINE
from relay.caller import Caller, View
from relay.domain.repository import repo as repos
from relay.domain.repository.act_form import Attempt
from relay.gate.gate import view_at
from relay.http.routing import REPOSITORIES, TABLE
from relay.pages import visit
from relay.render.jobs import Links

ANY = "apps"  # the address of an app, and accepted for every kind
PREFIXES = (ANY, *get_args(Kind))
_READS = OPERATIONS["history.tree"]


@dataclass(frozen=True, slots=True)
class ShownRepository:
    """A repository and how its pages show it. `view`: for reading files. `page`: address of its page, without
    the address of the node. `node`: address of the node. `images`: whether rendered texts may show images
    from the repository. `attempt`: the form on this page that was just refused, if there is one."""

    view: View
    repo: Repo
    page: str
    node: str
    images: bool = True
    attempt: Attempt | None = None

    @property
    def dev(self) -> str:
        return f"{self.page}/dev"

    def tab(self, tab: str, **query: str | int | None) -> str:
        """The address of a tab with these query parameters; parameters that are None or "" are left out."""
        given = {name: str(value) for name, value in query.items() if value not in (None, "")}
        return f"{self.dev}?{urlencode({'tab': tab, **given}, quote_via=quote, safe='/')}"

    def code(self, at: str, path: str = "", **query: str | int | None) -> str:
        """The address of the page for a file or folder at a branch, tag or seal."""
        return self.tab("code", at=at, path=path, **query)

    def raw(self, seal: str, path: str = "") -> str:
        """The address of the bytes of a file."""
        return f"/api/v1/repos/{self.repo.id}/raw/{seal}/{quote(path)}"

    def links(self, seal: str, folder: str) -> Links:
        """The addresses to which relative links lead in a text of this folder."""
        return Links(
            folder=folder,
            page=f"{self.tab('code', at=seal)}&path=",
            raw=self.raw(seal) if self.images else "",
            address=self.dev,
        )

    @property
    def travels(self) -> bool:
        """Whether the node offers the time-travel page, which shows a path as it was at an earlier seal."""
        return self.view.node.config.flags.on(TIME_MACHINE)

    @property
    def acts(self) -> bool:
        """Whether the reader can send forms. Only a person with a session in a browser can."""
        return visit.in_browser(self.view)

    def key(self) -> str:
        """A new key for one form. Because of it, a form that is sent twice takes effect once."""
        return secrets.token_urlsafe(12)

    def refill(self, act: str, field: str, otherwise: str = "", **of: str) -> str:
        """What the reader typed into a field of the form that was just refused. Returns `otherwise` if no
        form of this act was refused. `of`: field values by which this form is told from others of the same
        act."""
        form = self.attempt.form if self.attempt else None
        if form is None or form.name_of_act != act or any(getattr(form, key) != of[key] for key in of):
            return otherwise
        return str(getattr(form, field))

    def may_act(self, operation: str, author: Actor | None = None) -> bool:
        """Whether to show a control for this operation. The reader must have the rights for it. Where authors
        have more rights, being the `author` is enough."""
        if not self.acts or not self.may(operation):
            return False
        row, me = OPERATIONS[operation], self.view.me
        by_role = row.least is None or self.view.has(row.least) or (not row.author and row.stranger)
        return by_role or (author is not None and author.id == me.account_id)

    def offers(self, operation: str) -> bool:
        """Whether the node offers this operation of the API: its flag is on, and the edition has it."""
        flag = _flag_of(operation)
        on = flag is None or self.view.node.config.flags.on(flag)
        return on and OPERATIONS[operation].in_edition(EDITION)

    def may(self, operation: str) -> bool:
        """Whether the reader may use this operation of the API, and the node offers it."""
        if not self.offers(operation):
            return False
        return self.view.may(OPERATIONS[operation])


@cache
def _flag_of(operation: str) -> str | None:
    """The feature flag of an operation's route. An operation without a route of its own has the flag of
    repositories."""
    return next((route.flag for route in TABLE if route.operation.name == operation), REPOSITORIES)


def address_of(repo: Repo) -> str:
    """The address of a repository's page, without the address of the node."""
    return quote(page_path(repo.kind, repo.full_name))


async def find(caller: Caller, owner: str, name: str) -> ShownRepository:
    """Find the repository at this address. Raises NotFound if it is missing or hidden."""
    view = await view_at(_READS, caller, owner, name)
    repo = await repos.get(view)
    return ShownRepository(view, repo, address_of(repo), caller.node.config.public_url)
