"""The graph around two seals, against a plain walk of all of it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert

from relay.db import history
from relay.db.engine.database import Tx
from relay.db.schema import tables
from relay.domain.history import ancestry
from relay.domain.history.ancestry import find_relation
from tests.relay.domain.live.live_world import START, World, world

Parents = Mapping[str, Sequence[str]]


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


def name(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()


async def write(w: World, parents: Parents) -> None:
    """Seals whose parents come before them."""
    key = (await w.device()).key.id
    generations: dict[str, int] = {}
    for one, above in parents.items():
        generations[one] = 1 + max((generations[parent] for parent in above), default=0)
    same = {
        "repo_id": w.repo_id,
        "branch": "main",
        "root": bytes(32),
        "payload": b"",
        "signature": b"",
        "account_id": w.owner,
        "device_key_id": key,
        "message": "m",
        "created_at": START,
    }
    links = [
        {"seal_id": one, "position": at, "parent_id": parent}
        for one, above in parents.items()
        for at, parent in enumerate(above)
    ]
    async with w.node.db.write() as tx:
        await tx.many(
            insert(tables["seal"]), [{"id": one, "generation": n, **same} for one, n in generations.items()]
        )
        await tx.many(insert(tables["seal_parent"]), links)


def ancestors(parents: Parents, start: str) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        fresh = set(parents[waiting.pop()]) - found
        found |= fresh
        waiting += fresh
    return found


@pytest.mark.parametrize("seed", range(5))
async def test_any_graph(w: World, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(ancestry, "WINDOW", 3)
    names = [name(seed, n) for n in range(120)]
    parents = {
        one: chance.sample(names[max(0, at - 15) : at], min(at, chance.choice([0, 1, 1, 1, 2, 3])))
        for at, one in enumerate(names)
    }
    await write(w, parents)
    async with w.node.db.read() as tx:
        for _ in range(20):
            base, head = chance.sample(names[60:], 2)
            found = await find_relation(tx, base, head)
            a, b = ancestors(parents, base), ancestors(parents, head)
            assert (found.ahead, found.behind) == (len(b - a), len(a - b))
            assert (found.merge_base in a & b) if a & b else found.merge_base is None
            rest = (a & b) - {found.merge_base}
            assert not any(found.merge_base in ancestors(parents, one) for one in rest)


class Counting:
    """A transaction that counts the rows of the graph that it reads."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.rows = 0

    async def all(self, statement: Any, **params: Any) -> Any:
        found = await self._tx.all(statement, **params)
        self.rows += len(found) if statement is history.GRAPH else 0
        return found

    async def value(self, statement: Any, **params: Any) -> Any:
        return await self._tx.value(statement, **params)


async def test_lines_side_by_side_are_read_once(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ancestry, "WINDOW", 16)
    wide, deep = 12, 80
    parents: dict[str, list[str]] = {name("root"): []}
    above = [name("root")] * wide
    for generation in range(deep):
        line = [name(generation, n) for n in range(wide)]
        parents |= {one: sorted({above[n], above[n - 1]}) for n, one in enumerate(line)}
        above = line
    parents[name("head")] = above
    await write(w, parents)
    async with w.node.db.read() as tx:
        counting = Counting(tx)
        found = await find_relation(counting, name("root"), name("head"))  # type: ignore[arg-type]
    assert (found.ahead, found.behind, found.merge_base) == (wide * deep + 1, 0, name("root"))
    assert counting.rows < 3 * sum(map(len, parents.values()))
