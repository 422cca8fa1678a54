"""Two relays on one PostgreSQL: frames and people cross, and access that is taken away at one ends both."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from localstore.core.model.sync import Live, People, Refused
from tests.relay.conftest import Account, Relay, two_relays
from tests.relay.histories import Repository, create
from tests.relay.live.copies import Copy, access, join, race


@pytest.fixture(scope="module")
def relays(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Relay, Relay]]:
    with two_relays(tmp_path_factory.mktemp("two")) as found:
        yield found


@pytest.fixture
def pair(relays: tuple[Relay, Relay]) -> Iterator[tuple[Repository, Copy, Copy]]:
    """A repository, a copy of its owner at one relay and one of somebody who may write at the other."""
    here, there = relays
    ann: Account = here.account(f"u{secrets.token_hex(6)}")
    bob = there.account(f"u{secrets.token_hex(6)}")
    repo = create(here.client(ann), ann, f"r{secrets.token_hex(4)}")
    here.run(join(here, repo.id, bob.id))
    copies = [Copy(here, ann, repo.id), Copy(there, bob, repo.id)]
    for one in copies:
        one.connect()
    yield repo, copies[0], copies[1]
    for one in copies:
        one.leave()


def test_frames_cross_in_order_and_as_they_were_signed(pair: tuple[Repository, Copy, Copy]) -> None:
    _, ann, bob = pair
    ann.reach(ann.say(ann.create("a.txt", b"one\n"))[0].seq)
    bob.reach(1)
    for number in range(20):
        one, other = (ann, bob) if number % 3 else (bob, ann)
        change = one.edit("a.txt", one.text("a.txt") + b"%d\n" % number)
        assert change is not None
        (answer,) = one.say(change) if number % 2 else one.post(change)
        assert answer.result == "ok"
        one.reach(answer.seq)
        other.reach(answer.seq)
    assert ann.text("a.txt") == bob.text("a.txt")
    assert ann.asked == bob.asked == ann.gaps == bob.gaps == 0
    ann.equals_bootstrap()
    bob.equals_bootstrap()


def test_people_cross_and_are_known_to_who_comes_later(pair: tuple[Repository, Copy, Copy]) -> None:
    _, ann, bob = pair
    ann.here("a.txt", 5, turn="turn 1")
    while not bob.people:
        bob.until(People)
    (there,) = bob.people.values()
    assert (there.who, there.kind, there.path, there.line) == (ann.who.handle, "agent", "a.txt", 5)
    bob.leave()
    bob.people = {}
    bob.connect()  # the first of this process on the branch, again
    while not bob.people:
        bob.until(People)
    assert list(bob.people) == [there.conn]
    ann.leave()
    while bob.people:
        bob.until(People)


def test_access_that_is_taken_away_at_one_relay_ends_the_channel_at_the_other(
    pair: tuple[Repository, Copy, Copy],
) -> None:
    repo, ann, bob = pair
    ann.reach(ann.say(ann.create("a.txt", b"x"))[0].seq)
    bob.reach(1)
    ann.relay.run(access(ann.relay, repo.id, bob.who.id, None))
    ann.reach(ann.say(ann.create("secret.txt", b"x"))[0].seq)
    heard = bob.heard_to_the_end()
    assert [one.code for one in heard if isinstance(one, Refused)] == ["not_found"]
    assert not any(isinstance(one, Live) for one in heard)


def test_no_frame_comes_after_that_event_while_others_write(pair: tuple[Repository, Copy, Copy]) -> None:
    _, ann, bob = pair
    race(ann, bob)
