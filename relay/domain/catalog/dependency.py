"""Dependencies of a seal. They are read from the package manifests in its tree, such as `pyproject.toml`, as
far as the caller sees them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from localstore.core import dependencies
from localstore.core.dependencies import Declared
from localstore.core.errors import Invalid
from localstore.core.model.dependency import Dependencies, Dependency, Manifest
from localstore.core.model.limits import (
    DEPENDENCIES,
    MANIFEST_FILE,
    MANIFEST_FOLDERS,
    MANIFEST_LEVELS,
    MANIFESTS,
    MIB,
    in_words,
)
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
class _Manifests:
    files: list[tuple[str, TreeEntry]] = field(default_factory=list)
    complete: bool = True


async def find_dependencies(view: View, ref: str | None) -> Dependencies:
    """Find the dependencies of the repository at `ref`, or at its default branch if `ref` is None. Raises
    NotFound for an unknown ref."""
    sealed.require_plaintext(view)
    async with view.read() as tx:
        head = await sealed.find_head(view, tx, ref or view.repo.default_branch)
    if head is None:
        return Dependencies(seal_id=None, manifests=[], items=[], complete=True)
    manifests = await _find_manifests(view, (await sealed.seal(view, head)).root)
    listed, items, complete = await _read_manifests(view, manifests)
    async with view.read() as tx:
        items = await _add_repositories(tx, view, items)
        items = await advisory.match_all(tx, items)
    return Dependencies(seal_id=head, manifests=listed, items=items, complete=complete)


async def _find_manifests(view: View, root: bytes) -> _Manifests:
    """Find the package manifests in the upper MANIFEST_LEVELS levels of folders, sorted by level, then path.
    Manifests that are hidden from the caller are left out."""
    manifests, level, looked = _Manifests(), [("", root)], 0
    for depth in range(MANIFEST_LEVELS):
        below: list[tuple[str, bytes]] = []
        level, manifests.complete = (
            level[: MANIFEST_FOLDERS - looked],
            manifests.complete and len(level) <= MANIFEST_FOLDERS - looked,
        )
        looked += len(level)
        for at in range(0, len(level), AT_ONCE):
            await _look_through(view, level[at : at + AT_ONCE], manifests, below)
        level = below
        if depth == MANIFEST_LEVELS - 1 and below:
            manifests.complete = False
    return manifests


async def _look_through(
    view: View, folders: Sequence[tuple[str, bytes]], manifests: _Manifests, below: list[tuple[str, bytes]]
) -> None:
    store = view.node.objects
    located = await store.locate([digest for _, digest in folders])
    small = {digest: place for digest, place in located.items() if place.size <= FOLDER}
    raw = await store.read_located(list(small.values()))
    for path, digest in folders:
        if digest not in small:
            manifests.complete = False
            continue
        children = decode(raw[digest]).children
        await asyncio.sleep(0)
        for child in children:
            _add_child(view, join(path, child.name), child, manifests, below)


def _add_child(
    view: View, path: str, child: Child, manifests: _Manifests, below: list[tuple[str, bytes]]
) -> None:
    if child.kind == "dir":
        if view.policy is None or view.policy.may_see_below(path):
            below.append((path, child.digest))
    elif dependencies.is_manifest(path) and view.sees(path):
        if len(manifests.files) < MANIFESTS:
            manifests.files.append((path, child.entry))
        else:
            manifests.complete = False


async def _read_manifests(view: View, manifests: _Manifests) -> tuple[list[Manifest], list[Dependency], bool]:
    listed: list[Manifest] = []
    items: list[Dependency] = []
    complete = manifests.complete
    for path, entry in manifests.files:
        try:
            declared = await _parse_manifest(view, path, entry)
        except Invalid as error:
            listed.append(Manifest(path=path, problem=error.detail))
            continue
        listed.append(Manifest(path=path))
        items += [_to_wire(path, declaration) for declaration in declared[: DEPENDENCIES - len(items)]]
        complete = complete and len(items) < DEPENDENCIES
    return listed, items, complete


async def _parse_manifest(view: View, path: str, entry: TreeEntry) -> list[Declared]:
    if entry.size > MANIFEST_FILE or entry.kind == "chunked":
        raise Invalid(f"the manifest is larger than {in_words(MANIFEST_FILE)}")
    data = await sealed.read_content(view, entry)
    return await asyncio.to_thread(dependencies.read, path, data)


def _to_wire(path: str, declaration: Declared) -> Dependency:
    return Dependency(
        ecosystem=declaration.ecosystem,
        name=declaration.name,
        requirement=declaration.requirement,
        version=declaration.version,
        development=declaration.development,
        path=path,
    )


async def _add_repositories(tx: Tx, view: View, items: list[Dependency]) -> list[Dependency]:
    """Add to each dependency its repository on this node, if the caller sees one."""
    names = sorted({item.name.lower() for item in items if item.ecosystem == "svc"})
    if not names:
        return items
    pairs = await tx.all(
        rows.NAMED,
        account=view.principal.account_id if view.principal else "",
        owners=sorted({name.partition("/")[0] for name in names}),
        joined=f"|{'|'.join(names)}|",
    )
    repos = {full_name: ParentRepo(id=id, full_name=full_name) for id, full_name in pairs}
    return [
        replace(item, repo=repos[item.name.lower()])
        if item.ecosystem == "svc" and item.name.lower() in repos
        else item
        for item in items
    ]
