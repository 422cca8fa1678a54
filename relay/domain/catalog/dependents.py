"""Stores the dependencies of each repository's default branch, so that a repository can list its dependents.
A follower of the event log adds a job when a head moves. The job reads `depends` in .svc.yaml. Pushes do not
wait for the job.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from localstore.core import manifest, tree
from localstore.core.errors import Invalid
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.dependency import Dependent
from localstore.core.model.limits import MANIFEST_BYTES
from localstore.core.names import MANIFEST
from relay.base.clock import now_ms
from relay.caller import View, repo_name
from relay.db import paging
from relay.db import seal as seals
from relay.db.engine.database import Tx
from relay.domain.catalog.rows import dependency as rows
from relay.events.jobs import SECOND, Pace
from relay.events.log import Logged
from relay.memory import trees
from relay.node import Node

NAME = JOB = "dependents"
KINDS = ("ref.create", "ref.update", "repo.create", "repo.update", "seal.create")
PACE = Pace(slots=1, deadline=60 * SECOND)


def register(node: Node) -> None:
    """Register the job and the follower. Call it before the node's jobs and followers start."""

    async def job(data: dict[str, Any]) -> None:
        await settle(node, data["repo_id"])

    node.jobs.register(JOB, job, PACE)
    node.followers.register(NAME, _make_follower(node), KINDS)


def _make_follower(node: Node) -> Callable[[Tx, Sequence[Logged]], Awaitable[None]]:
    async def follow(tx: Tx, events: Sequence[Logged]) -> None:
        for repo_id in sorted({event.repo_id for event in events if event.repo_id is not None}):
            await node.jobs.add(tx, JOB, {"repo_id": repo_id})

    return follow


async def settle(node: Node, repo_id: str) -> None:
    """Store the dependencies of the seal at the head of the default branch. If the head moves meanwhile,
    stores nothing, since the event of that move adds another job."""
    async with node.db.read(snapshot=True) as tx:
        head = await tx.value(rows.HEAD, of_repo=repo_id)
        names = await _read_depends(node, tx, repo_id, head) if head is not None else ()
    async with node.db.write(repo_name(repo_id)) as tx:
        if await tx.value(rows.HEAD, of_repo=repo_id) != head:
            return
        await tx.run(rows.CLEAR, of_repo=repo_id)
        await tx.many(rows.INSERT, [{"name": name, "repo_id": repo_id} for name in names])


async def _read_depends(node: Node, tx: Tx, repo_id: str, head: str) -> Sequence[str]:
    root = await seals.root_of(tx, repo_id, head)
    entries = await trees.drive(tree.lookup(root, [MANIFEST]), trees.loader_of(node.objects, tx))
    entry = entries.get(MANIFEST)
    if entry is None or entry.size > MANIFEST_BYTES:
        return ()
    data = await node.objects.read(entry.digest, repo_id, tx)
    try:
        return sorted({name.lower() for name in manifest.parse(data).depends})
    except Invalid:
        return ()


async def page(view: View, query: PageQuery) -> Page[Dependent]:
    """Repositories whose default branch depends on this one

    Ordered by id. A repository is listed only if the caller sees both the repository and the file that names
    the dependency.
    """
    me = view.principal.account_id if view.principal else ""
    async with view.read() as tx:
        old = await tx.all(rows.OLD_NAMES, of_repo=view.repo.id, now=now_ms())
        names = [view.repo.full_name, *(name for (name,) in old)]
        into = rows.DEPENDENTS.into(Dependent)
        return await paging.read_page(tx, rows.DEPENDENTS, query, into, account=me, names=names)
