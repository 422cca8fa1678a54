"""Who only looks at what is loaded keeps no server alive."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from llm.front import WATCHED, Front
from llm.leases import IDLE_SECONDS


async def ask(front: Front, path: str) -> None:
    """Have the front answer a request for this path."""

    async def answer(request: Any) -> None:
        assert request.path == path

    request: Any = SimpleNamespace(ctx=SimpleNamespace(), headers={"host": "127.0.0.1"}, path=path)
    await front._guard(answer)(request)


async def test_looking_at_what_is_loaded_is_no_use_of_the_server(tmp_path: Path) -> None:
    front = Front(tmp_path, 1)
    soon_idle = time.monotonic() + IDLE_SECONDS + 0.001
    assert front.idle.over(soon_idle)
    await ask(front, WATCHED)
    assert front.idle.over(soon_idle)
    await ask(front, "/api/tags")
    assert not front.idle.over(soon_idle - 0.001)
