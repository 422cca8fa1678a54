"""Jobs: at least once, by one worker at a time, again after a failure; and the node's own hourly work."""

from __future__ import annotations

import asyncio
import contextlib
import json

from sqlalchemy import func, insert, select, update

from relay import config
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.upkeep import upkeep
from relay.events import jobs as module
from relay.events.jobs import Jobs, Pace
from tests.patience import PATIENCE
from tests.relay.node_fixture import DAY, database, make_account, make_repo


async def test_each_job_is_run_by_one_of_many_workers(tmp_path):
    async with database(tmp_path) as db:
        ran: list[int] = []

        async def handle(data):
            ran.append(data["n"])

        workers = [Jobs(db) for _ in range(4)]
        for worker in workers:
            worker.register("count", handle)
        async with db.write() as tx:
            for n in range(20):
                await workers[0].add(tx, "count", {"n": n})
        while any(await asyncio.gather(*(worker.run_due() for worker in workers))):
            pass
        assert sorted(ran) == list(range(20))


async def test_a_failed_job_is_run_again_later_and_given_up_at_last(tmp_path):
    async with database(tmp_path) as db:
        tried = 0

        async def handle(data):
            nonlocal tried
            tried += 1
            raise ValueError("no")

        jobs = Jobs(db)
        jobs.register("fail", handle, Pace(attempts=4, retry=0))
        async with db.write() as tx:
            await jobs.add(tx, "fail", {})
        while await jobs.run_due():
            pass
        assert tried == 4
        async with db.read() as tx:
            assert await tx.value(select(tables["job"].c.error)) == "ValueError: no"


async def test_only_work_that_is_due_wakes_the_worker(tmp_path):
    """Every live update adds a job for later; each wake-up would be a write transaction of its own."""
    async with database(tmp_path) as db:
        jobs = Jobs(db)
        async with db.write() as tx:
            await jobs.add(tx, "later", {}, run_at=now_ms() + DAY)
        assert not jobs._wake.is_set()
        async with db.write() as tx:
            await jobs.add(tx, "now", {})
        assert jobs._wake.is_set()


async def test_a_dead_workers_job_passes_on_when_its_lease_is_over(tmp_path):
    async with database(tmp_path) as db:
        started = asyncio.Event()
        ran: list[str] = []

        async def dies(data):
            started.set()
            await asyncio.sleep(3600)

        async def works(data):
            ran.append("done")

        dead, alive = Jobs(db), Jobs(db)
        dead.register("work", dies)
        alive.register("work", works)
        async with db.write() as tx:
            await dead.add(tx, "work", {})
        task = asyncio.create_task(dead.run_due())
        await started.wait()
        task.cancel()
        assert await alive.run_due() == 0
        async with db.write() as tx:
            await tx.run(update(tables["job"]).values(leased_until=1))
        assert await alive.run_due() == 1
        assert ran == ["done"]


async def test_hourly_work_is_done_once_an_hour_by_all_together(tmp_path, monkeypatch):
    async with database(tmp_path) as db:
        ran = 0

        async def handle(data):
            nonlocal ran
            ran += 1

        monkeypatch.setattr(module, "now_ms", lambda: 500 * module.HOUR)
        workers = [Jobs(db), Jobs(db)]
        for worker in workers:
            worker.register("hourly", handle, hourly=True)
        for _ in range(3):
            await asyncio.gather(*(worker.run_due() for worker in workers))
        assert ran == 1
        monkeypatch.setattr(module, "now_ms", lambda: 501 * module.HOUR)
        await workers[0].run_due()
        assert ran == 2


class Node:
    def __init__(self, db, **variables):
        self.db = db
        self.config = config.read(variables, dev=True, host="127.0.0.1", port=1, data=None)


async def test_what_expired_is_swept_and_what_was_deleted_is_purged(tmp_path):
    async with database(tmp_path) as db:
        ann = await make_account(db, "ann")
        gone, fresh, forked = [await make_repo(db, ann, state="deleted") for _ in range(3)]
        fork = await make_repo(db, ann)
        now = now_ms()
        async with db.write() as tx:
            for repo_id, purge_at in ((gone, now - 1), (fresh, now + DAY), (forked, now - 1)):
                await tx.run(
                    update(tables["repo"]).where(tables["repo"].c.id == repo_id).values(purge_at=purge_at)
                )
                await tx.run(insert(tables["repo_object"]), repo_id=repo_id, digest=repo_id.encode())
            await tx.run(update(tables["repo"]).where(tables["repo"].c.id == fork).values(parent_id=forked))
            for expires_at in (now - 1, now + DAY):
                await tx.run(
                    insert(tables["nonce"]), key_id="k", nonce=str(expires_at), expires_at=expires_at
                )
        node = Node(db)
        assert await upkeep.delete_expired(node) == 1
        assert await upkeep.purge_deleted(node) == 2
        assert await upkeep.purge_deleted(node) == 0
        async with db.read() as tx:
            repo = tables["repo"].c
            left = {row[0]: row[1] for row in await tx.all(select(repo.id, repo.parent_id))}
            assert left == {fresh: None, fork: None}
            assert await tx.value(select(func.count()).select_from(tables["repo_object"])) == 1


