"""A relay killed between prepare and finalize keeps everything it acknowledged."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from localstore.core.identity.keys import DeviceKey
from localstore.core.lane.lane import Lane
from localstore.core.model.seal import Prepared
from tests.relay.domain.live.live_world import Device, World, opened, world

EDITS = 20


async def child(folder: Path) -> None:
    """Send, say what was acknowledged, prepare, and go on editing until somebody kills us."""
    async with world(folder) as w:
        a = await w.device()
        answer = await a.one(await a.create("x", b""))
        lane = Lane.genesis(a.branch_id, answer.gen, 0, b"")
        tell([w.repo_id, w.branch_id, w.owner, a.key.seed.hex(), a.replica])
        for n in range(1, 10_000):
            assert (await a.one(a.edit("x", lane, answer.gen, b"." * n))).result == "ok"
            tell(n)
            if n == EDITS:
                tell(await a.prepare())


def tell(what: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(what) + b"\n")
    sys.stdout.buffer.flush()


async def test_a_kill_between_prepare_and_finalize_loses_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path):
        pass  # the database outlives the process
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.relay.domain.live.test_live_crash", str(tmp_path)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    lines: list[bytes] = []
    while len(lines) < EDITS + 8:
        lines.append(await asyncio.to_thread(process.stdout.readline))
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    process.wait()
    acknowledged = [line for line in lines if line.endswith(b"\n")]
    repo_id, branch_id, owner, seed, replica = msgspec.json.decode(acknowledged[0])
    prepared = msgspec.json.decode(acknowledged[EDITS + 1], type=Prepared)
    last = msgspec.json.decode(acknowledged[-1])
    async with opened(tmp_path) as node:
        w = World(node, repo_id, branch_id, owner)
        a = Device(w, DeviceKey.generate(bytes.fromhex(seed)), await w.view(owner))
        a.replica, a.n = replica, 10_000
        (row,) = (await a.bootstrap()).rows
        text = (await a.fetch("x", row.gen))[1].text()
        assert len(text) >= last and set(text) == {ord(".")}
        made = await a.finalize(prepared)
        assert await w.files(made.id) == {"x": b"." * EDITS}
        assert await w.files((await a.seal(made.id)).id) == {"x": text}


if __name__ == "__main__":
    asyncio.run(child(Path(sys.argv[1])))
