"""Hearing what happens: the hub's order and bounds, the socket's rules, polling."""

from __future__ import annotations

import asyncio
import json
import secrets

import msgspec
import pytest
from sqlalchemy import delete, insert, update
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from localstore.core.identity.bearer import authorization
from localstore.core.model.sync import Event, Hidden, Resync, Subscribed
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.upkeep import upkeep
from relay.events import hub as module
from relay.events import peers
from relay.events.hub import Hub
from tests.patience import PATIENCE
from tests.relay.node_fixture import database, make_account, make_repo

PROTOCOL = "svc-sync.v1"
MESSAGE = msgspec.json.Decoder(Event | Resync | Hidden)


async def announce(db, hub, repo_id, count, kind="live"):
    for n in range(count):
        async with db.write() as tx:
            await hub.announce(tx, repo_id, kind, n=n)


async def collect(peer, count):
    """The next `count` messages of a peer."""
    found = []
    while len(found) < count:
        await asyncio.wait_for(peer.ready.wait(), PATIENCE)
        found += [MESSAGE.decode(text) for text in peer.drain()]
    return found


async def world(db, handle="ann"):
    """An account, its repository and a hub that has begun."""
    owner = await make_account(db, handle)
    hub = Hub(db)
    await hub.start()
    return owner, await make_repo(db, owner), hub


async def test_subscribers_get_every_event_once_and_in_order_while_it_rains(tmp_path):
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        rain = asyncio.create_task(announce(db, hub, repo, 300))
        peers = []
        for _ in range(5):
            await asyncio.sleep(0.01)
            peer = hub.join(None, ann)
            assert isinstance(await hub.subscribe(peer, repo, 0), Subscribed)
            peers.append(peer)
        await rain
        for peer in peers:
            found = await collect(peer, 300)
            assert [event.data["n"] for event in found] == list(range(300))
        await hub.stop()


async def test_nothing_is_heard_of_a_transaction_that_failed(tmp_path):
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        peer = hub.join(None, ann)
        await hub.subscribe(peer, repo, None)
        with pytest.raises(ZeroDivisionError):
            async with db.write() as tx:
                await hub.announce(tx, repo, "ref.create", name="lost")
                raise ZeroDivisionError
        await announce(db, hub, repo, 1, "ref.create")
        (event,) = await collect(peer, 1)
        assert event.data == {"n": 0}
        await hub.stop()


async def test_a_slow_reader_is_told_to_resync_and_stalls_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "QUEUE", 10)
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        slow, quick = hub.join(None, ann), hub.join(None, ann)
        for peer in (slow, quick):
            await hub.subscribe(peer, repo, None)
        for _ in range(5):
            await announce(db, hub, repo, 8)
            assert all(isinstance(one, Event) for one in await collect(quick, 8))
        (only,) = await collect(slow, 1)
        assert isinstance(only, Resync)
        assert len(slow.queue) == 0
        await announce(db, hub, repo, 1)
        (event,) = await collect(slow, 1)
        assert event.id > only.id
        await hub.stop()