async def test_ended_sessions_lost_guests_and_old_audit_lines_go_a_lot_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "SWEPT_AT_ONCE", 2)
    async with database(tmp_path) as db:
        ann, now = await make_account(db, "ann"), now_ms()
        old = now - 3 * DAY
        async with db.write() as tx:
            for number in range(5):
                await _guest(tx, f"old{number}", old)
            await _guest(tx, "fresh", now)
            for guest in ("old0", "old1", "fresh"):
                await _document(tx, guest, now)
            for name, parent, ended, revoked in (
                ("parent", None, old, None),
                ("child", "parent", now + DAY, None),
                ("revoked", None, now + DAY, old),
                ("lately", None, now - 1, None),
            ):
                await _session(tx, name, ann, ended, revoked, parent)
            for at in (now - 8 * DAY, now - 6 * DAY):
                await tx.many(insert(tables["event"]), [_line(at)])
        node = Node(db, TR_AUDIT_DAYS="7")
        assert await upkeep.delete_expired(node) == 5 + 5 + 1 + 1 + 2 * 2
        assert await upkeep.delete_expired(node) == 0
        async with db.read() as tx:
            accounts = {row[0] for row in await tx.all(select(tables["account"].c.id))}
            sessions = {row[0] for row in await tx.all(select(tables["session"].c.id))}
            lines = await tx.all(select(tables["event"].c.created_at))
            documents = {row[0] for row in await tx.all(select(tables["document_update"].c.document_id))}
        assert accounts == {ann, "fresh"}
        assert documents == {"document of fresh"}
        assert sessions >= {"parent", "child", "lately", "session of fresh"}
        assert not sessions & {"revoked", "session of old0"}
        assert [now - at for (at,) in lines] == [6 * DAY]


def _line(at):
    """An event of no repository."""
    return {"id": at, "kind": "x.y", "actor": "", "audience": "owner", "data": "{}", "created_at": at}


async def test_what_an_older_build_recorded_comes_into_the_log(tmp_path, monkeypatch):
    """Under numbers below all others, in its order, to the account that it happened to."""
    monkeypatch.setattr(upkeep, "SWEPT_AT_ONCE", 2)
    rows = (
        ("a1", "session.start", "s1"),
        ("operator", "account.create", "a2"),
        ("", "session.refused", "ann"),
        ("operator", "repo.kill", "r1"),
        ("a1", "token.create", "t1"),
    )
    async with database(tmp_path) as db:
        async with db.write() as tx:
            for at, (actor, action, subject) in enumerate(rows):
                await tx.run(
                    insert(tables["audit"]),
                    id=at + 1,
                    at=at,
                    actor=actor,
                    action=action,
                    subject=subject,
                    data='{"x":1}',
                )
        assert await upkeep.take_over_audit(db) == 5
        assert await upkeep.take_over_audit(db) == 0
        event = tables["event"]
        async with db.read() as tx:
            found = await tx.all(
                select(event.c.id, event.c.account_id, event.c.actor, event.c.kind, event.c.data).order_by(
                    event.c.id
                )
            )
            assert await tx.value(select(func.count()).select_from(tables["audit"])) == 0
        assert all(row[0] < 0 for row in found)
        assert [row[1] for row in found] == ["a1", "a2", None, None, "a1"]
        assert [(row[2], row[3]) for row in found] == [row[:2] for row in rows]
        assert json.loads(found[0][4]) == {"x": 1, "subject": "s1"}


async def test_a_kind_that_hangs_holds_up_no_other(tmp_path):
    async with database(tmp_path) as db:
        jobs, done, hung = Jobs(db), [], []

        async def hang(data):
            hung.append(data["n"])
            await asyncio.Event().wait()

        async def work(data):
            done.append(data["n"])

        jobs.register("hang", hang, Pace(slots=2, deadline=3600_000))
        jobs.register("work", work)
        async with db.write() as tx:
            for n in range(20):
                await jobs.add(tx, "hang", {"n": n})
                await jobs.add(tx, "work", {"n": n})
        await jobs.start()
        async with asyncio.timeout(PATIENCE):
            while len(done) < 20:
                await asyncio.sleep(0.01)
        assert sorted(done) == list(range(20))
        assert len(hung) == 2  # its slots
        await jobs.stop()


async def test_of_one_lane_so_many_run_at_once_and_the_others_are_not_held_up(tmp_path):
    async with database(tmp_path) as db:
        jobs, done, hung, most = Jobs(db), [], [], 0

        async def ask(data):
            nonlocal most
            if data["host"] == "slow":
                hung.append(data["n"])
                await asyncio.Event().wait()
            most = max(most, len(hung))
            done.append(data["n"])

        jobs.register("ask", ask, Pace(slots=6, deadline=3600_000, each=2))
        async with db.write() as tx:
            for n in range(40):  # those that hang come first, and are more than a claim looks at
                await jobs.add(tx, "ask", {"n": n, "host": "slow"}, lane="slow")
            for n in range(30):
                await jobs.add(tx, "ask", {"n": n, "host": f"h{n % 3}"}, lane=f"h{n % 3}")
        await jobs.start()
        async with asyncio.timeout(PATIENCE):
            while len(done) < 30:
                await asyncio.sleep(0.01)
        assert sorted(done) == list(range(30))
        assert (len(hung), most) == (2, 2)
        await jobs.stop()


