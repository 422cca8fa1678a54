"""Channels: what travels, in which order, to whom, and what is refused."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Iterator
from threading import Timer

import msgspec
import pytest
from sqlalchemy import bindparam, delete, insert, update

from localstore.core import limits
from localstore.core.errors import SvcError, TooLarge
from localstore.core.model.sync import Answers, Here, Live, Opened, People, PollChannel, Refused
from relay.base.clock import now_ms
from relay.db.schema import tables
from relay.events import people
from relay.service import upkeep
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create
from tests.relay.live.copies import Copy

Copies = Callable[..., Copy]


@pytest.fixture
def repo(relay: Relay, account: Callable[..., Account]) -> Repository:
    owner = account()
    return create(relay.client(owner), owner, f"r{secrets.token_hex(4)}")


@pytest.fixture
def copies(relay: Relay, repo: Repository, account: Callable[..., Account]) -> Iterator[Copies]:
    """`copies()`: a connected copy of somebody who may write."""
    made: list[Copy] = []

    def make(who: Account | None = None, connected: bool = True) -> Copy:
        if who is None:
            who = account()
            relay.run(join(relay, repo.id, who.id))
        copy = Copy(relay, who, repo.id)
        made.append(copy)
        if connected:
            copy.connect()
        return copy

    yield make
    for one in made:
        one.leave()


async def join(relay: Relay, repo_id: str, account_id: str, role: str = "write") -> None:
    async with relay.node.db.write() as tx:
        values = {"repo_id": repo_id, "account_id": account_id, "role": role, "created_at": now_ms()}
        await tx.many(insert(tables["collaborator"]), [values])


async def access(relay: Relay, repo_id: str, account_id: str, role: str | None) -> None:
    """Give or take a role, with its event, as the routes of access do."""
    table = tables["collaborator"]
    mine = (table.c.repo_id == bindparam("repo")) & (table.c.account_id == bindparam("account"))
    async with relay.node.db.write(f"repo {repo_id}") as tx:
        if role is None:
            await tx.run(delete(table).where(mine), repo=repo_id, account=account_id)
        else:
            values = {"repo": repo_id, "account": account_id, "to": role}
            await tx.run(update(table).where(mine).values(role=bindparam("to")), **values)
        await relay.node.hub.announce(tx, repo_id, "access.change", account=account_id)


# --- what travels


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
        return await upkeep.sweep(relay.node)

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
    files = [ann.create(f"{number:03}-{'x' * 180}.txt", b"%d" % number) for number in range(200)]
    ann.reach(ann.post(*files)[-1].seq)
    bob.reach(ann.seq)
    assert [(len(frame.rows), len(frame.updates)) for frame in bob.told] == [(200, 0)]
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
    heard = list(bob.heard(0.5))
    assert [type(one) for one in heard] == [Refused]
    assert isinstance(heard[0], Refused) and heard[0].code == "not_found"
    assert ann.seq == 6 and bob.seq == 5
    assert bob.socket is not None
    bob.socket.send_updates(1, 1, bob.batch())
    assert bob.until(Refused).code == "channel_unknown"


def test_who_may_only_read_hears_nothing_that_is_not_sealed(
    relay: Relay, repo: Repository, copies: Copies
) -> None:
    ann, bob = copies(repo.owner), copies()
    relay.run(access(relay, repo.id, bob.who.id, "read"))
    ann.reach(ann.say(ann.create("a.txt", b"x"))[0].seq)
    heard = list(bob.heard(0.5))
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


# --- what is refused


def test_what_is_no_business_of_a_channel_is_refused_by_code(
    relay: Relay, repo: Repository, copies: Copies, account: Callable[..., Account]
) -> None:
    ann, bob = copies(repo.owner), copies()
    stranger = account()
    line = ann.socket
    assert line is not None

    def refusal(**named: object) -> tuple[int, str]:
        wish = {
            "repo_id": repo.id,
            "branch": "main",
            "replica": ann.replica,
            "device_key_id": ann.who.key.id,
            **named,
        }
        line.open(9, **wish)  # type: ignore[arg-type]
        told = ann.until(Refused)
        return told.channel, told.code

    assert refusal(branch="nothing") == (9, "not_found")
    assert refusal(branch="") == (9, "not_found")
    assert refusal(repo_id="0" * 20) == (9, "not_found")
    assert refusal(repo_id="../../etc") == (9, "not_found")
    assert refusal(replica=bob.replica) == (9, "replica_unknown")
    assert refusal(replica=0) == (9, "invalid")
    assert refusal(device_key_id=bob.who.key.id) == (9, "forbidden")
    assert refusal(device_key_id=stranger.key.id) == (9, "forbidden")
    line.send_updates(9, 4, ann.batch())
    told = ann.until(Refused)
    assert (told.channel, told.code, told.id) == (9, "channel_unknown", 4)
    line.send_updates(1, 5, bob.batch(bob.create("b.txt", b"x")))
    told = ann.until(Refused)
    assert (told.channel, told.code, told.id) == (1, "invalid", 5)
    line.send_here(9, "a.txt")
    assert ann.until(Refused).code == "channel_unknown"
    for path in ("../x", "a/../b", "/etc", "a\nb", "x" * 1024 + "/y"):
        line._socket.send(json.dumps({"type": "here", "channel": 1, "path": path[:1024]}))
        assert ann.until(Refused).channel == 1
    assert ann.say(ann.create("a.txt", b"fine"))[0].result == "ok", "the socket goes on"
    bob.reach(1)


def test_an_update_that_was_not_signed_by_the_device_is_refused(copies: Copies) -> None:
    ann, bob = copies(), copies()
    made = msgspec.structs.replace(ann.create("a.txt", b"x"), path="b.txt")
    assert ann.socket is not None
    ann.socket.send_updates(1, 3, ann.batch(made))
    assert (told := ann.until(Refused)).code == "signature_invalid" and told.id == 3
    assert list(bob.heard(0.2)) == []


def test_a_repeated_update_has_its_first_answer_and_is_told_once(copies: Copies) -> None:
    ann, bob = copies(), copies()
    made = ann.create("a.txt", b"x")
    first = ann.say(made)
    assert ann.say(made) == first == ann.post(made)
    bob.reach(1)
    assert [one for one in bob.heard(0.2) if isinstance(one, Live)] == []


def test_a_socket_has_so_many_channels(copies: Copies, repo: Repository) -> None:
    ann = copies(repo.owner)
    assert ann.socket is not None
    for number in range(2, limits.CHANNELS + 1):
        ann.socket.open(number, repo.id, "main", ann.replica, ann.who.key.id)
    for _ in range(2, limits.CHANNELS + 1):
        ann.until(Opened)
    ann.socket.open(9999, repo.id, "main", ann.replica, ann.who.key.id)
    assert (told := ann.until(Refused)).channel == 9999 and told.code == "invalid"
    ann.socket.close_channel(7)
    ann.socket.open(9999, repo.id, "main", ann.replica, ann.who.key.id)
    assert ann.until(Opened).channel == 9999
    ann.socket.open(9999, repo.id, "main", ann.replica, ann.who.key.id)
    assert ann.until(Opened).channel == 9999, "a number may be opened anew"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"type":"open","channel":1}', "invalid"),
        (
            '{"type":"open","channel":-1,"repo_id":"a","branch":"b","replica":1,"device_key_id":"k"}',
            "invalid",
        ),
        ('{"type":"updates","channel":1,"id":1,"batch":{"device_key_id":"k"}}', "invalid"),
        ('{"type":"updates","channel":1', "malformed"),
        ('{"type":"here","channel":1,"path":"a\\u0000b"}', "invalid"),
        ('{"type":"here","channel":1,"state":"dance"}', "invalid"),
        ('{"type":"here","channel":1,"line":-4}', "invalid"),
        ('{"type":"here","channel":1,"turn":"%s"}' % ("x" * 300), "invalid"),
        ('{"type":"live","channel":1,"after":0,"seq":9,"rows":[],"updates":[]}', "invalid"),
        ('{"type":"close","channel":1,"x":"%s"}' % ("x" * 5000), "too_large"),
    ],
)
def test_half_a_message_ends_the_socket_with_the_reason(copies: Copies, text: str, code: str) -> None:
    ann = copies()
    assert ann.socket is not None
    ann.socket._socket.send(text)
    with pytest.raises(SvcError) as caught:
        list(ann.heard(5))
    assert caught.value.code == code


def test_a_batch_that_is_too_long_for_a_socket_is_not_sent(copies: Copies) -> None:
    ann = copies()
    many = [ann.create(f"{number}.txt", b"%d" % number) for number in range(200)]
    assert ann.socket is not None
    with pytest.raises(TooLarge):
        ann.socket.send_updates(1, 1, ann.batch(*many))
    assert {answer.result for answer in ann.post(*many)} == {"ok"}


# --- people


def test_people_see_each_other_come_move_and_go(copies: Copies) -> None:
    ann, bob = copies(), copies()
    ann.here("a.txt", 3, 7, "edit")
    while not bob.people:
        bob.until(People)
    (there,) = bob.people.values()
    assert (there.who, there.device, there.kind) == (ann.who.handle, "test device", "person")
    assert (there.path, there.line, there.col, there.state) == ("a.txt", 3, 7, "edit")
    bob.here("b.txt", turn="turn 9")
    while not ann.people:
        ann.until(People)
    (other,) = ann.people.values()
    assert (other.kind, other.path) == ("agent", "b.txt")
    late = copies()
    assert {one.who for one in late.people.values()} == {ann.who.handle, bob.who.handle}
    ann.leave()
    while there.conn in bob.people:
        bob.until(People)
    assert bob.people == {}, "nobody is told of themselves"


def test_what_is_said_too_often_is_told_once(copies: Copies) -> None:
    ann, bob = copies(), copies()
    began, told = time.monotonic(), 0
    for line in range(1, 51):
        ann.here("a.txt", line)
    while not bob.people or next(iter(bob.people.values())).line != 50:
        bob.until(People)
        told += 1
    assert told <= 2 + 5 * (time.monotonic() - began + 0.2)


def test_who_says_nothing_any_more_is_gone(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "HERE_LIVES", 0.3)
    ann, bob = copies(), copies()
    ann.here("a.txt")
    while not bob.people:
        bob.until(People)
    while bob.people:
        bob.until(People)


# --- polling


def poll_channel(copy: Copy, here: bool = False) -> PollChannel:
    return PollChannel(
        channel=3,
        repo_id=copy.repo_id,
        branch="main",
        replica=copy.replica,
        device_key_id=copy.who.key.id,
        since=copy.seq,
        here=Here(channel=3, path="p.txt") if here else None,
    )


def test_a_poll_answers_the_same_frames(copies: Copies, repo: Repository) -> None:
    ann, bob = copies(repo.owner), copies(connected=False)
    ann.reach(ann.say(ann.create("a.txt", b"one\n"))[0].seq)
    stands = bob.api.sync.poll([repo.id], None).next
    began = time.monotonic()
    answer = bob.api.sync.poll([repo.id], stands, [poll_channel(bob)], wait=20)
    assert time.monotonic() - began < 10, "there is something to say"
    assert [type(one) for one in answer.frames] == [Opened, Live, People]
    for one in answer.frames:
        bob.take(one)
    bob.equals_bootstrap()
    change = ann.edit("a.txt", b"one\ntwo\n")
    assert change is not None
    sent = Timer(0.3, lambda: ann.post(change))
    sent.start()
    answer = bob.api.sync.poll([repo.id], answer.next, [poll_channel(bob, here=True)], wait=20)
    sent.join()
    while not any(isinstance(one, Live) for one in answer.frames):
        answer = bob.api.sync.poll([repo.id], answer.next, [poll_channel(bob)], wait=20)
    for one in answer.frames:
        bob.take(one)
    assert bob.text("a.txt") == b"one\ntwo\n"
    bob.equals_bootstrap()
    while not ann.people:
        ann.until(People)
    assert [one.path for one in ann.people.values()] == ["p.txt"]


def test_a_poll_with_nothing_to_say_waits(copies: Copies, repo: Repository) -> None:
    bob = copies(connected=False)
    stands = bob.api.sync.poll([repo.id], None).next
    began = time.monotonic()
    answer = bob.api.sync.poll([repo.id], stands, [poll_channel(bob)], wait=1)
    assert time.monotonic() - began >= 1
    assert [type(one) for one in answer.frames] == [Opened, People] and answer.events == []
    wrong = msgspec.structs.replace(poll_channel(bob), branch="nothing")
    answer = bob.api.sync.poll([], None, [wrong], wait=20)
    assert [type(one) for one in answer.frames] == [Refused]


def test_answers_come_to_the_one_who_asked(copies: Copies) -> None:
    ann, bob = copies(), copies()
    ann.say(ann.create("a.txt", b"x"))
    assert not any(isinstance(one, Answers) for one in bob.heard(0.3))
