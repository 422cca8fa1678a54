"""Channels: what travels, in which order, and to whom."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from sqlalchemy import update

from localstore.core.model import limits
from localstore.core.model.sync import Answers, Person, Refused
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.domain.upkeep import upkeep
from relay.events import peers
from relay.events.peers import Channel, Frame, Peer, Shared
from tests.relay.conftest import Relay
from tests.relay.histories import Repository
from tests.relay.live.copies import Copies, Copy, access, race


def test_an_update_reaches_every_channel_as_it_was_signed(copies: Copies) -> None:
    ann, bob, cid = copies(), copies(), copies(connected=False)
    (made,) = ann.say(ann.create("a.txt", b"one\n"), turn="turn 1")
    assert made.result == "ok"
    bob.reach(made.seq)
    (frame,) = bob.told
    assert (frame.after, frame.seq) == (made.seq - 1, made.seq)
    (sent,) = frame.updates
    assert (sent.seq, sent.replica, sent.who, sent.turn) == (made.seq, ann.replica, ann.who.handle, "turn 1")
    bob._verify(sent)
    for number in range(5):
        change = bob.edit("a.txt", bob.text("a.txt") + b"%d\n" % number)
        assert change is not None
        (answer,) = bob.say(change) if number % 2 else bob.post(change)
        assert answer.result == "ok"
        bob.reach(answer.seq)
    ann.reach(bob.seq)
    assert ann.text("a.txt") == b"one\n0\n1\n2\n3\n4\n" == bob.text("a.txt")
    ann.equals_bootstrap()
    bob.equals_bootstrap()
    assert ann.asked == bob.asked == 0, "the frames had it all"
    cid.catch_up()
    cid.equals_bootstrap()


def test_a_channel_that_was_away_gets_the_frames_it_missed(copies: Copies) -> None:
    ann, bob = copies(), copies()
    ann.say(ann.create("a.txt", b"one\n"))
    bob.reach(1)
    bob.leave()
    ann.reach(1)
    for number in range(3):
        change = ann.edit("a.txt", ann.text("a.txt") + b"%d\n" % number)
        assert change is not None
        ann.reach(ann.say(change)[0].seq)
    opened = bob.connect()
    assert opened.seq == 4
    bob.reach(4)
    assert (bob.gaps, bob.asked, [frame.seq for frame in bob.told]) == (0, 0, [1, 2, 3, 4])
    bob.equals_bootstrap()


def test_frames_that_were_swept_are_a_gap(relay: Relay, copies: Copies) -> None:
    ann, bob = copies(), copies(connected=False)
    ann.reach(ann.say(ann.create("a.txt", b"one\n"))[0].seq)

    async def age() -> int:
        async with relay.node.db.write() as tx:
            table = tables["live_frame"]
            await tx.run(update(table).values(created_at=now_ms() - limits.LIVE_FRAMES_KEPT * 1000 - 1))
        return await upkeep.delete_expired(relay.node)

    assert relay.run(age()) >= 1
    bob.connect()
    assert bob.gaps == 1
    bob.equals_bootstrap()
    ann.reach(ann.say(ann.create("b.txt", b"two\n"))[0].seq)
    bob.reach(2)
    assert bob.gaps == 1
    bob.equals_bootstrap()


def test_long_operations_stay_out_and_are_read_from_the_lane(copies: Copies) -> None:
    ann, bob = copies(), copies()
    ann.reach(ann.say(ann.create("a.txt", b"one\n"), ann.create("b.txt", b"two\n"))[-1].seq)
    bob.reach(2)
    rng = random.Random(1)
    long = bytes(rng.choices(b"abcdefgh \n", k=limits.LIVE_OPERATIONS + 1000))
    edits = [ann.edit("a.txt", long), ann.edit("b.txt", b"two\nthree\n")]
    ann.reach(ann.post(*[one for one in edits if one])[-1].seq)
    bob.reach(ann.seq)
    frame = bob.told[-1]
    assert [one.update.path for one in frame.updates] == ["b.txt"]
    assert {row.path: row.ver for row in frame.rows} == {"a.txt": 3, "b.txt": 4}
    assert bob.asked == 1
    assert bob.text("a.txt") == long
    bob.equals_bootstrap()


def test_a_frame_that_is_too_long_has_rows_alone(copies: Copies) -> None:
    ann, bob = copies(), copies()
    count = limits.LIVE_FRAME_PATHS
    files = [ann.create(f"{'x' * 200}/{'y' * 200}/{number}.txt", b"%d" % number) for number in range(count)]
    ann.reach(ann.post(*files)[-1].seq)
    bob.reach(ann.seq)
    assert [(len(frame.rows), len(frame.updates)) for frame in bob.told] == [(count, 0)]
    bob.equals_bootstrap()


def test_many_paths_at_once_are_read_by_a_bootstrap(copies: Copies) -> None:
    ann, bob = copies(), copies()
    files = [ann.create(f"{number}.txt", b"%d" % number) for number in range(limits.LIVE_FRAME_PATHS + 1)]
    ann.reach(ann.post(*files)[-1].seq)
    bob.reach(ann.seq)
    assert (bob.told, bob.gaps) == ([], 1)
    bob.equals_bootstrap()


def test_a_seal_that_lands_travels_too(relay: Relay, repo: Repository, copies: Copies) -> None:
    owner = copies(repo.owner)
    bob = copies()
    repo.seal({"a.txt": b"one\ntwo\nthree\n"})
    bob.reach(bob.bootstrap().seq)
    change = bob.edit("a.txt", b"one\ntwo\nthree\nfour\n")
    assert change is not None
    assert bob.say(change)[0].result == "ok"
    (made,) = repo.seal({"a.txt": b"ONE\ntwo\nthree\n"})
    assert repo.head() == made
    stands = owner.bootstrap().seq
    for one in (owner, bob):
        one.reach(stands)
        assert one.text("a.txt") == b"ONE\ntwo\nthree\nfour\n"
        one.equals_bootstrap()


@pytest.mark.parametrize("seed", range(3))
def test_a_listener_that_applies_frames_equals_a_bootstrap(
    relay: Relay, repo: Repository, copies: Copies, seed: int
) -> None:
    rng = random.Random(seed)
    everybody = [copies(repo.owner), copies(), copies(), copies()]
    for step in range(60):
        one = rng.choice(everybody)
        if one.socket is None:
            if rng.random() < 0.5:
                one.connect()
            continue
        if rng.random() < 0.1:
            one.leave()
            continue
        one.reach(one.bootstrap().seq)
        change = _something(rng, one, step)
        if change is None:
            continue
        answers = one.say(change) if rng.random() < 0.5 else one.post(change)
        assert [answer.result for answer in answers] == ["ok"]
    for one in everybody:
        if one.socket is None:
            one.connect()
        one.reach(one.bootstrap().seq)
        one.equals_bootstrap()
    assert sum(one.gaps for one in everybody) == 0


def _something(rng: random.Random, one: Copy, step: int):  # type: ignore[no-untyped-def]
    living = [path for path, row in one.rows.items() if row.kind != "gone"]
    texts = [path for path in living if one.rows[path].kind == "text"]
    kind = rng.choice(["create", "blob", "delete", "edit", "edit", "edit", "edit"])
    if kind == "create" or not living:
        return one.create(f"d{rng.randrange(3)}/{step}.txt", b"line %d\n" % step)
    if kind == "blob":
        return one.blob(f"b{rng.randrange(4)}.bin", rng.randbytes(50))
    if kind == "delete" and len(living) > 3:
        return one.delete(rng.choice(living))
    if not texts:
        return None
    path = rng.choice(texts)
    lines = one.text(path).split(b"\n")
    lines.insert(rng.randrange(len(lines)), rng.randbytes(20 if rng.random() < 0.9 else 9000).hex().encode())
    return one.edit(path, b"\n".join(lines))


def test_answers_come_to_the_one_who_asked(copies: Copies) -> None:
    ann, bob = copies(), copies()
    ann.say(ann.create("a.txt", b"x"))
    assert not any(isinstance(one, Answers) for one in bob.heard(0.3))


# --- rights


def test_no_frame_comes_after_the_event_that_takes_access_away(
    relay: Relay, repo: Repository, copies: Copies
) -> None:
    ann, bob = copies(repo.owner), copies()
    for number in range(5):
        ann.reach(ann.say(ann.create(f"{number}.txt", b"x"))[0].seq)
    bob.reach(5)

    relay.run(access(relay, repo.id, bob.who.id, None))
    ann.reach(ann.say(ann.create("secret.txt", b"x"))[0].seq)
    heard = bob.heard_to_the_end()
    assert [type(one) for one in heard] == [Refused]
    assert isinstance(heard[0], Refused) and heard[0].code == "not_found"
    assert ann.seq == 6 and bob.seq == 5
    assert bob.socket is not None
    bob.socket.send_updates(1, 1, bob.batch())
    assert bob.until(Refused).code == "channel_unknown"


@pytest.mark.parametrize("_", range(5))
def test_no_frame_comes_after_that_event_while_others_write(repo: Repository, copies: Copies, _: int) -> None:
    race(copies(repo.owner), copies())


def test_who_may_only_read_hears_nothing_that_is_not_sealed(
    relay: Relay, repo: Repository, copies: Copies
) -> None:
    ann, bob = copies(repo.owner), copies()
    relay.run(access(relay, repo.id, bob.who.id, "read"))
    ann.reach(ann.say(ann.create("a.txt", b"x"))[0].seq)
    heard = bob.heard_to_the_end()
    assert [(type(one), getattr(one, "code", "")) for one in heard] == [(Refused, "forbidden")]
    assert bob.socket is not None
    bob.socket.open(1, repo.id, "main", bob.replica, bob.who.key.id)
    assert bob.until(Refused).code == "forbidden"


def test_a_deleted_branch_ends_its_channels(relay: Relay, repo: Repository, copies: Copies) -> None:
    ann = copies(repo.owner)
    ann.reach(ann.say(ann.create("a.txt", b"x"))[0].seq)
    repo.push(repo.owner.key, "z.txt", b"sealed\n")
    head = repo.head()
    assert head is not None
    repo.branch("topic", head)
    side = Copy(relay, repo.owner, repo.id, branch="topic")
    side.connect()
    try:
        assert repo.http.delete(f"{repo.url}/refs/branch/topic").status_code == 204
        assert side.until(Refused).code == "not_found"
    finally:
        side.leave()


# --- readers that take nothing


def channel_of(peer: Peer, number: int = 1) -> Channel:
    names = {"repo_id": "r", "branch_id": "b", "branch": "main", "device_key_id": "k"}
    made = Channel(number, peer, replica=number, conn=f"c{number}", who="", device="", **names)
    made.waiting = None
    peer.channels[number] = made
    return made


def taken(peer: Peer) -> list[Any]:
    """All that waits for a peer."""
    found: list[Any] = []
    while peer.ready.is_set():
        found += [msgspec.json.decode(text) for text in peer.drain()]
    return found


def frame(after: int, seq: int, size: int = 10) -> Frame:
    body = {"after": after, "seq": seq, "replica": 1, "rows": [], "updates": ["x" * size]}
    return Frame("b", after, seq, msgspec.json.encode(body))


async def test_who_takes_nothing_loses_the_frames_and_is_told_of_the_gap() -> None:
    peer = Peer(None)
    slow, other = channel_of(peer), channel_of(peer, 2)
    for seq in range(1, 20):
        slow.offer(frame(seq - 1, seq, 64 * limits.KIB))
    assert peer.queued <= peers.QUEUE_BYTES + 65 * limits.KIB
    other.offer(frame(0, 1))
    found = taken(peer)
    assert [(one["type"], one["channel"], one["seq"]) for one in found] == [("live", 2, 1), ("gap", 1, 19)]
    slow.offer(frame(19, 20))
    slow.offer(frame(18, 19))
    slow.offer(frame(22, 23))
    assert [(one["type"], one["seq"]) for one in taken(peer)] == [("live", 20), ("gap", 23)]


async def test_people_are_not_lost_with_the_frames_but_told_together() -> None:
    peer = Peer(None)
    slow = channel_of(peer)
    slow.offer(frame(0, 1))
    for line in range(3):
        there = Person(conn="x", who="ann", device="d", kind="person", line=line)
        slow.meet(Shared("people", b"{}"), {"x": there, f"y{line}": None})
    for seq in range(2, peers.QUEUE + 3):
        slow.offer(frame(seq - 1, seq))
    found = taken(peer)
    assert [one["type"] for one in found] == ["gap", "people"]
    assert [one["line"] for one in found[1]["here"]] == [2]
    assert sorted(found[1]["gone"]) == ["y0", "y1", "y2"]
