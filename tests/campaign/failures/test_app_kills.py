"""The app dies on every screen, and loses its network there: nothing is lost, what was seen opens again."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import depth
from tests.campaign.app_screens import STOPS, App, furnish
from tests.campaign.cable import Cable
from tests.campaign.conftest import Place, handle_of
from tests.campaign.world import Machine, Node

SVC = [sys.executable, "-m", "svc"]
FEW = ("issue", "settings", "palette", "sync")
SCREENS = {name: stop for name, stop in STOPS.items() if depth.DEEP or name in FEW}


@pytest.fixture(scope="module")
def _road(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cable, Node]]:
    cable = Cable()
    node = Node(tmp_path_factory.mktemp("app"), cable.address)
    cable.upstream = node.port
    yield cable, node
    cable.close()
    node.close()


@pytest.fixture
def road(_road: tuple[Cable, Node]) -> tuple[Cable, Node]:
    """The same relay for all tests, and the cable as it was."""
    cable, _ = _road
    cable.silent = cable.refuse_sockets = False
    cable.mend()
    return _road


@pytest.fixture
def place(road: tuple[Cable, Node], tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    found = Place(tmp_path, road[1], handle_of(request))
    furnish(found)
    return found


def queue(machine: Machine) -> list[str]:
    found: list[dict[str, str]] = machine.ok("queue", "list", "--json", "action").json()
    return [one["action"] for one in found]


def shown_queue(app: App) -> list[str]:
    """What the screen of the queue lists."""
    app.type("s")
    app.expect("Connection")
    return re.findall(r"^\W*⋯ (.+?)  \S", app.terminal.text, re.MULTILINE)


def look_at_all(machine: Machine) -> None:
    """Visit the screens once, with the network."""
    app = App(machine, SVC)
    for stop in SCREENS.values():
        app.go(stop)
        app.back()
    app.leave()


def test_killed_on_a_screen_nothing_is_lost(road: tuple[Cable, Node], place: Place) -> None:
    cable, _ = road
    look_at_all(place.ann)
    cable.cut()
    waiting = 0
    for name, stop in SCREENS.items():
        app = App(place.ann, SVC)
        app.go(stop)
        for keys in stop.act:
            app.type(keys)
        waiting += stop.queues
        if stop.queues:
            app.expect(f"⋯ {waiting} queued")
        if stop.kept:
            app.expect(stop.kept)
        app.terminal.kill()
        assert len(queue(place.ann)) == waiting, name
        app = App(place.ann, SVC)
        app.expect("○ offline")
        app.go(stop)
        if stop.kept:
            app.expect(stop.kept)
        app.back()
        assert shown_queue(app) == queue(place.ann), name
        app.leave()
    cable.mend()
    expected = queue(place.ann)
    assert len(expected) == waiting == sum(stop.queues for stop in SCREENS.values())
    place.ann.ok("queue", "retry")
    assert queue(place.ann) == []
    comments = place.ann.ok("repo", "api", "repos/{id}/issues/1/comments").json()["items"]
    assert [one["body"] for one in comments] == ["Later"]


def test_the_network_goes_and_comes_on_every_screen(road: tuple[Cable, Node], place: Place) -> None:
    cable, _ = road
    look_at_all(place.ann)
    app = App(place.ann, SVC)
    for name, stop in SCREENS.items():
        app.go(stop)
        cable.cut()
        typing = name in ("find", "role", "palette", "repositories")
        if not typing:
            app.type("r")
            app.expect("○ offline")
        app.expect(stop.words)
        for keys in stop.act if stop.queues else ():
            app.type(keys)
        if stop.queues:
            app.expect("⋯ 1 queued")
            assert len(queue(place.ann)) == 1
        cable.mend()
        app.back()
        app.type("r")
        app.expect("● ")
        if stop.queues:
            app.type("s")
            app.type("u")
            app.expect("nothing waits")
            assert queue(place.ann) == [], name
            app.back()
    app.leave()


def test_the_light_follows_the_network_without_a_key(road: tuple[Cable, Node], place: Place) -> None:
    cable, _ = road
    app = App(place.ann, SVC)
    app.go(STOPS["overview"])
    app.expect("● live")
    for _ in range(2):
        cable.cut()
        assert app.terminal.shows("○ offline", 5.0), app.terminal.text
        cable.mend()
        assert app.terminal.shows("● live", 5.0), app.terminal.text
    app.leave()


def test_where_no_socket_opens_it_polls(road: tuple[Cable, Node], place: Place) -> None:
    cable, _ = road
    cable.refuse_sockets = True
    app = App(place.ann, SVC, colours=True)
    app.expect("◐ polling")
    sign = next(cell for cell in app.terminal.screen.buffer[0].values() if cell.data == "◐")
    assert sign.blink and sign.fg in ("blue", "brightblue")
    app.go(STOPS["issues"])
    place.ann.ok("issue", "create", "-t", "It crashes", "-b", "Now and then")
    app.expect("It crashes")  # without a key
    assert "◐ polling" in app.terminal.text
    cable.cut()
    app.expect("○ offline")
    cable.mend()
    app.expect("◐ polling")
    cable.refuse_sockets = False
    app.expect("● live")
    app.leave()


def test_a_silent_server_writes_nothing_over_the_app(road: tuple[Cable, Node], place: Place) -> None:
    cable, _ = road
    App(place.ann, SVC).leave()
    cable.cut()
    cable.silent = True
    cable.mend()
    app = App(place.ann, SVC)
    app.expect("○ offline")
    assert b"still waiting" not in app.terminal.said
    app.leave()


OPEN, PAGE, LINE = 4_000, 3_000, 500  # bytes at 80 × 24


def test_bytes_and_sizes_on_every_screen(road: tuple[Cable, Node], place: Place) -> None:
    look_at_all(place.ann)
    app = App(place.ann, SVC)
    over: list[tuple[str, str, int]] = []
    for name, stop in SCREENS.items():
        for key in stop.keys:
            over.append((name, f"open {key!r}", app.costs(key) - OPEN))
        app.expect(stop.words)
        if name not in ("find", "role", "palette", "repositories"):
            for key, most in (("j", LINE), ("k", LINE), ("\x04", PAGE), ("\x15", PAGE)):
                over.append((name, repr(key), app.costs(key) - most))
        assert app.terminal.read(1.0, 1.0) == 0, name
        for width, height in ((200, 50), (60, 15), (80, 24)):
            app.terminal.resize(width, height)
            app.costs("")
            assert "Traceback" not in app.terminal.text
        app.expect(stop.words)
        app.back()
    app.leave()
    assert [one for one in over if one[2] > 0] == []
