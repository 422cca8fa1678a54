"""Dependencies of a seal, read from the manifests of its tree as the caller sees it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from localstore.core import dependencies
from localstore.core.dependencies import Declared
from localstore.core.errors import Invalid
from localstore.core.limits import (
    DEPENDENCIES,
    MANIFEST_FILE,
    MANIFEST_FOLDERS,
    MANIFEST_LEVELS,
    MANIFESTS,
    MIB,
    in_words,
)
from localstore.core.model.catalog.dependency import Dependencies, Dependency, Manifest
from localstore.core.model.repo import ParentRepo
from localstore.core.tree import Child, TreeEntry
from localstore.core.tree.directory import decode, join
from relay.caller import View
from relay.db.engine.database import Tx
from relay.domain.catalog import advisory
from relay.domain.catalog.rows import dependency as rows
from relay.domain.history import sealed

AT_ONCE = 16  # folders that are read together
FOLDER = 1 * MIB  # bytes of a folder that is looked through


@dataclass(slots=True)
class _Found:
    files: list[tuple[str, TreeEntry]] = field(default_factory=list)
    complete: bool = True


async def of(view: View, ref: str | None) -> Dependencies:
    """At a ref, or at the default branch. NotFound for a ref that is not there."""
    sealed.require_plaintext(view)
    async with view.read() as tx:
        head = await sealed.head(view, tx, ref or view.repo.default_branch)
    if head is None:
        return Dependencies(seal_id=None, manifests=[], items=[], complete=True)
    found = await _manifests(view, (await sealed.seal(view, head)).root)
    listed, items, complete = await _read(view, found)
    async with view.read() as tx:
        items = await _with_repositories(tx, view, items)
        items = await advisory.matched(tx, items)
    return Dependencies(seal_id=head, manifests=listed, items=items, complete=complete)


async def _manifests(view: View, root: bytes) -> _Found:
    """Manifests in folders of the first levels, those of one level by path. Hidden ones are not there."""
    found, level, looked = _Found(), [("", root)], 0
    for depth in range(MANIFEST_LEVELS):
        below: list[tuple[str, bytes]] = []
        level, found.complete = (
            level[: MANIFEST_FOLDERS - looked],
            found.complete and len(level) <= MANIFEST_FOLDERS - looked,
        )
        looked += len(level)
        for at in range(0, len(level), AT_ONCE):
            await _look(view, level[at : at + AT_ONCE], found, below)
        level = below
        if depth == MANIFEST_LEVELS - 1 and below:
            found.complete = False
    return found


async def _look(
    view: View, folders: Sequence[tuple[str, bytes]], found: _Found, below: list[tuple[str, bytes]]
) -> None:
    store = view.node.objects
    located = await store.locate([digest for _, digest in folders])
    small = {digest: one for digest, one in located.items() if one.size <= FOLDER}
    raw = await store.read_located(list(small.values()))
    for path, digest in folders:
        if digest not in small:
            found.complete = False
            continue
        children = decode(raw[digest]).children
        await asyncio.sleep(0)
        for child in children:
            _take(view, join(path, child.name), child, found, below)


def _take(view: View, path: str, child: Child, found: _Found, below: list[tuple[str, bytes]]) -> None:
    if child.kind == "dir":
        if view.policy is None or view.policy.may_see_below(path):
            below.append((path, child.digest))
    elif dependencies.is_manifest(path) and view.sees(path):
        if len(found.files) < MANIFESTS:
            found.files.append((path, child.entry))
        else:
            found.complete = False


async def _read(view: View, found: _Found) -> tuple[list[Manifest], list[Dependency], bool]:
    listed: list[Manifest] = []
    items: list[Dependency] = []
    complete = found.complete
    for path, entry in found.files:
        try:
            declared = await _declared(view, path, entry)
        except Invalid as error:
            listed.append(Manifest(path=path, problem=error.detail))
            continue
        listed.append(Manifest(path=path))
        items += [_to_wire(path, one) for one in declared[: DEPENDENCIES - len(items)]]
        complete = complete and len(items) < DEPENDENCIES
    return listed, items, complete


async def _declared(view: View, path: str, entry: TreeEntry) -> list[Declared]:
    if entry.size > MANIFEST_FILE or entry.kind == "chunked":
        raise Invalid(f"the manifest is larger than {in_words(MANIFEST_FILE)}")
    data = await sealed.content(view, entry)
    return await asyncio.to_thread(dependencies.read, path, data)


def _to_wire(path: str, one: Declared) -> Dependency:
    return Dependency(
        ecosystem=one.ecosystem,
        name=one.name,
        requirement=one.requirement,
        version=one.version,
        development=one.development,
        path=path,
    )


async def _with_repositories(tx: Tx, view: View, items: list[Dependency]) -> list[Dependency]:
    """With those repositories of this node that the caller sees."""
    names = sorted({one.name.lower() for one in items if one.ecosystem == "svc"})
    if not names:
        return items
    found = await tx.all(
        rows.NAMED,
        account=view.principal.account_id if view.principal else "",
        owners=sorted({name.partition("/")[0] for name in names}),
        joined=f"|{'|'.join(names)}|",
    )
    known = {full_name: ParentRepo(id=id, full_name=full_name) for id, full_name in found}
    return [
        replace(one, repo=known[one.name.lower()])
        if one.ecosystem == "svc" and one.name.lower() in known
        else one
        for one in items
    ]
