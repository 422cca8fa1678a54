"""A branch that goes quiet gets its mark without anybody asking."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from relay.service import checkpoint
from relay.service.live import take
from tests.relay.service.live_world import World, world


@pytest.fixture
async def w(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_updates_of_one_half_minute_queue_one_look(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    queued: list[tuple[str, int]] = []
    add = w.node.jobs.add

    async def noted(tx, kind, data, *, key=None, run_at=None):  # type: ignore[no-untyped-def]
        queued.append((key, run_at))
        await add(tx, kind, data, key=key, run_at=run_at)

    monkeypatch.setattr(w.node.jobs, "add", noted)
    monkeypatch.setattr(checkpoint, "now_ms", lambda: 7 * checkpoint.IDLE + 5)
    device = await w.device()
    for path in ("a", "b"):
        await take(device.view, "main", device.batch(await device.create(path, b"")))
    (one, due), (two, _) = queued
    assert one == two
    assert due == 9 * checkpoint.IDLE
