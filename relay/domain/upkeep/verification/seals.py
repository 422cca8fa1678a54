"""Checks seals. Signature, id, payload and row must agree, and parents must exist. No two seals of a branch
may have the same parent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from localstore.core import seal as seals
from localstore.core.errors import SvcError
from relay.db.engine.database import Database, Tx
from relay.domain.upkeep.rows import verification as rows
from relay.domain.upkeep.rows.verification import SignedSealRow
from relay.objects.store import ObjectStore

PAGE = 500


async def check(db: Database, store: ObjectStore) -> AsyncIterator[str]:
    after = ""
    while True:
        async with db.read(snapshot=True) as tx:
            page = [rows.to_seal(values) for values in await tx.all(rows.SEALS, after=after, limit=PAGE)]
            if not page:
                break
            parents = await _find_parents(tx, [row.id for row in page])
            generations = await _find_generations(
                tx, {seal_id for ids in parents.values() for seal_id in ids}
            )
            lineages = await _find_lineages(tx, {row.repo_id for row in page})
        after = page[-1].id
        for line in await asyncio.to_thread(_wrong_seals, page, parents, generations, lineages):
            yield line
    async with db.read(snapshot=True) as tx:
        for line in await _lost_heads(tx) + await _find_shared_places(tx):
            yield line


async def _find_parents(tx: Tx, ids: list[str]) -> dict[str, list[str]]:
    parents: dict[str, list[str]] = {seal_id: [] for seal_id in ids}
    for child, parent in await tx.all(rows.PARENTS, ids=ids):
        parents[child].append(parent)
    return parents


async def _find_generations(tx: Tx, ids: set[str]) -> dict[str, int]:
    generation_rows = await tx.all(rows.GENERATIONS, ids=sorted(ids)) if ids else []
    return {str(seal_id): generation for seal_id, generation in generation_rows}


async def _find_lineages(tx: Tx, ids: set[str]) -> dict[str, set[str]]:
    """For each of these repositories, find the repositories from which it may have copied seals. Each
    repository is also in its own set."""
    lineages = {repo_id: {repo_id} for repo_id in ids}
    for repo_id, of_id in await tx.all(rows.LINEAGES, ids=sorted(ids)):
        lineages[repo_id].add(of_id)
    return lineages


def _wrong_seals(
    page: Sequence[SignedSealRow],
    parents: dict[str, list[str]],
    generations: dict[str, int],
    lineages: dict[str, set[str]],
) -> list[str]:
    faults: list[str] = []
    for row in page:
        above = parents[row.id]
        try:
            wrong = _wrong_members(row, above, lineages[row.repo_id])
        except SvcError as error:
            wrong = [error.detail]
        wrong += [f"parent {parent[:12]} is missing" for parent in above if parent not in generations]
        numbers = [generations[parent] for parent in above if parent in generations]
        if len(numbers) == len(above) and row.generation != 1 + max(numbers, default=0):
            wrong.append(f"generation {row.generation} does not follow its parents")
        faults += [f"seal {row.id}: {fault}" for fault in wrong]
    return faults


def _wrong_members(row: SignedSealRow, parents: list[str], lineage: set[str]) -> list[str]:
    raw = bytes(row.payload)
    payload = seals.decode(raw)
    seals.verify(raw, bytes(row.signature), bytes(row.public_key))
    provenance, revoked_at = payload.provenance, row.key_revoked_at
    agree = {
        "id": seals.seal_id(raw) == row.id,
        "repository": payload.repo_id in lineage,
        "branch": payload.branch == row.branch,
        "tree": payload.content_digest == bytes(row.root).hex(),
        "account": provenance.account_id == row.account_id,
        "device key": provenance.device_key_id == row.device_key_id,
        "message": payload.message == row.message,
        "parents": payload.parents == parents,
        "time, which is after the key was revoked": revoked_at is None or row.created_at <= revoked_at,
    }
    return [
        f"the signed payload names another {name} than its row" for name, same in agree.items() if not same
    ]


async def _lost_heads(tx: Tx) -> list[str]:
    lost = await tx.all(rows.LOST_HEADS)
    return [
        f"{kind} {name} of repository {repo}: its head {head} is not a seal"
        for repo, kind, name, head in lost
    ]


async def _find_shared_places(tx: Tx) -> list[str]:
    """Find seals of one branch that have the same parent. Returns a sentence for each such parent. Branches
    that were moved back, or deleted and created again, are not checked, because there this is no error."""
    wrong: list[str] = []
    for statement in (rows.SHARED_PARENTS, rows.SHARED_STARTS):
        for repo_id, branch, parent, count in await tx.all(statement):
            moves = [msgspec.json.decode(row[0]) for row in await tx.all(rows.REF_EVENTS, repo_id=repo_id)]
            if sum(move.get("name") == branch for move in moves) > 1:
                continue
            after = f"after {parent[:12]}" if parent else "first"
            wrong.append(f"branch {branch} of repository {repo_id}: {count} seals come {after}")
    return wrong
