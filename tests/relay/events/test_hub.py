"""Hearing what happens: the hub's order and bounds, the socket's rules, polling."""

from __future__ import annotations

import asyncio
import json
import secrets

import pytest
from sqlalchemy import update
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from localstore.core.identity.bearer import authorization
from localstore.core.model.sync import Event, Resync, Subscribed
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.events import hub as module
from relay.events.hub import Hub
from tests.relay.node_fixture import database, make_account, make_repo

PROTOCOL = "svc-sync.v1"


async def announce(db, hub, repo_id, count, kind="live"):
    for n in range(count):
        async with db.write() as tx:
            await hub.announce(tx, repo_id, kind, n=n)


async def collect(hub, peer, count):
    """The next `count` messages of a peer that may see everything."""

    async def everything(ids):
        return set(ids)

    found = []
    async for batch in hub.deliveries(peer, everything):
        found += batch
        if len(found) >= count:
            return found
    return found


async def test_subscribers_get_every_event_once_and_in_order_while_it_rains(tmp_path):
    async with database(tmp_path) as db:
        repo = await make_repo(db, await make_account(db, "ann"))
        hub = Hub(db)
        await hub.start()
        rain = asyncio.create_task(announce(db, hub, repo, 300))
        peers = []
        for _ in range(5):
            await asyncio.sleep(0.01)
            peer = hub.join(None)
            assert isinstance(await hub.subscribe(peer, repo, 0), Subscribed)
            peers.append(peer)
        await rain
        for peer in peers:
            found = await collect(hub, peer, 300)
            assert [event.data["n"] for event in found] == list(range(300))
        await hub.stop()


async def test_nothing_is_heard_of_a_transaction_that_failed(tmp_path):
    async with database(tmp_path) as db:
        repo = await make_repo(db, await make_account(db, "ann"))
        hub = Hub(db)
        await hub.start()
        peer = hub.join(None)
        await hub.subscribe(peer, repo, None)
        with pytest.raises(ZeroDivisionError):
            async with db.write() as tx:
                await hub.announce(tx, repo, "ref", name="lost")
                raise ZeroDivisionError
        await announce(db, hub, repo, 1, "ref")
        (event,) = await collect(hub, peer, 1)
        assert event.data == {"n": 0}
        await hub.stop()


async def test_a_slow_reader_is_told_to_resync_and_stalls_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "QUEUE", 10)
    async with database(tmp_path) as db:
        repo = await make_repo(db, await make_account(db, "ann"))
        hub = Hub(db)
        await hub.start()
        slow, quick = hub.join(None), hub.join(None)
        for peer in (slow, quick):
            await hub.subscribe(peer, repo, None)
        for _ in range(5):
            await announce(db, hub, repo, 8)
            assert all(isinstance(one, Event) for one in await collect(hub, quick, 8))
        (only,) = await collect(hub, slow, 1)
        assert isinstance(only, Resync)
        assert len(slow.queue) == 0
        await announce(db, hub, repo, 1)
        (event,) = await collect(hub, slow, 1)
        assert event.id > only.id
        await hub.stop()


