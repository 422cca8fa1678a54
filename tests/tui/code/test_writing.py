"""Two devices type into one file: real agents, a real relay, real folders."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from scripts.live.devices import Device, Relay
from tests.patience import until
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay
from tests.svc.agent.pair import shared
from tests.tui.code.typist import Typist, changed


@pytest.fixture
def typists(
    devices: tuple[Device, Device], request: pytest.FixtureRequest
) -> Iterator[tuple[Typist, Typist]]:
    first, second = devices
    name = shared(devices, f"{request.node.name}.txt", "alpha beta gamma\nsecond line\n")
    found = (
        Typist(first.home, first.folder, name).opened(),
        Typist(second.home, second.folder, name).opened(),
    )
    yield found
    for typist in found:
        typist.writing.close()


def _same(typists: tuple[Typist, Typist], devices: tuple[Device, Device]) -> str:
    one, two = typists

    def equal() -> bool:
        settled = one.settled() and two.settled()
        files = [(device.folder / one.writing.path).read_bytes() for device in devices]
        return settled and one.shown == two.shown and files == [one.shown, one.shown]

    until(equal)
    return one.shown.decode()


def test_two_type_into_different_words_of_one_line(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device]
) -> None:
    one, two = typists
    for here, there in zip("FIRST", "OTHER", strict=True):
        one.type("alpha", here)
        two.type(" gamma", there)
    assert _same(typists, devices) == "FIRSTalpha betaOTHER gamma\nsecond line\n"


def test_two_type_at_one_place_and_nothing_is_lost_or_doubled(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device]
) -> None:
    one, two = typists
    for here, there in zip("abcdefgh", "ABCDEFGH", strict=True):
        one.type("second", here)
        two.type("second", there)
    text = _same(typists, devices)
    assert sorted(text) == sorted("alpha beta gamma\nabcdefghABCDEFGHsecond line\n")
    assert not list(devices[0].folder.glob("*sync-conflict*"))


def test_undo_takes_back_ones_own_and_the_cursor_of_the_other_is_told(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device]
) -> None:
    one, two = typists
    one.type("alpha", "mine")
    two.type("second", "theirs")
    two.writing.here(2, 7)
    _same(typists, devices)
    until(lambda: (one.hear(), one.people == [("ann", 2, 7)])[1])
    one.shown = changed(one.shown, one.writing.undo())
    assert _same(typists, devices) == "alpha beta gamma\ntheirssecond line\n"


def test_an_editor_saves_the_file_under_the_open_text(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device]
) -> None:
    one = typists[0]
    one.type("alpha", "typed ")
    _same(typists, devices)
    file = devices[0].folder / one.writing.path
    file.write_text(file.read_text() + "saved by an editor\n")
    one.type("beta", "more ")
    assert _same(typists, devices) == "typed alpha more beta gamma\nsecond line\nsaved by an editor\n"


def test_the_agent_is_killed_while_somebody_types(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = typists
    for name in ("SVC_HOME", "SVC_SERVER", "PYTHON_KEYRING_BACKEND"):  # of the agent that the app starts
        monkeypatch.setenv(name, devices[0].environment[name])
    one.type("alpha", "before ")
    devices[0].end_agent(signal.SIGKILL)
    one.type("alpha", "during ")
    two.type("second", "other ")
    until(lambda: (one.hear(), not one.writing.waits)[1])
    one.type("beta", "after ")
    assert _same(typists, devices) == "before during alpha after beta gamma\nother second line\n"


def test_what_is_typed_offline_is_in_the_folder_and_sent_later(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device], relay: Relay
) -> None:
    one, two = typists
    relay.kill()
    until(lambda: (one.hear(), one.writing.state == "offline")[1])
    one.type("alpha", "one ")
    two.type("alpha", "two ")
    until(lambda: (one.hear(), two.hear(), not (one.writing.waits or two.writing.waits))[2])
    assert (devices[0].folder / one.writing.path).read_text().startswith("one alpha")
    assert one.writing.queued
    relay.start()
    assert sorted(_same(typists, devices).split()) == sorted(
        ["one", "two", "alpha", "beta", "gamma", "second", "line"]
    )


def test_who_types_is_told_why_the_server_takes_nothing(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device]
) -> None:
    one = typists[0]
    devices[0].svc("repo", "protect", "set", "main", "--require-review")
    one.type("alpha", "kept ")
    until(lambda: (one.hear(), "protected by the rule main" in one.writing.refused)[1])
    assert one.writing.queued
    until(lambda: (devices[0].folder / one.writing.path).read_text().startswith("kept alpha"))
    devices[0].svc("repo", "protect", "clear", "main", "--yes")
    until(lambda: (one.hear(), not (one.writing.refused or one.writing.queued))[1])
    assert _same(typists, devices).startswith("kept alpha")


def test_what_cannot_be_written_says_why(devices: tuple[Device, Device], relay: Relay) -> None:
    first = devices[0]
    first.svc("watch", "--detach")
    first.wait_for("live")
    (first.folder / "bytes.bin").write_bytes(b"\x00\x01\x02")
    (first.folder / "large.txt").write_text("a line of text\n" * 100_000)
    first.wait_for("live")
    for path, why in (
        ("no.txt", "is not in the folder"),
        ("bytes.bin", "not a text"),
        ("large.txt", "1 MiB"),
    ):
        typist = Typist(first.home, first.folder, path)
        until(lambda typist=typist: (typist.hear(), typist.said)[1])  # type: ignore[misc]
        assert why in typist.said[0]
        typist.writing.close()


def test_who_loses_the_right_to_write_is_told_so(
    typists: tuple[Typist, Typist], devices: tuple[Device, Device]
) -> None:
    one = typists[0]
    one.type("alpha", "kept ")
    _same(typists, devices)
    devices[0].svc("repo", "archive", "--yes")
    try:
        one.type("beta", "more ")
        until(lambda: (one.hear(), one.said and one.said[-1].startswith("ended: "))[1])
        assert "is archived, or you may only read it" in one.said[-1]
    finally:
        devices[0].svc("repo", "unarchive", "--yes")