async def test_a_job_that_hangs_ends_at_its_deadline_and_gives_its_slot_back(tmp_path):
    async with database(tmp_path) as db:
        jobs, begun = Jobs(db), []

        async def hang(data):
            begun.append(data["n"])
            await asyncio.Event().wait()

        jobs.register("hang", hang, Pace(slots=1, deadline=50, attempts=2, retry=10))
        async with db.write() as tx:
            for n in range(3):
                await jobs.add(tx, "hang", {"n": n})
        async with asyncio.timeout(PATIENCE):
            while len(begun) < 6:
                await jobs.run_due()
        async with db.read() as tx:
            found = await tx.all(
                select(tables["job"].c.error, tables["job"].c.attempts, tables["job"].c.done_at)
            )
        assert sorted(begun) == [0, 0, 1, 1, 2, 2]
        assert {(row[0], row[1]) for row in found} == {("TimeoutError: it took longer than 0.05 s", 2)}
        assert all(row[2] for row in found)


async def test_one_that_will_not_be_stopped_is_left_to_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "STUBBORN", 20)
    async with database(tmp_path) as db:
        jobs, end, ran = Jobs(db), asyncio.Event(), []

        async def stubborn(data):
            while not end.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await end.wait()

        async def work(data):
            ran.append(1)

        jobs.register("stubborn", stubborn, Pace(slots=1, deadline=20, attempts=1))
        jobs.register("work", work)
        async with db.write() as tx:
            await jobs.add(tx, "stubborn", {})
            await jobs.add(tx, "work", {})
        assert await asyncio.wait_for(jobs.run_due(), PATIENCE) == 2
        assert ran == [1]
        end.set()


async def test_a_lease_is_renewed_while_its_job_runs(tmp_path, monkeypatch):
    """A second worker that looks later than each lease never gets it; one that lost its lease stops."""
    monkeypatch.setattr(module, "RENEW", 50)
    monkeypatch.setattr(module, "now_ms", lambda: now_ms() + ahead)
    async with database(tmp_path) as db:
        one, two, runs, end, ahead = Jobs(db), Jobs(db), [], asyncio.Event(), 0

        async def slow(data):
            runs.append("begun")
            await end.wait()
            runs.append("ended")

        async def renewed():
            async with asyncio.timeout(PATIENCE):
                while True:
                    async with db.read() as tx:
                        until = await tx.value(select(tables["job"].c.leased_until)) or 0
                    if until > now_ms() + ahead + module.LEASE // 2:
                        return

        for worker in (one, two):
            worker.register("slow", slow)
        async with db.write() as tx:
            await one.add(tx, "slow", {})
        first = asyncio.create_task(one.run_due())
        for _ in range(4):
            await renewed()
            ahead += module.LEASE // 2
            assert await two.run_due() == 0
        end.set()
        await first
        assert runs == ["begun", "ended"]

        end.clear()
        async with db.write() as tx:
            await one.add(tx, "slow", {})
        lost = asyncio.create_task(one.run_due())
        while len(runs) < 3:
            await asyncio.sleep(0.01)
        async with db.write() as tx:  # as if it had been held up, and another one had begun
            await tx.run(update(tables["job"]).values(leased_until=now_ms() + DAY))
        await lost
        assert runs == ["begun", "ended", "begun"]
        async with db.read() as tx:
            assert await tx.value(select(func.count()).where(tables["job"].c.done_at.is_(None))) == 1


async def _guest(tx, name, created_at):
    await tx.run(
        insert(tables["account"]),
        id=name,
        kind="guest",
        phase="ephemeral",
        operator=False,
        created_at=created_at,
        **dict.fromkeys(("handle", "email", "name", "password_hash", "disabled_at")),
    )
    await _session(tx, f"session of {name}", name, created_at, None, None)


async def _document(tx, owner, created_at):
    times = {"created_at": created_at, "updated_at": created_at, "archived_at": None}
    row = {"id": f"document of {owner}", "account_id": owner, "title": "x", "content": b"1"}
    await tx.run(insert(tables["document"]), **row, head=1, size=1, **times)
    update = {"document_id": row["id"], "number": 1, "first": 1, "base": 0, "operations": b"\0\0"}
    await tx.run(insert(tables["document_update"]), **update, created_at=created_at)


async def _session(tx, name, account_id, expires_at, revoked_at, parent_id):
    await tx.run(
        insert(tables["session"]),
        id=name,
        account_id=account_id,
        parent_id=parent_id,
        kind="cli",
        label="",
        device_key_id=None,
        caps="",
        created_at=1,
        expires_at=expires_at,
        last_used_at=None,
        revoked_at=revoked_at,
        way=None,
    )
