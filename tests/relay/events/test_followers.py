"""Each event is followed once, whoever dies; and what the relay itself follows."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, update

from relay.db.engine import connect
from relay.db.schema import tables
from relay.domain.access import access_ends
from relay.events import followers, log
from relay.events.followers import Followers
from relay.events.hub import Hub
from relay.events.jobs import Jobs
from tests import databases
from tests.depth import rounds
from tests.patience import PATIENCE
from tests.relay.conftest import Relay
from tests.relay.events.worker import CREATE, KINDS, LEDGER, note
from tests.relay.histories import own
from tests.relay.node_fixture import make_account, make_repo

EVENTS, KILLS = rounds(120, 300), rounds(4, 12)
ROOT = Path(__file__).parents[3]


@contextlib.asynccontextmanager
async def ledger(folder):
    """A database with a table that takes everything."""
    url = await asyncio.to_thread(databases.new_url, folder)
    await asyncio.to_thread(databases.rows, url, CREATE)
    db = connect.make_database(url)
    await db.open()
    try:
        yield url, db
    finally:
        await db.close()


async def begin(url, what):
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.relay.events.worker", url, what, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    assert await worker.stdout.readline() == b"ready\n"
    return worker


async def written(db):
    async with db.read() as tx:
        return Counter(row[0] for row in await tx.all(select(LEDGER.c.what)))


async def until(db, count):
    async with asyncio.timeout(PATIENCE):
        while (await written(db)).total() < count:
            await asyncio.sleep(0.05)


async def test_each_event_is_followed_once_while_processes_are_killed(tmp_path):
    """Two processes follow, one after the other is killed, transactions overlap: none is lost or followed
    twice."""
    async with ledger(tmp_path) as (url, db):
        owner = await make_account(db, "ann")
        repos = [await make_repo(db, owner) for _ in range(4)]
        workers = [await begin(url, "follow") for _ in range(2)]
        hub, ids = Hub(db), []

        async def announce(repo, count):
            for number in range(count):
                async with db.write(f"repo {repo}") as tx:
                    kind = "live" if number % 3 == 0 else KINDS[number % 2]
                    event = await hub.announce(tx, repo, kind, n=number)
                    await asyncio.sleep(random.random() * 0.01)  # others commit before: ids out of order
                if kind != "live":
                    ids.append(str(event))

        writing = [asyncio.create_task(announce(repo, EVENTS // 4)) for repo in repos]
        for number in range(KILLS):
            await asyncio.sleep(random.random() * 0.2)
            workers[number % 2].kill()
            await workers[number % 2].wait()
            workers[number % 2] = await begin(url, "follow")
        await asyncio.gather(*writing)
        await until(db, len(ids))
        await asyncio.sleep(0.3)
        assert await written(db) == Counter(ids)
        for worker in workers:
            worker.kill()
            await worker.wait()


async def test_a_kind_that_hangs_holds_up_neither_of_two_processes(tmp_path):
    """Every slot of the kind hangs, a process dies with its share: the other work is done, all of it."""
    async with ledger(tmp_path) as (url, db):
        workers = [await begin(url, "work") for _ in range(2)]
        adding = Jobs(db)
        async with db.write() as tx:
            for number in range(40):
                await adding.add(tx, "hang", {"n": number})
        for number in range(100):
            async with db.write() as tx:
                await adding.add(tx, "do", {"n": number})
            if number == 50:
                workers[0].kill()
                await workers[0].wait()
        await until(db, 100)
        job = tables["job"]
        async with asyncio.timeout(PATIENCE):
            while True:
                async with db.read() as tx:
                    open_ = await tx.value(
                        select(func.count()).where(job.c.kind == "do", job.c.done_at.is_(None))
                    )
                if not open_:
                    break
                await asyncio.sleep(0.05)
        assert set(await written(db)) == {str(number) for number in range(100)}
        async with db.read() as tx:
            held = await tx.value(
                select(func.count()).where(job.c.kind == "hang", job.c.leased_until.is_not(None))
            )
        assert 2 <= held <= 4
        workers[1].kill()
        await workers[1].wait()


async def test_a_turn_that_fails_is_followed_again(tmp_path):
    async with ledger(tmp_path) as (_, db):
        repo = await make_repo(db, await make_account(db, "ann"))
        following, fails = Followers(db), [True]

        async def follow(tx, events):
            await note(tx, events)
            if fails.pop() if fails else False:
                raise ZeroDivisionError

        following.register("note", follow, KINDS)
        await following._begin(following._all["note"])
        async with db.write() as tx:
            ids = [await log.append(tx, KINDS[0], repo_id=repo, data={}) for _ in range(3)]
        with pytest.raises(ZeroDivisionError):
            await following.handle_next("note")
        assert not await written(db)
        assert await following.handle_next("note") == 3
        assert await following.handle_next("note") == 0
        assert await written(db) == Counter(map(str, ids))


async def test_a_follower_begins_at_the_end_of_the_log(tmp_path):
    async with ledger(tmp_path) as (_, db):
        repo = await make_repo(db, await make_account(db, "ann"))
        async with db.write() as tx:
            await log.append(tx, KINDS[0], repo_id=repo, data={})
        following = Followers(db)
        following.register("note", note, KINDS)
        await following.start()
        async with db.write() as tx:
            fresh = await log.append(tx, KINDS[0], repo_id=repo, data={})
        await until(db, 1)
        await following.stop()
        assert await written(db) == Counter([str(fresh)])


async def test_what_happens_after_a_restore_is_followed(tmp_path):
    """The log was longer when the cursor was moved, and its last numbers are given out again."""
    async with ledger(tmp_path) as (_, db):
        repo = await make_repo(db, await make_account(db, "ann"))
        following = Followers(db)
        following.register("note", note, KINDS)
        await following._begin(following._all["note"])
        async with db.write() as tx:
            await tx.run(update(tables["cursor"]).values(at=1 << 60))
        await following._begin(following._all["note"])
        async with db.write() as tx:
            fresh = await log.append(tx, KINDS[0], repo_id=repo, data={})
        assert await following.handle_next("note") == 1
        assert await written(db) == Counter([str(fresh)])


async def test_live_edits_wake_no_follower(tmp_path, monkeypatch):
    monkeypatch.setattr(followers, "POLL", 2 * PATIENCE)
    async with ledger(tmp_path) as (_, db):
        repo = await make_repo(db, await make_account(db, "ann"))
        following, turns = Followers(db), []
        handle_next = following.handle_next

        async def counted(name):
            turns.append(name)
            return await handle_next(name)

        monkeypatch.setattr(following, "handle_next", counted)
        following.register("note", note, KINDS)
        following.register("other", note, ("repo.update",))
        await following.start()
        for _ in range(20):
            async with db.write() as tx:
                await log.append(tx, log.LIVE, repo_id=repo, data={"branch_id": "b", "seq": 1})
            await asyncio.sleep(0)
        async with db.write() as tx:
            await log.append(tx, KINDS[0], repo_id=repo, data={})
        await until(db, 1)
        await following.stop()
        # each looks when it starts; one is woken, and looks again after what it found
        assert turns.count("other") == 1
        assert turns.count("note") <= 3


def test_nobody_follows_live_edits():
    with pytest.raises(ValueError, match="live"):
        Followers(None).register("all", note, ("live", "ref.create"))


def test_what_somebody_prepared_ends_with_their_rights(relay: Relay, account, client):
    repo = own(account, client)
    guest = account()

    async def join():
        async with relay.node.db.write() as tx:
            await tx.run(
                insert(tables["collaborator"]),
                repo_id=repo.id,
                account_id=guest.id,
                role="write",
                created_at=1,
            )

    async def leave():
        async with relay.node.db.write() as tx:
            member = tables["collaborator"].c.account_id == guest.id
            await tx.run(update(tables["collaborator"]).where(member).values(role="read"))
            await relay.node.hub.announce(tx, repo.id, "access.change", audience="owner", account=guest.id)

    async def left(count):
        async with asyncio.timeout(PATIENCE):
            while True:
                async with relay.node.db.read() as tx:
                    rows = await tx.all(select(tables["prepare"].c.account_id))
                if len(rows) == count:
                    return {row[0] for row in rows}
                await asyncio.sleep(0.02)

    def prepare(who):
        body = {
            "branch": "main",
            "device_key_id": who.key.id,
            "expected_head": None,
            "seals": [{"message": "m", "changes": [], "parents": []}],
        }
        assert client(who).post(f"{repo.url}/seals/prepare", json=body).status_code == 200

    relay.run(join())
    for who in (guest, repo.owner):
        prepare(who)
    assert relay.run(left(2)) == {guest.id, repo.owner.id}
    relay.run(leave())
    assert relay.run(left(1)) == {repo.owner.id}
    assert repo.http.patch(repo.url, json={"archived": True}).status_code == 200
    assert relay.run(left(0)) == set()
    assert set(access_ends.KINDS) == log.ACCESS
