"""The public coordinates of a repository: its id, names, head and addresses."""

from __future__ import annotations

import typing

from msgspec.structs import replace

from localstore.core.errors import NotFound
from localstore.core.model.repo import Coordinates, Kind, ParentRepo
from localstore.core.names import page_path
from relay.caller import Caller
from relay.db import ref as refs
from relay.db.repo import RepoRow
from relay.domain.catalog.rows import listing as listings
from relay.domain.forking.parent import parent_of
from relay.domain.repository import repo as repos

KINDS: tuple[str, ...] = typing.get_args(Kind)
ANY = "apps"  # the plural is accepted for every kind


async def coordinates(caller: Caller, kind: str, owner: str, name: str) -> tuple[Coordinates, str | None]:
    """Find the coordinates of the repository at this address, also at its address from before a rename.
    Returns (coordinates, kind). `kind` is the repository's kind if the address names another kind, else
    None."""
    if kind not in (*KINDS, ANY):
        raise NotFound
    async with caller.read() as tx:
        visible = await repos.find(tx, caller, owner.lower(), name.lower())
        if visible is None:
            raise NotFound
        row, role = visible
        listing_id = await tx.value(listings.ID, of_repo=row.id)
        ref = await tx.one(refs.ONE, repo_id=row.id, type="branch", name=row.default_branch)
        parent = await parent_of(tx, caller, row)
    head = refs.to_row(ref).head if ref is not None else None
    answer = _to_wire(caller, row, head, listing_id, parent)
    answer = replace(answer, clone_url=repos.clone_url(caller.node, row, role))
    return answer, row.kind if kind not in (row.kind, ANY) else None


def _to_wire(
    caller: Caller, row: RepoRow, head: str | None, listing_id: str | None, parent: ParentRepo | None
) -> Coordinates:
    page = f"{caller.node.config.public_url}{page_path(row.kind, row.full_name)}"
    return Coordinates(
        id=row.id,
        owner=row.owner,
        name=row.name,
        full_name=row.full_name,
        kind=row.kind,  # type: ignore[arg-type]  # the database holds what the model allows
        class_=row.class_,  # type: ignore[arg-type]
        default_branch=row.default_branch,
        head=head,
        description=row.description,
        archived=row.state == "archived",
        page_url=page,
        dev_url=f"{page}/dev",
        listing_id=listing_id,
        parent=parent,
    )
