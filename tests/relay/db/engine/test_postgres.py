"""PostgreSQL behind the thin layer: what a transaction promises, to one process and between several."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import pkgutil

import asyncpg
import msgspec
import pytest
from sqlalchemy import insert, select
from sqlalchemy.sql.base import Executable

import relay.db
import relay.domain
from localstore.core.errors import Unavailable
from localstore.core.model.sync import Event
from relay.db.engine.database import Contended, ForeignKeyViolation, NotNullViolation, UniqueViolation
from relay.db.engine.postgres import STAMP_BITS, PostgresDatabase
from relay.db.engine.postgres_sql import compile_statement
from relay.db.schema import tables
from relay.db.storage import collect
from relay.db.storage import object as objects
from relay.events import log
from relay.events.hub import Hub
from relay.objects.store import ObjectStore
from tests.databases import postgres_url
from tests.patience import PATIENCE
from tests.relay.db.engine.test_sqlite import ref
from tests.relay.node_fixture import make_account, make_repo

NONCE = insert(tables["nonce"])
REF = insert(tables["ref"])
COUNT = select(tables["nonce"].c.nonce).where(tables["nonce"].c.key_id == "k")


@contextlib.asynccontextmanager
async def processes(count=1):
    """Databases over one server database, as so many processes would have them."""
    url = await asyncio.to_thread(postgres_url)
    opened = [PostgresDatabase(url) for _ in range(count)]
    for one in opened:
        await one.open()
    try:
        yield opened
    finally:
        for one in opened:
            await one.close()


def nonce(name):
    return {"key_id": "k", "nonce": name, "expires_at": 1}


def statements():
    """Every statement of `relay.db` and of the rows of subjects, by its name."""
    shared = pkgutil.walk_packages(relay.db.__path__, "relay.db.")
    of_subjects = pkgutil.walk_packages(relay.domain.__path__, "relay.domain.")
    for module in (*shared, *(one for one in of_subjects if "rows" in one.name.split("."))):
        found = importlib.import_module(module.name)
        for name, value in vars(found).items():
            several = value if isinstance(value, tuple) else (value,)
            for number, one in enumerate(several):
                if not name.startswith("_") and isinstance(one, Executable) and hasattr(one, "get_children"):
                    yield f"{module.name.removeprefix('relay.')}.{name}[{number}]", one


async def test_postgres_understands_every_statement():
    url = await asyncio.to_thread(postgres_url)
    connection = await asyncpg.connect(url)
    known = dict(statements())
    assert len(known) > 150
    for name, statement in known.items():
        try:
            await connection.prepare(compile_statement(statement).sql)
        except asyncpg.PostgresError as error:
            pytest.fail(f"{name}: {error}")
    await connection.close()


async def test_writers_of_one_name_take_turns_in_all_processes():
    async with processes(3) as found:
        async with found[0].write() as tx:
            job = {"id": "n", "kind": "count", "data": "0", "attempts": 0, "run_at": 0}
            await tx.many(insert(tables["job"]), [job])
        reading = select(tables["job"].c.data).where(tables["job"].c.id == "n")
        writing = tables["job"].update().where(tables["job"].c.id == "n")

        async def add(db):
            async with db.write("the count") as tx:
                value = int(await tx.value(reading))
                await asyncio.sleep(0.001)
                await tx.run(writing.values(data=str(value + 1)))

        await asyncio.gather(*(add(db) for db in found * 10))
        async with found[0].read() as tx:
            assert await tx.value(reading) == "30"


async def test_writers_of_two_names_in_either_order_never_wait_for_each_other():
    async with processes(2) as (one, two):

        async def both(db, *names):
            async with db.write(*names):
                await asyncio.sleep(0.002)

        turns = [both(one, "a", "b"), both(two, "b", "a")] * 10
        await asyncio.wait_for(asyncio.gather(*turns), PATIENCE)


async def test_what_fails_leaves_nothing_and_gives_its_name_back():
    async with processes(2) as (one, two):
        called = []
        with pytest.raises(ZeroDivisionError):
            async with one.write("a") as tx:
                await tx.run(NONCE, **nonce("x"))
                tx.after_commit(lambda: called.append("never"))
                raise ZeroDivisionError
        async with two.write("a") as tx:
            assert await tx.all(COUNT) == []
            await tx.run(NONCE, **nonce("x"))
            tx.after_commit(lambda: called.append("once"))
        assert called == ["once"]


async def test_a_cancelled_writer_gives_its_name_and_connection_back():
    async with processes(2) as (one, two):

        async def slow(db):
            async with db.write("a") as tx:
                await tx.run(NONCE, **nonce("cancelled"))
                await tx._connection.execute("SELECT pg_sleep(10)")

        for _ in range(2 * 8):  # more often than there are connections
            task = asyncio.create_task(slow(one))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        for db in (one, two):
            async with db.write("a") as tx:
                assert await tx.all(COUNT) == []


async def test_a_broken_constraint_is_named():
    async with processes() as (db,):
        with pytest.raises(UniqueViolation, match="pk_nonce"):
            async with db.write() as tx:
                await tx.run(NONCE, **nonce("x"))
                await tx.run(NONCE, **nonce("x"))


async def test_each_kind_of_constraint_has_an_error_of_its_own():
    async with processes() as (db,):
        with pytest.raises(ForeignKeyViolation, match="fk_ref_repo_id"):
            async with db.write() as tx:
                await tx.run(REF, **ref(repo_id="nobody"))
        with pytest.raises(NotNullViolation, match="name"):
            async with db.write() as tx:
                await tx.run(REF, **ref(name=None))


async def test_readers_cannot_write_and_a_snapshot_stands_still():
    async with processes() as (db,):
        async with db.read() as tx:
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await tx.run(NONCE, **nonce("x"))
        async with db.read(snapshot=True) as still, db.read() as moving:
            assert await still.all(COUNT) == []
            async with db.write() as tx:
                await tx.many(NONCE, [nonce("x"), nonce("y")])
            assert await still.all(COUNT) == []
            assert len(await moving.all(COUNT)) == 2


async def test_long_and_empty_lists_and_streams():
    async with processes() as (db,):
        digests = [n.to_bytes(32, "big") for n in range(25_000)]
        async with db.read() as tx:
            assert await tx.all(objects.KNOWN, digests=digests) == []
            assert await tx.all(objects.KNOWN, digests=[]) == []
        async with db.write() as tx:
            await tx.many(NONCE, [nonce(f"{n:05}") for n in range(2500)])
        async with db.read() as tx:
            found = [row[0] async for row in tx.stream(COUNT.order_by(tables["nonce"].c.nonce))]
        assert found == [f"{n:05}" for n in range(2500)]
        async with db.read(snapshot=True) as tx:
            assert [row[0] async for row in tx.stream(COUNT.order_by(tables["nonce"].c.nonce))] == found
            assert len(await tx.all(COUNT)) == 2500


async def test_one_process_at_a_time_is_alone():
    async with processes(2) as (one, two):
        order: list[str] = []
        waiting = asyncio.Event()

        async def later() -> None:
            async with two.alone("keeper", waiting.set):
                order.append("two")

        async with one.alone("keeper", waiting.set), one.alone("another", waiting.set):
            assert not waiting.is_set()
            task = asyncio.create_task(later())
            await waiting.wait()
            order.append("one")
        await task
        assert order == ["one", "two"]


async def test_the_collector_leaves_what_somebody_is_touching(tmp_path):
    """An upload that has touched an object, and not committed yet, keeps it and its scope."""
    async with processes(2) as (one, two):
        repo_id = await make_repo(one, await make_account(one, "ann"))
        store = ObjectStore(tmp_path, one)
        name = await store.put(repo_id, b"known already")
        async with one.write() as tx:
            await tx.run(tables["object"].update().values(last_seen=1))

        async with one.write() as tx:
            await store.touch(tx, [name])
            async with two.write("repo") as other:
                asked = {"digests": [name], "cutoff": 2}
                assert await other.run(collect.DROP_SCOPES, repo_id=repo_id, **asked) == 0
                assert await other.run(collect.DROP_OBJECTS, **asked) == 0
            await store.link(tx, repo_id, [name])
        async with one.read() as tx:
            assert await store.has_all(tx, repo_id, [name])
        await store.close()


async def test_two_that_wait_for_each_other_are_told_to_try_again():
    async with processes(2) as (one, two):
        async with one.write() as tx:
            await tx.many(NONCE, [nonce("a"), nonce("b")])
        touch = tables["nonce"].update().values(expires_at=2)
        met = asyncio.Barrier(2)

        async def cross(db, first, second):
            async with db.write() as tx:
                await tx.run(touch.where(tables["nonce"].c.nonce == first))
                await met.wait()
                await tx.run(touch.where(tables["nonce"].c.nonce == second))

        done = await asyncio.gather(cross(one, "a", "b"), cross(two, "b", "a"), return_exceptions=True)
        assert sorted(type(one) for one in done if one is not None) == [Contended]


async def test_a_lost_connection_is_unavailable_and_the_next_request_has_another():
    async with processes(2) as (one, two):
        with pytest.raises(Unavailable):
            async with one.write("a") as tx:
                own = await tx._connection.fetchval("SELECT pg_backend_pid()")
                async with two.write() as other:
                    await other._connection.execute(f"SELECT pg_terminate_backend({own})")
                await tx.run(NONCE, **nonce("x"))
        async with one.write("a") as tx:
            assert await tx.all(COUNT) == []


async def test_events_that_commit_out_of_order_are_all_heard():
    """An event with a lower id appears after one with a higher id was handed out."""
    async with processes(2) as (one, two):
        owner = await make_account(one, "ann")
        early, late = await make_repo(one, owner), await make_repo(one, owner)
        hub = Hub(two)
        await hub.start()
        peer = hub.join(None, owner)
        for repo_id in (early, late):
            await hub.subscribe(peer, repo_id, None)
        writing = Hub(one)
        async with one.write(f"repo {early}") as slow:
            first = await writing.announce(slow, early, "live", n=1)
            async with one.write(f"repo {late}") as tx:
                second = await writing.announce(tx, late, "live", n=2)
            assert [event.id for event in await heard(peer)] == [second]
            both = dict.fromkeys((early, late), "owner")
            answered, following, *_ = await hub.poll(both, 0)
            assert answered == []  # one number could not stand for both
        assert first < second
        assert [event.id for event in await heard(peer)] == [first]
        answered, following, *_ = await hub.poll(both, following)
        assert [event.id for event in answered] == [first, second]
        assert (await hub.poll(both, following))[0] == []
        await hub.stop()


async def test_stamps_grow_within_a_transaction_and_from_one_to_the_next():
    async with processes() as (db,):
        async with db.write() as tx:
            found = [await tx.stamp() for _ in range(3)]
        async with db.write() as tx:
            found.append(await tx.stamp())
            assert await db.horizon(tx) <= found[-1]
        async with db.read() as tx:
            assert await db.horizon(tx) > found[-1] >> STAMP_BITS << STAMP_BITS
        assert found == sorted(set(found))


EVENT = {"kind": "ref.create", "actor": "", "audience": "reader", "data": "{}", "created_at": 1}


async def test_events_of_a_restored_dump_do_not_stand_in_the_way():
    async with processes() as (db,):
        owner = await make_account(db, "ann")
        repo_id = await make_repo(db, owner)
        async with db.write() as tx:
            await log.append(tx, "ref.create", repo_id=repo_id, data={"n": 1})
            ahead = (await tx.stamp()) + (1 << 40)
            line = {**EVENT, "repo_id": repo_id}
            await tx.many(insert(tables["event"]), [{**line, "id": ahead}, {**line, "id": ahead + 5}])
            await tx.many(
                insert(tables["cursor"]), [{"name": "one", "at": ahead}, {"name": "all", "at": ahead + 9}]
            )
        await db.close()
        await db.open()
        async with db.read() as tx:
            kept = sorted(row[0] for row in await tx.all(select(tables["event"].c.id)))
            stand = dict(await tx.all(select(tables["cursor"].c.name, tables["cursor"].c.at)))
        assert kept == [-3, -2, -1]  # none is gone: they are the record of what happened
        assert (stand["one"], stand["all"]) == (-2, -1)
        hub = Hub(db)
        await hub.start()
        peer = hub.join(None, owner)
        assert type(await hub.subscribe(peer, repo_id, ahead)).__name__ == "Resync"
        async with db.write(f"repo {repo_id}") as tx:
            fresh = await hub.announce(tx, repo_id, "ref.create", name="main")
        assert [event.id for event in await heard(peer)] == [fresh]
        await hub.stop()


async def test_the_listener_connects_again_and_looks_at_what_it_missed():
    async with processes(2) as (one, two):
        woken = asyncio.Event()
        two.on_wake(woken.set)
        for _ in range(2):
            await asyncio.wait_for(waken(one, woken), PATIENCE)
            async with one.write() as tx:
                await tx._connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE query LIKE 'LISTEN%' AND datname = current_database()"
                )
            woken.clear()
            await asyncio.wait_for(woken.wait(), PATIENCE)


async def waken(db, woken):
    woken.clear()
    while not woken.is_set():
        async with db.write() as tx:
            tx.wake()
        await asyncio.sleep(0.02)


async def heard(peer):
    await asyncio.wait_for(peer.ready.wait(), PATIENCE)
    return [msgspec.json.decode(text, type=Event) for text in peer.drain()]
