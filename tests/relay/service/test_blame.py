"""What blame costs the others: nothing that is slow is done on the event loop."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from localstore.core.diff import lines
from relay.service import blame
from tests.relay.service.live_world import world


async def test_no_text_is_cut_into_lines_on_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 5 MiB takes tenths of a second."""
    where: list[int] = []

    def cut(text: bytes) -> list[bytes]:
        where.append(threading.get_ident())
        return lines(text)

    monkeypatch.setattr(blame, "lines", cut)
    async with world(tmp_path) as w:
        device = await w.device()
        gen = base = 0
        for number in range(3):
            (answer,) = await device.send(await device.create("a.txt", b"a\n" * (number + 1), gen, base))
            gen, base = answer.gen, answer.seq
            device.head = (await device.seal(device.head)).id
        found = await blame.blame(device.view, device.head or "", "a.txt")
    assert [one.end for one in found.ranges] == [1, 2, 3]
    assert where
    assert threading.get_ident() not in where
