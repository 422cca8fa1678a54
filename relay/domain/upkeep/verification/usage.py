"""Recounts the usage of repositories and accounts and compares it with the recorded usage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Mapping
from typing import NamedTuple

from relay.caller import repo_name
from relay.db.engine.database import Database, Tx
from relay.db.storage import usage as rows
from relay.objects.store import ObjectStore

NAMES = ("bytes", "objects", "repositories", "deleted bytes", "deleted objects", "deleted repositories")
NOTHING = (0,) * len(NAMES)
Sums = tuple[int, ...]
"""In the order of NAMES."""


class Repo(NamedTuple):
    """The usage of one repository. `real`: the recounted usage. `counted`: the recorded usage. Both are
    (bytes, objects, whether the repository counts as deleted)."""

    owner_id: str
    real: tuple[int, int, bool]
    counted: tuple[int, int, bool] | None


async def check(db: Database, _: ObjectStore) -> AsyncIterator[str]:
    """Yields a line for each account and repository whose recorded usage is wrong."""
    async with db.read(snapshot=True) as tx:
        repos, counted = await _read(tx, None), await _read_counted(tx)
    for repo_id, repo in repos.items():
        if repo.counted != repo.real and not (repo.counted is None and repo.real[:2] == (0, 0)):
            numbers = repo.counted[:2] if repo.counted else "no"
            yield f"repository {repo_id}: {numbers} bytes and objects are counted, {repo.real[:2]} are there"
    for account_id, sums in _sum_by_account(repos).items():
        there = dict(zip(NAMES, zip(counted.get(account_id, NOTHING), sums, strict=True), strict=True))
        for name, (recorded, real) in there.items():
            if recorded != real:
                yield f"account {account_id}: {recorded} {name} are counted, {real} are there"


async def repair(db: Database) -> int:
    """Correct the recorded usage. Returns how many accounts were wrong. Locks the repositories of these
    accounts for writing."""
    async with db.read(snapshot=True) as tx:
        repos, counted = await _read(tx, None), await _read_counted(tx)
    owned: dict[str, list[str]] = defaultdict(list)
    wrong = {repo.owner_id for repo in repos.values() if repo.counted != repo.real}
    wrong |= {who for who, sums in _sum_by_account(repos).items() if counted.get(who, NOTHING) != sums}
    for repo_id, repo in repos.items():
        owned[repo.owner_id].append(repo_id)
    for account_id in sorted(wrong):
        async with db.write(*map(repo_name, owned[account_id])) as tx:
            await _repair(tx, account_id, owned[account_id])
    return len(wrong)


async def _repair(tx: Tx, account_id: str, repo_ids: list[str]) -> None:
    now = await _read(tx, repo_ids)
    await tx.many(rows.ENSURE_ACCOUNT, [rows.unused_row(account_id)])
    await tx.many(rows.ENSURE_REPO, [rows.empty_row(repo_id) for repo_id in now])
    for repo_id, repo in now.items():
        size, objects, deleted = repo.real
        await tx.run(rows.SET_REPO, of_repo=repo_id, new_bytes=size, new_objects=objects, new_deleted=deleted)
    sums = _sum_by_account(now).get(account_id, NOTHING)
    members = (name.replace(" ", "_") for name in NAMES)
    named = {f"new_{member}": value for member, value in zip(members, sums, strict=True)}
    await tx.run(rows.SET_ACCOUNT, of_account=account_id, **named)


async def _read(tx: Tx, only: Collection[str] | None) -> dict[str, Repo]:
    """Read the usage of all repositories, or of those in `only`. Returns it by repository id."""
    repos: dict[str, Repo] = {}
    every = tx.all(rows.REAL) if only is None else tx.all(rows.REAL_OF, ids=sorted(only))
    for repo_id, owner_id, deleted, size, objects, *recorded in await every:
        counted = None if recorded[0] is None else (int(recorded[0]), int(recorded[1]), bool(recorded[2]))
        repos[repo_id] = Repo(owner_id, (int(size), int(objects), bool(deleted)), counted)
    return repos


async def _read_counted(tx: Tx) -> dict[str, Sums]:
    return {row[0]: tuple(map(int, row[1:])) for row in await tx.all(rows.COUNTED)}


def _sum_by_account(repos: Mapping[str, Repo]) -> dict[str, Sums]:
    """Add up the usage of each owner's repositories. Returns the sums by account id; each is a tuple with one
    number for each of NAMES."""
    sums_of: dict[str, list[int]] = defaultdict(lambda: [0] * len(NAMES))
    for repo in repos.values():
        size, objects, deleted = repo.real
        start = NAMES.index("deleted bytes") if deleted else 0
        for at, more in enumerate((size, objects, 1), start):
            sums_of[repo.owner_id][at] += more
    return {account_id: tuple(sums) for account_id, sums in sums_of.items()}
