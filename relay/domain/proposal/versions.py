"""Versions of a proposal: one for each new head, and one for each new base.

A version is written in the transaction that moves the head or the base. Its merge base and change id are
computed after the commit, by a job or by the first request that needs them, because computing them reads the
files of both trees.
"""

from __future__ import annotations

from localstore.core import tree
from localstore.core.diff.change_id import FileChange, change_id, file_id
from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import NotFound, TooLarge
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.limits import DIFF_BYTES, VERSION_TEXT_BYTES
from localstore.core.model.proposal import Version
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from relay.base.actors import to_actor
from relay.base.clock import now_ms, rfc3339
from relay.caller import View, repo_name
from relay.db import paging
from relay.db import seal as seals
from relay.db.collaboration import proposal as rows
from relay.db.engine.database import Row, Tx
from relay.domain.discussion import subject
from relay.domain.history.merge_base import merge_bases
from relay.memory import trees
from relay.node import Node

JOB = "version"
AT_ONCE = 20  # versions that one call settles


async def page(view: View, number: str, query: PageQuery) -> Page[Version]:
    """Versions of a proposal, oldest first"""
    n = subject.number_of(number)
    async with view.read() as tx:
        if await tx.one(rows.ONE, of_repo=view.repo.id, of_number=n) is None:
            raise NotFound
    await settle(view.node, view.repo.id, n)
    async with view.read() as tx:
        return await paging.read_page(
            tx, rows.VERSIONS, query, lambda row: _to_wire(view, row), of_repo=view.repo.id, of_number=n
        )


async def add(tx: Tx, view: View, number: int, n: int, head: str, base: str) -> None:
    """Add version `n` as the newest version of the proposal. The caller counts as its author."""
    await put(tx, view.node, (view.repo.id, number), n, head, base, view.me.account_id)


async def put(tx: Tx, node: Node, of: tuple[str, int], n: int, head: str, base: str, by: str) -> None:
    """Add version `n` as the newest version of a proposal. `of`: (repository id, number) of the proposal.
    `by`: id of the account that made the version."""
    repo_id, number = of
    await tx.run(
        rows.INSERT_VERSION,
        repo_id=repo_id,
        number=number,
        n=n,
        head=head,
        base=base,
        settled=False,
        merge_base=None,
        change_id=None,
        by_id=by,
        created_at=now_ms(),
    )
    await tx.run(rows.SET_VERSION, of_repo=repo_id, of_number=number, new_n=n, new_seal=head)
    await node.jobs.add(tx, JOB, {"repo_id": repo_id, "number": number})


async def settle(node: Node, repo_id: str, number: int) -> None:
    """Compute the missing merge bases and change ids of a proposal's versions. Only then is it known which
    reviews are stale. Call it at any time, outside of a transaction."""
    of = {"of_repo": repo_id, "of_number": number}
    while True:
        async with node.db.read(near=True) as tx:
            unsettled = await tx.all(rows.UNSETTLED, **of, limit=AT_ONCE)
        for n, head, base, kind in unsettled:
            merge_base, change = await _compute(node, repo_id, head, base, kind != "private_e2ee")
            values = {"of_n": n, "new_merge_base": merge_base, "new_change_id": change}
            async with node.db.write(repo_name(repo_id)) as tx:
                await tx.run(rows.SETTLE, **of, **values)
        if len(unsettled) < AT_ONCE:
            return


async def _compute(
    node: Node, repo_id: str, head: str, base: str, plain: bool
) -> tuple[str | None, str | None]:
    """Compute (merge base, change id) of a version. The merge base is None for unrelated histories. The
    change id is None if no file can be read. `plain`: the repository is not end-to-end encrypted."""
    async with node.db.read(snapshot=True) as tx:
        bases = (await merge_bases(tx, base, head)).bases
        merge_base = bases[0] if bases else None
        start = await seals.root_of(tx, repo_id, merge_base) if merge_base else None
        end = await seals.root_of(tx, repo_id, head)
    if not plain or end is None:
        return merge_base, None
    try:
        changes = await trees.drive(tree.diff(start, end), node.objects.read_many)
        return merge_base, await _change_id(node, repo_id, changes)
    except NotFound:
        return merge_base, None


async def _change_id(node: Node, repo_id: str, changes: dict[str, Change]) -> str:
    """Compute the change id of these changes. Only one file is in memory at a time. Texts contribute their
    changed lines, up to the size limit of comparisons. Other files contribute their digest."""
    budget, ids = VERSION_TEXT_BYTES, []
    for path, (old, new) in sorted(changes.items()):
        sides = [side for side in (old, new) if side is not None]
        weight = sum(side.size for side in sides)
        by_lines = weight <= budget and all(side.kind == "text" and side.size <= DIFF_BYTES for side in sides)
        budget -= weight if by_lines else 0
        change = FileChange(
            path if old else None,
            path if new else None,
            await _read_bytes(node, repo_id, old, by_lines),
            await _read_bytes(node, repo_id, new, by_lines),
            whole=not by_lines,
        )
        ids.append(await _file_id(node, repo_id, change, weight))
    return change_id(ids)


async def _file_id(node: Node, repo_id: str, change: FileChange, weight: int) -> bytes:
    """Compute the change id of one file. `weight`: bytes of both sides. Texts are compared in another
    process, one comparison after the other. If that takes too long, the id is computed from the digests of
    the texts."""
    if change.whole:
        return file_id(change)
    try:
        return await node.workers.go_on_waiting(f"versions {repo_id}", weight, file_id, change)
    except TooLarge:
        sides = [None if text is None else blake3_digest(text) for text in (change.old, change.new)]
        return file_id(change._replace(old=sides[0], new=sides[1], whole=True))


async def _read_bytes(node: Node, repo_id: str, side: TreeEntry | None, content: bool) -> bytes | None:
    if side is None:
        return None
    return await node.objects.read(side.digest, repo_id) if content else side.digest


def _to_wire(view: View, row: Row) -> Version:
    """Convert a version to the form that answers have. Its change id is left out if paths are hidden from the
    caller, who could use it to test guesses about them."""
    n, head, base, merge_base, change, _, who, handle, kind, created = row
    return Version(
        n=n,
        head=head,
        base=base,
        merge_base=merge_base,
        change_id=change if view.policy is None else None,
        by=to_actor(who, handle, kind),
        at=rfc3339(created),
    )
