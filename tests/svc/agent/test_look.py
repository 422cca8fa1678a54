"""A branch that is looked at without a folder, through a real agent and a real relay."""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from localstore.agent.talk import BranchEvent, Conversation, Request
from localstore.home import Home
from scripts.live.devices import Device, Relay
from svc.agent.start import start
from tests.patience import PATIENCE
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay


class Watcher:
    """A look at main from the first device."""

    def __init__(self, device: Device, repo_id: str, server: str) -> None:
        self.request = Request("look", server=server, repo=repo_id, branch="main")
        self._device, self._seen = device, queue.SimpleQueue[BranchEvent]()
        self._past: list[BranchEvent] = []
        self._conversation = self._start()
        assert self._conversation.ask(self.request).error == ""
        threading.Thread(target=self._listen, daemon=True).start()

    def _start(self) -> Conversation:
        with pytest.MonkeyPatch.context() as patch:
            for name in list(os.environ):
                if name.startswith("SVC_"):
                    patch.delenv(name)
            for name, value in self._device.environment.items():
                patch.setenv(name, value)
            return start(Home(self._device.home))

    def _listen(self) -> None:
        for one in self._conversation.sights():
            self._seen.put(one)

    def until(self, what: Callable[[BranchEvent], bool]) -> BranchEvent:
        """The first that fits, once. Those of other events stay to be asked for: events of different kinds
        come in any order."""
        end = time.monotonic() + PATIENCE
        at = 0
        while True:
            if at == len(self._past):
                self._past.append(self._seen.get(timeout=max(0.01, end - time.monotonic())))
            one = self._past[at]
            at += 1
            if what(one):
                self._past = [other for other in self._past[:at] if other.event != one.event] + self._past[
                    at:
                ]
                return one

    def close(self) -> None:
        self._conversation.close()


@pytest.fixture
def watcher(devices: tuple[Device, Device], relay: Relay) -> Iterator[Watcher]:
    first, second = devices
    second.svc("watch", "--detach")
    second.wait_for("live")
    repo_id = json.loads(first.svc("repo", "view", "--json", "id"))["id"]
    watcher = Watcher(first, repo_id, relay.server)
    yield watcher
    watcher.close()


def test_it_sees_saves_people_and_seals(devices: tuple[Device, Device], watcher: Watcher) -> None:
    _, second = devices
    assert watcher.until(lambda seen: seen.event == "light" and seen.state == "live")
    whole = watcher.until(lambda seen: seen.event == "frontier")
    assert (whole.paths, bool(whole.head)) == ([], True)

    text = (second.folder / "a.txt").read_text()
    (second.folder / "a.txt").write_text(text.replace("line 6", "line six"))
    changed = watcher.until(lambda seen: seen.event == "changed").paths[0]
    assert (changed.path, changed.kind, changed.new, changed.by) == ("a.txt", "text", False, ["ann"])
    person = watcher.until(lambda seen: bool(seen.people and seen.people[0].path)).people[0]
    assert (person.who, person.path, person.line, person.kind) == ("ann", "a.txt", 7, "person")

    (second.folder / "a.txt").write_text(text)
    assert watcher.until(lambda seen: seen.event == "changed").same == ["a.txt"]

    (second.folder / "b.txt").write_text("new\n")
    assert watcher.until(lambda seen: seen.event == "changed").paths[0].new
    second.svc("push", "-m", "Two")
    sealed = watcher.until(lambda seen: seen.event == "frontier" and seen.head != whole.head)
    assert sealed.paths == []


def test_others_see_who_looks(devices: tuple[Device, Device], watcher: Watcher) -> None:
    first, second = devices
    watcher.until(lambda seen: seen.event == "frontier")
    end = time.monotonic() + PATIENCE
    people: list[dict[str, object]] = []
    while not people:
        assert time.monotonic() < end
        with Conversation(first.home) as agent:
            here = Request("here", server=watcher.request.server, repo=watcher.request.repo, branch="main")
            here.path, here.line = "a.txt", 3
            assert agent.ask(here).error == ""
        time.sleep(0.2)
        people = [one for one in second.state()["people"] if one.get("path") == "a.txt"]
    assert (people[0]["line"], people[0]["who"]) == (3, "ann")


@pytest.mark.parametrize("server", ["", "https://elsewhere.example"])
def test_a_look_names_a_server_with_a_session(watcher: Watcher, server: str) -> None:
    with watcher._start() as agent:
        reply = agent.ask(Request("look", server=server, repo="r", branch="main"))
        assert reply.error


def test_what_may_not_be_looked_at_ends_with_a_reason(watcher: Watcher) -> None:
    with watcher._start() as agent:
        unknown = "00000000-0000-7000-8000-000000000000"
        assert not agent.ask(
            Request("look", server=watcher.request.server, repo=unknown, branch="main")
        ).error
        *_, last = agent.sights()
        assert last.event == "ended" and last.detail
