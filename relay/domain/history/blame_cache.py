"""The cache of blame: the owners of the lines of a file at some seals, where the owner of a line is the seal
that it comes from.

Owners that a whole view computed are cached in the database. Owners of filtered views are cached in memory,
under the number of the current path policy, because all filtered views of a repository see the same paths.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from localstore.core.diff import blame as kernel
from localstore.core.model.limits import MIB
from relay.caller import View
from relay.domain.history.rows import blame as rows
from relay.memory.owners import FilteredKey
from relay.memory.texts import Owners

BYTES = 8 * MIB  # of the encoded owners of one version; longer ones are computed each time
BYTES_OF_REPO, VERSIONS_OF_REPO = 64 * MIB, 5000  # bytes, and versions of files


async def load_newest(
    view: View, path: str, seal_ids: Sequence[str], *, first_parent: bool
) -> tuple[int, Owners] | None:
    """Load the cached line owners of the first of these seals that has some. Returns (index of the seal in
    `seal_ids`, owners), or None. `first_parent`: as in `relay.domain.history.blame.blame`."""
    if view.policy is not None:
        return _load_filtered(view, path, seal_ids, first_parent=first_parent)
    where = {"repo_id": view.repo.id, "path": path, "first_parent": first_parent}
    async with view.read() as tx:
        cached = {row[0] for row in await tx.all(rows.CACHED_AMONG, ids=list(seal_ids), **where)}
        start = next((at for at, seal_id in enumerate(seal_ids) if seal_id in cached), None)
        if start is None:
            return None
        return start, _decode(await tx.value(rows.CACHED, seal_id=seal_ids[start], **where))


def _load_filtered(
    view: View, path: str, seal_ids: Sequence[str], *, first_parent: bool
) -> tuple[int, Owners] | None:
    for at, seal_id in enumerate(seal_ids):
        raw = view.node.filtered_owners.get(_filtered_key(view, path, seal_id, first_parent))
        if raw is not None:
            return at, _decode(raw)
    return None


async def store(view: View, path: str, seal_id: str, owners: Owners, *, first_parent: bool) -> None:
    """Cache the line owners that a file has at a seal, unless they are very long. Readers fill the database
    this way, and no quota counts it. So a repository whose cache would become too large loses it and begins
    again."""
    raw = _encode(owners)
    if view.policy is not None:
        view.node.filtered_owners.put(_filtered_key(view, path, seal_id, first_parent), raw)
        return
    if len(raw) > BYTES:
        return
    repo_id = view.repo.id
    async with view.read() as tx:  # counting is no work for the only writer of SQLite
        versions, size = (await tx.all(rows.CACHE_SIZE, repo_id=repo_id))[0]
    is_full = versions >= VERSIONS_OF_REPO or size + len(raw) > BYTES_OF_REPO
    async with view.node.db.write() as tx:
        if is_full:
            await tx.run(rows.DROP, repo_id=repo_id)
        await tx.run(
            rows.KEEP, repo_id=repo_id, seal_id=seal_id, path=path, first_parent=first_parent, owners=raw
        )


def _filtered_key(view: View, path: str, seal_id: str, first_parent: bool) -> FilteredKey:
    return view.repo.id, view.policy.number if view.policy else 0, seal_id, path, first_parent


def _encode(owners: Owners) -> bytes:
    runs = [(end - start, owner) for start, end, owner in kernel.ranges(owners)]
    return msgspec.msgpack.encode(runs)


def _decode(raw: bytes) -> Owners:
    runs = msgspec.msgpack.decode(raw, type=list[tuple[int, str]])
    return [owner for count, owner in runs for _ in range(count)]
