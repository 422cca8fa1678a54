"""Editor plugins: real agents, a real relay, real folders, and the socket as the guide describes it."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.agent.talk import Conversation, Request
from scripts.live.devices import Device
from svc.agent.editing import TYPED_EACH
from tests.patience import until
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay
from tests.svc.agent.pair import shared
from tests.svc.agent.plugin import Plugin
from tests.tui.code.typist import Typist

FIRST = "alpha beta gamma\nsecond 😀 line\n"


@pytest.fixture
def name(devices: tuple[Device, Device], request: pytest.FixtureRequest) -> str:
    """A text that both devices have, in folders that are watched."""
    return shared(devices, f"{request.node.name}.txt", FIRST)


@pytest.fixture
def plugins(devices: tuple[Device, Device], name: str) -> Iterator[tuple[Plugin, Plugin]]:
    first, second = (Plugin(device.home, device.folder, name).opened() for device in devices)
    yield first, second
    first.close()
    second.close()


def _same(plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str) -> str:
    one, two = plugins

    def equal() -> bool:
        settled = one.settled() and two.settled()
        files = [(device.folder / name).read_text() for device in devices]
        return settled and one.text == two.text and files == [one.text, one.text]

    until(equal, "both are the same")
    assert one.text is not None
    return one.text


def test_two_type_into_one_line_at_once(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, two = plugins
    one.type("alpha", "FIRST")
    two.type(" gamma", "OTHER")
    assert _same(plugins, devices, name) == "FIRSTalpha betaOTHER gamma\nsecond 😀 line\n"
    assert not list(devices[0].folder.glob("*sync-conflict*"))


def test_words_of_two_at_one_place_are_neither_lost_nor_doubled(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    dice = random.Random(4)
    words = []
    for number in range(60):
        plugin = plugins[dice.randrange(2)]
        words.append(f"w{number} ")
        plugin.splice((plugin.text or "").index("second"), 0, words[-1])
        if dice.random() < 0.5:
            plugin.hear()
    text = _same(plugins, devices, name)
    assert [text.count(word) for word in words] == [1] * len(words)


def test_offsets_count_in_the_unit_that_was_named(devices: tuple[Device, Device], name: str) -> None:
    first, _ = devices
    file = first.folder / name
    for unit, mark, codec, size in (("bytes", "!", "utf-8", 1), ("utf16", "?", "utf-16-le", 2)):
        plugin = Plugin(first.home, first.folder, name, unit).opened()
        text = plugin.text or ""
        at = len(text[: text.index(" line")].encode(codec)) // size
        plugin.send(n=1, splices=[[at, 0, mark]])
        expected = text.replace(" line", f"{mark} line")
        until(lambda expected=expected: file.read_text() == expected)  # type: ignore[misc]
        file.write_text(expected + "more\n")
        end = len(expected.encode(codec)) // size

        def told(plugin: Plugin = plugin) -> list[list[int | str]]:
            plugin.hear()
            return [one["splices"] for one in plugin.said if one.get("event") == "change"]

        assert until(told) == [[[end, 0, "more\n"]]]
        plugin.close()


def test_a_splice_of_all_the_text_moves_no_word_of_others(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, two = plugins
    two.type("beta", "OTHER ")
    until(lambda: "OTHER beta" in (devices[0].folder / name).read_text())
    new = f"before ü\n{FIRST[:-1]}!\n"
    one.splice(0, len(FIRST), new)  # it has heard of nothing
    assert _same(plugins, devices, name) == new.replace("beta", "OTHER beta")
    one.splice(0, len(one.text or ""), one.text or "")
    assert _same(plugins, devices, name) == new.replace("beta", "OTHER beta")


def test_a_save_of_what_the_editor_shows_doubles_nothing_and_undoes_nothing(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, two = plugins
    file = devices[0].folder / name
    for number in range(20):
        one.type("second", f"<{number}>")
        two.type("alpha", f"({number})")
        if number % 3:
            one.hear()
        assert one.text is not None
        file.write_text(one.text)
    text = _same(plugins, devices, name)
    assert [text.count(f"<{number}>") for number in range(20)] == [1] * 20
    assert [text.count(f"({number})") for number in range(20)] == [1] * 20
    assert not list(devices[0].folder.glob("*sync-conflict*"))


def test_another_program_saves_the_file_under_the_editor(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, _ = plugins
    one.type("alpha", "typed ")
    _same(plugins, devices, name)
    file = devices[0].folder / name
    file.write_text(file.read_text() + "saved by a formatter\n")
    one.type("beta", "more ")
    assert _same(plugins, devices, name) == f"typed alpha more {FIRST[6:]}saved by a formatter\n"


def test_the_agent_is_killed_and_the_editor_saves_and_opens_again(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, two = plugins
    first = devices[0]
    one.type("alpha", "before ")
    first.end_agent(signal.SIGKILL)
    two.type("second", "other ")
    until(lambda: (one.hear(), one.said[-1]["event"] == "gone")[1])
    assert one.text is not None
    (first.folder / name).write_text(one.text.replace("beta", "during beta"))
    first.svc("watch", "--detach")
    again = Plugin(first.home, first.folder, name).opened()
    again.type("gamma", "after ")
    text = _same((again, two), devices, name)
    assert text == "before alpha during beta after gamma\nother second 😀 line\n"
    again.close()


def test_the_cursor_is_told_and_a_plugin_writes_beside_the_app(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, two = plugins
    two.send(line=2, col=8)
    people = until(
        lambda: (one.hear(), [e for e in one.said if e.get("event") == "people" and e.get("people")])[1]
    )
    assert people[-1]["people"][0]["who"] == "ann"
    typist = Typist(devices[0].home, devices[0].folder, name).opened()
    typist.type("gamma", "app ")
    one.type("beta", "plugin ")
    until(typist.settled)
    text = _same(plugins, devices, name)
    assert text == FIRST.replace("beta gamma", "plugin beta app gamma")
    typist.writing.close()


def test_the_socket_is_printed_and_the_agent_started(devices: tuple[Device, Device], name: str) -> None:
    first, _ = devices
    first.end_agent()
    printed = first.svc("watch", "socket").splitlines()[-1]
    assert first.home / "agent.sock" == Path(printed)
    found = json.loads(first.svc("watch", "socket", name, "--json", "socket,folder"))
    assert found == {"socket": printed, "folder": str(first.folder.resolve())}
    plugin = Plugin(first.home, first.folder, name).opened()
    assert plugin.text == FIRST
    plugin.close()


def test_who_edits_a_folder_that_is_no_longer_watched_connects_again(
    devices: tuple[Device, Device], name: str
) -> None:
    first, second = devices
    typist = Typist(first.home, first.folder, name).opened()
    plugin = Plugin(first.home, first.folder, name).opened()
    first.svc("watch", "stop")
    until(lambda: (plugin.hear(), plugin.said[-1]["event"] == "gone")[1], "the plugin is disconnected")
    typist.type("gamma", "after ")
    until(typist.settled, "what the app typed is on the branch")
    until(lambda: "after gamma" in (second.folder / name).read_text())
    first.svc("watch", "--detach")
    assert _followers(first) == 1
    typist.writing.close()
    until(lambda: _followers(first) == 0, "nobody follows")


def _followers(device: Device) -> int:
    with Conversation(device.home) as talk:
        return talk.ask(Request("about")).folders[0].followers


def test_what_is_not_a_change_ends_the_edit_with_a_sentence(
    devices: tuple[Device, Device], name: str
) -> None:
    first, _ = devices
    lines = {
        "not JSON": b"hello\n",
        "unknown field": b'{"n":1,"update":"AAA"}\n',
        "a surrogate alone": b'{"n":1,"splices":[[0,0,"\\ud800"]]}\n',
        "outside": b'{"n":1,"splices":[[9999,0,"x"]]}\n',
        "negative": b'{"n":1,"splices":[[-5,0,"x"]]}\n',
        "not next": b'{"n":7,"splices":[[0,0,"x"]]}\n',
        "no number": b'{"splices":[[0,0,"x"]]}\n',
        "seen what was not sent": b'{"seen":4}\n',
        "NUL": b'{"n":1,"splices":[[0,0,"\\u0000"]]}\n',
        "a huge number": b'{"n":1,"splices":[[' + b"9" * 400 + b',0,"x"]]}\n',
        "deep": b"[" * 100_000 + b"\n",
        "two units": b'{"n":1,"splices":[[0,0]]}\n',
    }
    for what, line in lines.items():
        plugin = Plugin(first.home, first.folder, name).opened()
        plugin.send_bytes(line)
        assert len(plugin.why()) > 10, what
        plugin.close()
    assert (first.folder / name).read_text() == FIRST


def test_what_cannot_be_edited_says_why(devices: tuple[Device, Device], name: str) -> None:
    first, _ = devices
    refused = {
        ("no.txt", "bytes"): "not in the folder",
        ("../../etc/passwd", "bytes"): "not in the folder",
        (name, "feet"): "not a request",
        (name, ""): "a session",
        ("", "bytes"): "a path",
    }
    for (path, unit), why in refused.items():
        plugin = Plugin(first.home, first.folder, path, unit)
        assert why in plugin.why()
        plugin.close()


def test_letters_become_edits_together_although_the_file_is_written_for_each(
    plugins: tuple[Plugin, Plugin], devices: tuple[Device, Device], name: str
) -> None:
    one, _ = plugins
    began = time.monotonic()
    for letter in "letters that are typed one after the other":
        one.type("second", letter)
        time.sleep(0.03)
        one.hear()
    _same(plugins, devices, name)
    edits = {event["n"] for event in one.said if event.get("event") == "kept" and event.get("n")}
    assert len(edits) <= (time.monotonic() - began) / TYPED_EACH + 2
