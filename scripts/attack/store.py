"""Kills a writer of the object store with SIGKILL, over and over, and checks that no acknowledged object is
lost.

    python scripts/attack/store.py [ROUNDS]

A child process stores objects and prints each digest once the store has acknowledged the object. The parent
kills the child at a random moment, opens the store anew, and reads every printed object and verifies it. The
packs are stored in the bucket that S3_ENDPOINT, S3_BUCKET … name, if they are set, otherwise in a folder.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import create_engine

from relay import config
from relay.db.engine.sqlite import SqliteDatabase
from relay.db.schema import metadata
from relay.objects.backend import Packs
from relay.objects.place import open_packs
from relay.objects.store import ObjectStore


async def write_for_ever(folder: Path) -> None:
    """Store objects of many sizes in eight tasks, and print the digest of each. Run in the child process."""
    db = SqliteDatabase(folder / "relay.db")
    await db.open()
    store = ObjectStore(folder, db, await _bucket(folder), pack_file_bytes=2_000_000)

    async def task() -> None:
        while True:
            batch = [os.urandom(random.choice((10, 3000, 200_000))) for _ in range(random.randint(1, 4))]
            names = [await store.put(None, data) for data in batch]
            sys.stdout.write("".join(f"{name.hex()}\n" for name in names))
            sys.stdout.flush()

    await asyncio.gather(*(task() for _ in range(8)))


async def _bucket(folder: Path) -> Packs | None:
    """The store of packs in the S3 bucket that the environment names; None if it names no bucket."""
    storage = config.read_storage(os.environ, folder)
    return await open_packs(storage) if storage.s3 else None


async def check(folder: Path, acknowledged: list[bytes]) -> None:
    """Check that every acknowledged object can be read and matches its digest. Raises an error otherwise."""
    db = SqliteDatabase(folder / "relay.db")
    await db.open()
    store = ObjectStore(folder, db, await _bucket(folder), verify=True)
    try:
        for start in range(0, len(acknowledged), 500):
            await store.read_many(acknowledged[start : start + 500])
    finally:
        await store.close()
        await db.close()


def campaign(rounds: int, folder: Path) -> int:
    """Run `rounds` rounds of killing and checking. Returns the number of acknowledged objects."""
    engine = create_engine(f"sqlite:///{folder / 'relay.db'}")
    metadata.create_all(engine)
    engine.dispose()
    acknowledged: list[bytes] = []
    for _ in range(rounds):
        child = subprocess.Popen(
            [sys.executable, __file__, "--write", str(folder)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        assert child.stdout is not None
        first = child.stdout.readline()
        time.sleep(random.uniform(0, 0.4))
        child.kill()
        lines = (first + child.stdout.read()).split(b"\n")[:-1]
        child.stdout.close()
        child.wait()
        acknowledged += [bytes.fromhex(line.decode()) for line in lines]
        asyncio.run(check(folder, acknowledged))
    return len(acknowledged)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        asyncio.run(write_for_ever(Path(sys.argv[2])))
    with tempfile.TemporaryDirectory() as name:
        count = int(sys.argv[1]) if len(sys.argv) > 1 else 25
        print(f"{campaign(count, Path(name))} objects acknowledged in {count} rounds, none lost")
