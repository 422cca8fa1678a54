"""Two relays on one PostgreSQL, killed now and then; `scripts.relays.two_relays` runs for longer."""

from __future__ import annotations

import asyncio
from pathlib import Path

from scripts.relays.two_relays import check
from tests import buckets
from tests.databases import postgres_url
from tests.depth import rounds


async def test_nothing_acknowledged_is_lost_between_two_relays(tmp_path: Path) -> None:
    url = await asyncio.to_thread(postgres_url)
    violations, ledger, kills = await check(
        tmp_path, url, seconds=rounds(3, 5), people=3, kill_every=1, variables=buckets.variables(tmp_path)
    )
    assert violations == []
    assert ledger.count["500"] == 0
    assert ledger.updates and ledger.seals and kills
