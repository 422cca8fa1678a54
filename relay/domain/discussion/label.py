"""Rules of labels. Their names are unique regardless of case, and a repository has a limited number of
labels.
"""

from __future__ import annotations

from msgspec.structs import asdict

from localstore.core.errors import Invalid, NotFound
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.label import (
    Label,
    LabelClone,
    LabelCreate,
    LabelExists,
    LabelPatch,
    LabelsCloned,
)
from localstore.core.model.limits import LABELS
from relay.caller import View
from relay.db import paging
from relay.db import repo as repos
from relay.db.collaboration import issue as issues
from relay.db.engine.database import Row, Tx
from relay.domain.discussion.rows import label as rows


async def page(view: View, query: PageQuery) -> Page[Label]:
    """Labels, sorted by name regardless of case"""
    async with view.read(near=True) as tx:
        return await paging.read_page(tx, rows.PAGE, query, rows.PAGE.into(Label), of_repo=view.repo.id)


async def create(view: View, body: LabelCreate) -> Label:
    """Create a label"""
    async with view.write() as tx:
        return await add(tx, view, body)


async def add(tx: Tx, view: View, body: LabelCreate) -> Label:
    """Create a label in the transaction `tx`, which must lock the repository. Raises LabelExists, or Conflict
    if the repository has too many labels."""
    label = Label(name=body.name, color=_normalise_color(body.color), description=body.description)
    view.require_room(await tx.value(rows.COUNT, of_repo=view.repo.id), LABELS, "labels")
    if (existing := await find(tx, view, label.name)) is not None:
        raise LabelExists(f"{view.repo.full_name} already has a label {existing.name}")
    await tx.run(rows.INSERT, repo_id=view.repo.id, folded=label.name.casefold(), **asdict(label))
    await view.node.hub.announce(tx, view.repo.id, "label.create", name=label.name)
    return label


async def update(view: View, name: str, patch: LabelPatch) -> Label:
    """Change a label everywhere

    A new name applies to everything that has the label.
    """
    async with view.write() as tx:
        old = await find(tx, view, name)
        if old is None:
            raise NotFound
        label = Label(
            name=patch.name or old.name,
            color=old.color if patch.color is None else _normalise_color(patch.color),
            description=old.description if patch.description is None else patch.description,
        )
        folded, old_folded = label.name.casefold(), old.name.casefold()
        if folded != old_folded:
            if (existing := await find(tx, view, label.name)) is not None:
                raise LabelExists(f"{view.repo.full_name} already has a label {existing.name}")
            await tx.run(issues.LABEL_RENAMED, of_repo=view.repo.id, label=old_folded, new_folded=folded)
        await _edit(tx, view, old_folded, label)
        await view.node.hub.announce(tx, view.repo.id, "label.edit", name=label.name)
        return label


async def delete(view: View, name: str) -> None:
    """Delete a label and remove it from everything"""
    async with view.write() as tx:
        label = await find(tx, view, name)
        if label is None:
            raise NotFound
        values = {"of_repo": view.repo.id, "label": label.name.casefold()}
        await tx.run(rows.DELETE, **values)
        await tx.run(issues.LABEL_OFF_ALL, **values)
        await view.node.hub.announce(tx, view.repo.id, "label.delete", name=label.name)


async def clone(view: View, body: LabelClone) -> LabelsCloned:
    """Copy the labels of another repository

    The caller must see that repository. A label that exists already stays as it is. With `force` it gets the
    colour and description of the copied label.
    """
    owner, _, repo_name = body.source.lower().partition("/")
    async with view.write() as tx:
        source = await tx.one(repos.BY_NAME, owner=owner, name=repo_name, account=view.me.account_id)
        if source is None:
            raise Invalid(f"there is no repository {body.source} that you can read", pointer="/source")
        source_id = repos.to_row(source).id
        ours = {row[3]: _row_to_label(row) for row in await tx.all(rows.ALL, of_repo=view.repo.id)}
        theirs = {row[3]: _row_to_label(row) for row in await tx.all(rows.ALL, of_repo=source_id)}
        new_names = [folded for folded in theirs if folded not in ours]
        differing = [folded for folded in theirs if folded in ours and ours[folded] != theirs[folded]]
        view.require_room(len(ours), LABELS, "labels", new=len(new_names))
        new = [{"repo_id": view.repo.id, "folded": name, **asdict(theirs[name])} for name in new_names]
        await view.count_created(tx, "labels", len(new))
        await tx.many(rows.INSERT, new)
        for folded in differing if body.force else []:
            await _edit(tx, view, folded, theirs[folded])
        await view.node.hub.announce(tx, view.repo.id, "label.clone", source=source_id)
    changed = len(differing) if body.force else 0
    return LabelsCloned(created=len(new_names), changed=changed, left=len(theirs) - len(new_names) - changed)


async def find(tx: Tx, view: View, name: str) -> Label | None:
    """The label with this name regardless of case; None if there is none."""
    row = await tx.one(rows.ONE, of_repo=view.repo.id, label=name.casefold())
    return None if row is None else _row_to_label(row)


async def _edit(tx: Tx, view: View, folded: str, now: Label) -> None:
    await tx.run(
        rows.EDIT,
        of_repo=view.repo.id,
        label=folded,
        new_folded=now.name.casefold(),
        new_name=now.name,
        new_color=now.color,
        new_description=now.description,
    )


def _row_to_label(row: Row) -> Label:
    name, color, description, _ = row
    return Label(name=name, color=color, description=description)


def _normalise_color(text: str) -> str:
    return text[-6:].lower()
