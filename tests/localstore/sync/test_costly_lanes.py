"""What a device does with lanes that would keep the text library busy: it leaves them out and goes on."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any

import msgspec
import pytest

from localstore.core.encoding import b64u
from localstore.core.errors import ServerMisbehaved
from localstore.core.model import limits
from localstore.core.model.live import LanesRequest, LaneState, LaneStates
from localstore.sync.compose import compose
from localstore.sync.remote import connect
from localstore.sync.transfer.send import send
from localstore.sync.transfer.transport import Transport
from tests.localstore.core.lane.test_load_cost import across
from tests.localstore.core.updates import encode
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

EASED = 16  # the limit is so much lower here, where each look at it would take half a second
COSTLY = b64u(encode(across(1000)))


class Lying:
    """A transport that sends costly states of `paths`."""

    def __init__(self, inner: Transport, paths: Set[str]) -> None:
        self._inner, self._paths = inner, paths
        self.told = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def lanes(self, request: LanesRequest) -> LaneStates:
        found = self._inner.lanes(request)
        return msgspec.structs.replace(found, lanes=[self._bent(state) for state in found.lanes])

    def _bent(self, state: LaneState) -> LaneState:
        if state.path in self._paths:
            self.told += 1
            return msgspec.structs.replace(state, state=COSTLY)
        return state


def epochs(relay: ModelRelay, begin: bool) -> None:
    """Whether a seal begins new epochs."""
    relay.random.random = lambda: float(begin)  # type: ignore[method-assign]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Place, Place]:
    monkeypatch.setattr(limits, "LANE_WORK", limits.LANE_WORK // EASED)
    relay = ModelRelay()
    epochs(relay, begin=False)
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    for name in ("a.txt", "b.txt", "c.txt"):
        ann.write(name, "one\ntwo\nthree\n")
    ann.push()
    bob.pull()
    return ann, bob


def lie(place: Place, paths: Set[str] = frozenset()) -> list[Lying]:
    made: list[Lying] = []

    def wrap(transport: Transport) -> Any:
        made.append(Lying(transport, paths))
        return made[-1]

    place.wrap = wrap
    return made


def edit_live(place: Place, name: str, text: str) -> None:
    """An edit that the branch has and no seal."""
    place.write(name, text)
    with place.device() as device:
        connect(device)
        compose(device, device.scan(), True)
        assert send(device).accepted == [name]


def test_a_costly_lane_is_named_and_the_others_arrive(people: tuple[Place, Place]) -> None:
    ann, bob = people
    for name in ("a.txt", "b.txt", "c.txt"):
        edit_live(ann, name, "one\ntwo\nthree, by ann\n")
    lies = lie(bob, paths={"b.txt"})
    bob.write("b.txt", "one, by bob\ntwo\nthree\n")
    with pytest.raises(ServerMisbehaved, match=r"invalid edits of b\.txt .*too long"):
        bob.pull("merge")
    assert sum(one.told for one in lies) == 1
    assert bob.read("b.txt") == b"one, by bob\ntwo\nthree\n"
    assert bob.read("a.txt") == bob.read("c.txt") == b"one\ntwo\nthree, by ann\n"
    bob.wrap = lambda transport: transport
    bob.pull("merge")
    assert bob.read("b.txt") == b"one, by bob\ntwo\nthree, by ann\n"


def test_an_edit_of_an_old_epoch_is_merged_without_asking_for_its_end(people: tuple[Place, Place]) -> None:
    ann, bob = people
    edit_live(ann, "a.txt", "one\ntwo\nthree, by ann\n")
    epochs(ann.relay, begin=True)
    ann.push()
    lies = lie(bob, paths={"a.txt"})
    bob.write("a.txt", "one, by bob\ntwo\nthree\n")
    bob.pull("merge")
    assert sum(one.told for one in lies) == 0
    assert bob.read("a.txt") == b"one, by bob\ntwo\nthree, by ann\n"
    bob.push()
    assert bob.relay.tree("main")["a.txt"] == bob.read("a.txt")
