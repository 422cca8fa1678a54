"""A branch that goes quiet gets its mark without anybody asking."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from relay.db import job
from relay.db.engine import sqlite
from relay.db.live import lane as lanes
from relay.domain.live import checkpoint
from relay.domain.live.live import accept
from tests.databases import POSTGRES
from tests.relay.domain.live.live_world import World, world

sqlite_only = pytest.mark.skipif(POSTGRES, reason="asks SQLite for its plan")


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_updates_of_one_half_minute_queue_one_look(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    queued: list[tuple[str, int]] = []
    branches: list[object] = []
    add = w.node.jobs.add

    async def noted(tx, kind, data, *, key=None, run_at=None):  # type: ignore[no-untyped-def]
        queued.append((key, run_at))
        branches.append(data)
        await add(tx, kind, data, key=key, run_at=run_at)

    monkeypatch.setattr(w.node.jobs, "add", noted)
    monkeypatch.setattr(checkpoint, "now_ms", lambda: 7 * checkpoint.IDLE + 5)
    device = await w.device()
    for path in ("a", "b"):
        await accept(device.view, "main", device.batch(await device.create(path, b"")))
    (one, due), (two, _) = queued
    assert one == two
    assert due == 9 * checkpoint.IDLE
    assert branches == [{"branch_id": device.branch_id}] * 2  # of all others nobody looks at one


@sqlite_only
async def test_the_last_checkpoint_is_found_without_reading_all(w: World) -> None:
    plan = await explained(w, lanes.LAST_CHECKPOINT, branch_id=w.branch_id)
    assert "ix_checkpoint_last" in plan
    assert "TEMP B-TREE" not in plan


@sqlite_only
async def test_jobs_that_are_done_are_not_read_for_those_that_are_not(w: World) -> None:
    assert "ix_job_open" in await explained(w, job.CLAIM, now=1, lease=2, limit=8, of_kind="checkpoint")


async def explained(w: World, statement: Any, **params: Any) -> str:
    """How SQLite would carry it out."""
    ((sql, values),) = sqlite._expand(statement, params)
    with contextlib.closing(sqlite3.connect(w.node.db.path)) as db:  # type: ignore[attr-defined]
        return "\n".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values))
