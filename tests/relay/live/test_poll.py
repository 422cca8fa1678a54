"""Frames by polling, for those whose sockets fail."""

from __future__ import annotations

import time
from threading import Timer

import msgspec

from localstore.core.model.sync import Live, Opened, People, PollChannel, Refused, UserPlace
from tests.relay.histories import Repository
from tests.relay.live.copies import Copies, Copy


def poll_channel(copy: Copy, here: bool = False) -> PollChannel:
    return PollChannel(
        channel=3,
        repo_id=copy.repo_id,
        branch="main",
        replica=copy.replica,
        device_key_id=copy.who.key.id,
        since=copy.seq,
        here=UserPlace(path="p.txt") if here else None,
    )


def test_a_poll_answers_the_same_frames(copies: Copies, repo: Repository) -> None:
    ann, bob = copies(repo.owner), copies(connected=False)
    ann.reach(ann.say(ann.create("a.txt", b"one\n"))[0].seq)
    stands = bob.api.sync.poll([repo.id], None).next
    began = time.monotonic()
    answer = bob.api.sync.poll([repo.id], stands, [poll_channel(bob)], wait=20)
    assert time.monotonic() - began < 20, "there is something to say"
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