async def test_one_far_behind_has_to_resync(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BACKLOG", 20)
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        await announce(db, hub, repo, 30)
        assert isinstance(await hub.subscribe(hub.join(None, ann), repo, 0), Resync)
        await hub.stop()


def opened(relay, who, **options):
    headers = {"Authorization": authorization(who.token)} if who else {}
    url = relay.url.replace("http", "ws") + "/api/v1/sync/ws"
    return connect(url, subprotocols=[PROTOCOL], additional_headers=headers, proxy=None, **options)


async def hear(socket):
    return json.loads(await asyncio.wait_for(socket.recv(), PATIENCE))


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
                await relay.node.hub.announce(tx, repo, "repo.suspend", state="suspended")

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
        await asyncio.wait_for(socket.wait_closed(), PATIENCE)


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
        await asyncio.wait_for(socket.wait_closed(), PATIENCE)


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
        body = {"repos": [repo, "nowhere"], "since": start["next"]}
        answer = client.post("/api/v1/sync/poll", json=body).json()
        assert [event["data"]["n"] for event in answer["events"]] == [0, 1, 2]
        assert answer["hidden"] == ["nowhere"]
        assert answer["more"] is False
        body["since"] = answer["next"]
        assert client.post("/api/v1/sync/poll", json=body).json()["events"] == []
        hidden = other.post("/api/v1/sync/poll", json={"repos": [repo], "since": 0}).json()
        assert (hidden["events"], hidden["hidden"]) == ([], [repo])
        for bad in ({"repos": [repo], "since": -1}, {"repos": [repo] * 300}, {"repos": repo}):
            assert client.post("/api/v1/sync/poll", json=bad).status_code == 422


async def test_a_subscription_made_while_rights_are_asked_is_kept(tmp_path):
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        late, gone = [await make_repo(db, ann) for _ in range(2)]
        peer = hub.join(None, ann)
        for one in (repo, gone):
            await hub.subscribe(peer, one, None)
        asked = hub._rights

        async def meanwhile(accounts, repo_ids):
            hub._rights = asked
            await hub.subscribe(peer, late, None)
            hub.unsubscribe(peer, gone)
            return await asked(accounts, repo_ids)

        hub._rights = meanwhile
        await hub._ask_again([repo, gone])
        await announce(db, hub, repo, 1)
        (event,) = await collect(peer, 1)
        assert event.repo_id == repo
        assert set(peer.cursors) == set(peer.levels) == {repo, late}
        await hub.stop()


async def test_nothing_after_an_access_event_reaches_whom_it_shut_out(tmp_path):
    """In one batch: what is before it may be heard, what is after it is not."""
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        bob = await make_account(db, "bob")
        member = tables["collaborator"]
        async with db.write() as tx:
            await tx.run(insert(member), repo_id=repo, account_id=bob, role="write", created_at=1)
        owner, guest = hub.join(None, ann), hub.join(None, bob)
        for peer in (owner, guest):
            assert isinstance(await hub.subscribe(peer, repo, None), Subscribed)
        async with db.write(f"repo {repo}") as tx:
            await hub.announce(tx, repo, "live", n=1)
            await tx.run(delete(member))
            await hub.announce(tx, repo, "access.remove", audience="owner", account=bob)
            await hub.announce(tx, repo, "live", n=2)
        assert [one.kind for one in await collect(owner, 3)] == ["live", "access.remove", "live"]
        assert await collect(guest, 1) == [Hidden(repo_id=repo)]
        assert not guest.queue
        assert not guest.cursors
        await hub.stop()


async def test_each_hears_what_its_role_may(tmp_path):
    async with database(tmp_path) as db:
        ann, _, hub = await world(db)
        repo = await make_repo(db, ann, "published_public")
        roles = {"read": "reader", "triage": "reader", "write": "writer", "admin": "writer"}
        peers = {
            "owner": hub.join(None, ann),
            "reader": hub.join(None),
            "writer": hub.join(None, ann, "writer"),
        }
        for role in roles:
            one = await make_account(db, role)
            async with db.write() as tx:
                await tx.run(
                    insert(tables["collaborator"]), repo_id=repo, account_id=one, role=role, created_at=1
                )
            peers[role] = hub.join(None, one)
        for peer in peers.values():
            assert isinstance(await hub.subscribe(peer, repo, None), Subscribed)
        async with db.write(f"repo {repo}") as tx:
            for audience in ("reader", "writer", "owner"):
                await hub.announce(tx, repo, "thing.happen", audience=audience, n=audience)
        most = {"owner": 3, "reader": 1, "writer": 2}
        for name, peer in peers.items():
            level = most[roles.get(name, name)]
            assert len(await collect(peer, level)) == level
        await asyncio.sleep(0.05)
        assert not any(peer.queue for peer in peers.values())
        start = await hub.poll({repo: "owner"}, 0)
        assert [event.data["n"] for event in start[0]] == ["reader", "writer", "owner"]
        assert len((await hub.poll({repo: "reader"}, 0))[0]) == 1
        await hub.stop()


async def test_rights_that_end_without_an_event_end_too(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ALIVE", 0.05)
    monkeypatch.setattr(module, "POLL", 0.1)
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        peer = hub.join(None, ann)
        await hub.subscribe(peer, repo, None)
        async with db.write() as tx:
            await tx.run(update(tables["repo"]).values(state="suspended"))
        assert await collect(peer, 1) == [Hidden(repo_id=repo)]
        await hub.stop()


async def test_whoever_comes_back_after_the_sweep_reads_all_anew(tmp_path):
    async with database(tmp_path) as db:
        ann, repo, hub = await world(db)
        await announce(db, hub, repo, 5)
        async with db.write(f"repo {repo}") as tx:
            kept = await hub.announce(tx, repo, "ref.create", name="main")
        async with db.write() as tx:
            await tx.run(update(tables["event"]).values(created_at=1))
        assert await upkeep.sweep_live(db) == 5
        assert await upkeep.sweep_live(db) == 0
        assert isinstance(await hub.subscribe(hub.join(None, ann), repo, 1), Resync)
        assert isinstance(await hub.subscribe(hub.join(None, ann), repo, kept - 1), Subscribed)
        assert (await hub.poll({repo: "owner"}, 1))[3]
        assert not (await hub.poll({repo: "owner"}, kept))[3]
        async with db.write(f"repo {repo}") as tx:
            await tx.run(delete(tables["event"]))
        async with db.write(f"repo {repo}") as tx:
            assert await hub.announce(tx, repo, "live", n=0) > kept  # no id is used twice
        await hub.stop()
