"""Rules of labels: one name in whatever case, and so many in a repository."""

from __future__ import annotations

from msgspec.structs import asdict

from localstore.core.errors import Conflict
from localstore.core.limits import LABELS
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.label import Label, LabelCreate, LabelExists
from relay.caller import View
from relay.db import label as rows
from relay.db.engine.database import UniqueViolation
from relay.http import paging


async def page(view: View, query: PageQuery) -> Page[Label]:
    """By name, upper and lower case alike."""
    async with view.read() as tx:
        return await paging.page(tx, rows.PAGE, query, rows.PAGE.into(Label), of_repo=view.repo.id)


async def create(view: View, body: LabelCreate) -> Label:
    made = Label(name=body.name, color=body.color[-6:].lower(), description=body.description)
    async with view.write() as tx:
        if await tx.value(rows.COUNT, of_repo=view.repo.id) >= LABELS:
            raise Conflict(f"{view.repo.full_name} has {LABELS} labels, and no repository has more")
        try:
            await tx.run(rows.INSERT, repo_id=view.repo.id, folded=made.name.casefold(), **asdict(made))
        except UniqueViolation:
            raise LabelExists(f"{view.repo.full_name} already has a label {made.name}") from None
        await view.node.hub.announce(tx, view.repo.id, "label.create", name=made.name)
    return made