async def test_one_far_behind_has_to_resync(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BACKLOG", 20)
    async with database(tmp_path) as db:
        repo = await make_repo(db, await make_account(db, "ann"))
        hub = Hub(db)
        await hub.start()
        await announce(db, hub, repo, 30)
        assert isinstance(await hub.subscribe(hub.join(None), repo, 0), Resync)
        await hub.stop()


def opened(relay, who, **options):
    headers = {"Authorization": authorization(who.token)} if who else {}
    url = relay.url.replace("http", "ws") + "/api/v1/sync/ws"
    return connect(url, subprotocols=[PROTOCOL], additional_headers=headers, proxy=None, **options)


async def hear(socket):
    return json.loads(await asyncio.wait_for(socket.recv(), 10))


async def say(socket, **message):
    await socket.send(json.dumps(message))


def announced(relay, repo_id, count=1):
    relay.run(announce(relay.node.db, relay.node.hub, repo_id, count))


def two(relay):
    ann, bob = (relay.account(f"u{secrets.token_hex(6)}") for _ in range(2))
    return ann, relay.run(make_repo(relay.node.db, ann.id)), bob


async def test_a_socket_hears_what_its_account_may_see_and_no_more(relay):
    ann, repo, bob = two(relay)
    async with opened(relay, ann) as mine, opened(relay, bob) as theirs:
        assert mine.subprotocol == PROTOCOL
        await say(mine, type="subscribe", repo_id=repo)
        assert (await hear(mine))["type"] == "subscribed"
        await say(theirs, type="subscribe", repo_id=repo)
        assert await hear(theirs) == {"type": "hidden", "repo_id": repo}
        await say(theirs, type="subscribe", repo_id="nowhere")
        assert await hear(theirs) == {"type": "hidden", "repo_id": "nowhere"}
        announced(relay, repo)
        heard = await hear(mine)
        assert (heard["type"], heard["kind"], heard["data"]) == ("event", "live", {"n": 0})
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(theirs.recv(), 0.2)


async def test_sight_that_is_lost_ends_delivery(relay):
    ann, repo, _ = two(relay)
    async with opened(relay, ann) as socket:
        await say(socket, type="subscribe", repo_id=repo)
        await hear(socket)

        async def suspend():
            async with relay.node.db.write() as tx:
                await tx.run(
                    update(tables["repo"]).where(tables["repo"].c.id == repo).values(state="suspended")
                )

        relay.run(suspend())
        announced(relay, repo)
        assert await hear(socket) == {"type": "hidden", "repo_id": repo}


async def test_revocation_closes_the_socket(relay):
    ann, repo, _ = two(relay)
    async with opened(relay, ann) as socket:
        await say(socket, type="subscribe", repo_id=repo)
        await hear(socket)

        async def revoke():
            async with relay.node.db.write() as tx:
                mine = tables["session"].c.id == ann.session_id
                await tx.run(update(tables["session"]).where(mine).values(revoked_at=now_ms()))
                tx.after_commit(lambda: relay.node.hub.end_sessions([ann.session_id]))

        relay.run(revoke())
        assert (await hear(socket))["type"] == "closing"
        await asyncio.wait_for(socket.wait_closed(), 10)


@pytest.mark.parametrize(
    "frame",
    [
        "{",
        "[]",
        '{"type":"shout"}',
        '{"type":"subscribe"}',
        '{"type":"subscribe","repo_id":"x","since":-1}',
        '{"type":"subscribe","repo_id":"x","since":99999999999999999999}',
        b"\xff\xfe",
        "x" * 5000,
        "[" * 4000,
    ],
)
async def test_a_message_that_is_none_closes_with_a_reason(relay, frame):
    ann, _, _ = two(relay)
    async with opened(relay, ann) as socket:
        await socket.send(frame)
        said = await hear(socket)
        assert said["type"] == "closing"
        assert said["code"] in {"malformed", "invalid", "too_large"}
        await asyncio.wait_for(socket.wait_closed(), 10)


async def test_a_socket_needs_a_session(relay):
    with pytest.raises(InvalidStatus) as refused:
        await opened(relay, None).__aenter__()
    assert refused.value.response.status_code == 401


def test_polling(relay):
    ann, repo, bob = two(relay)
    with relay.client(ann) as client, relay.client(bob) as other:
        start = client.post("/api/v1/sync/poll", json={"repos": [repo]}).json()
        assert start["events"] == []
        announced(relay, repo, 3)
        wish = {"repos": [repo, "nowhere"], "since": start["next"]}
        answer = client.post("/api/v1/sync/poll", json=wish).json()
        assert [event["data"]["n"] for event in answer["events"]] == [0, 1, 2]
        assert answer["hidden"] == ["nowhere"]
        assert answer["more"] is False
        wish["since"] = answer["next"]
        assert client.post("/api/v1/sync/poll", json=wish).json()["events"] == []
        hidden = other.post("/api/v1/sync/poll", json={"repos": [repo], "since": 0}).json()
        assert (hidden["events"], hidden["hidden"]) == ([], [repo])
        for bad in ({"repos": [repo], "since": -1}, {"repos": [repo] * 300}, {"repos": repo}):
            assert client.post("/api/v1/sync/poll", json=bad).status_code == 422


async def test_a_subscription_made_while_visibility_is_asked_is_kept(tmp_path):
    async with database(tmp_path) as db:
        ann = await make_account(db, "ann")
        repo, late, gone = [await make_repo(db, ann) for _ in range(3)]
        hub = Hub(db)
        await hub.start()
        peer = hub.join(None)
        for one in (repo, gone):
            await hub.subscribe(peer, one, None)

        async def meanwhile(ids):
            await hub.subscribe(peer, late, None)
            hub.unsubscribe(peer, gone)
            peer.lost.add(gone)
            return set(ids)

        await announce(db, hub, repo, 1)
        deliveries = hub.deliveries(peer, meanwhile)
        (event,) = await anext(deliveries)
        assert event.repo_id == repo
        assert late in peer.cursors
        await deliveries.aclose()
        await hub.stop()
