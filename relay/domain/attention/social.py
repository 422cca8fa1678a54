"""Rules of stars and watches. An account has at most one star and one watch on a repository. The repository's
counts are updated with each change.
"""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from localstore.core.model.repo import Repo, Viewer
from relay.base.clock import now_ms
from relay.caller import Caller, View
from relay.db.collaboration import fork as forks
from relay.db.engine.database import Row, Tx
from relay.domain.attention.rows import social as rows

Kind = Literal["star", "watch"]
NONE = {"stars": 0, "watchers": 0}


async def put(view: View, kind: Kind) -> None:
    """Set the caller's star or watch; repeats change nothing."""
    me = view.me.account_id
    async with view.write() as tx:
        if await tx.one(rows.HAS[kind], of_repo=view.repo.id, me=me) is not None:
            return
        await tx.run(rows.SET[kind], repo_id=view.repo.id, account_id=me, created_at=now_ms())
        await count(tx, view.repo.id, kind, 1)
        await _announce(tx, view, kind, "set")


async def watch_own(tx: Tx, repo_id: str, account_id: str) -> None:
    """Make the new owner of a repository watch it. Call it in a transaction that locks the repository."""
    if await tx.one(rows.HAS["watch"], of_repo=repo_id, me=account_id) is None:
        await tx.run(rows.SET["watch"], repo_id=repo_id, account_id=account_id, created_at=now_ms())
        await count(tx, repo_id, "watch", 1)


async def remove(view: View, kind: Kind) -> None:
    async with view.write() as tx:
        if await tx.run(rows.CLEAR[kind], of_repo=view.repo.id, me=view.me.account_id):
            await count(tx, view.repo.id, kind, -1)
            await _announce(tx, view, kind, "clear")


async def drop_hidden(tx: Tx, repo_id: str) -> None:
    """Delete stars and watches of accounts that no longer see the repository."""
    kinds: tuple[Kind, ...] = ("star", "watch")
    for kind in kinds:
        gone = await tx.run(rows.DROP_HIDDEN[kind], of_repo=repo_id)
        await count(tx, repo_id, kind, -gone)


async def count(tx: Tx, repo_id: str, kind: Kind, more: int) -> None:
    """Add `more` to the repository's count of stars or watches. If `more` is above 0, call it in a
    transaction that locks the repository."""
    if more and not await tx.run(rows.COUNT[kind], of_repo=repo_id, more=more):
        first = {**NONE, "stars" if kind == "star" else "watchers": max(more, 0)}
        await tx.run(rows.FIRST, repo_id=repo_id, **first)


async def of_one(caller: Caller, repo: Repo) -> Repo:
    """The repository, with its counts and with the caller's own star and watch filled in."""
    me = caller.principal.account_id if caller.principal else ""
    row = await caller.node.db.lookup(rows.ONE, of_repo=repo.id, me=me)
    forked = await caller.node.db.lookup(forks.COUNT, of_repo=repo.id)
    repo = replace(repo, forks=forked[0] if forked else 0)
    return repo if row is None else _add_counts(repo, row)


async def of_several(tx: Tx, caller: Caller, repos: list[Repo]) -> list[Repo]:
    """The repositories, with their counts and with the caller's own stars and watches filled in. Runs two
    statements in all."""
    if not repos:
        return repos
    me = caller.principal.account_id if caller.principal else ""
    ids = [repo.id for repo in repos]
    counts = {row[0]: row for row in await tx.all(rows.SEVERAL, repo_ids=ids, me=me)}
    forked: dict[str, int] = dict(map(tuple, await tx.all(forks.COUNTS, ids=ids)))
    repos = [replace(repo, forks=forked.get(repo.id, 0)) for repo in repos]
    return [_add_counts(repo, counts[repo.id]) if repo.id in counts else repo for repo in repos]


def _add_counts(repo: Repo, row: Row) -> Repo:
    _, stars, watchers, starred, watching, listing_id = row
    viewer = repo.viewer and Viewer(role=repo.viewer.role, starred=bool(starred), watching=bool(watching))
    return replace(repo, stars=stars, watchers=watchers, viewer=viewer, listing_id=listing_id)


async def _announce(tx: Tx, view: View, kind: Kind, verb: str) -> None:
    """Write the event of a star, which every reader may see, or of a watch, which only the owner may see."""
    audience: Literal["reader", "owner"] = "reader" if kind == "star" else "owner"
    await view.node.hub.announce(tx, view.repo.id, f"{kind}.{verb}", audience=audience)
