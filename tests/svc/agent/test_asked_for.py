"""Commands that write a text on request, in a watched folder: what they write is no save of an old buffer."""

from __future__ import annotations

import json

from scripts.live.devices import Device, Relay
from tests.patience import until
from tests.svc.agent.pair import devices as devices
from tests.svc.agent.pair import relay as relay
from tests.svc.agent.pair import shared

BEFORE = "one\ntwo\nthree\n"


def _shows_on_both(devices: tuple[Device, Device], name: str, text: str) -> None:
    for device in devices:
        until(lambda: (device.folder / name).read_text() == text)  # noqa: B023
        device.wait_for("live")
    assert [(device.folder / name).read_text() for device in devices] == [text, text]


def _has_conflict(device: Device) -> bool:
    return bool(json.loads(device.svc("conflicts", "--json", fails=True)))


def test_the_version_that_resolve_takes_stays(devices: tuple[Device, Device], relay: Relay) -> None:
    first, second = devices
    name = shared(devices, "both.txt", BEFORE)
    relay.kill()
    for device in devices:
        device.wait_for("offline")
        (device.folder / name).write_text(BEFORE.replace("two", f"of {device.name}"))
        device.wait_for_queue(1)
    relay.start()
    for device in devices:
        device.wait_for("live")
    until(lambda: any(map(_has_conflict, devices)))
    later = first if _has_conflict(first) else second
    later.svc("resolve", name, "--mine")
    _shows_on_both(devices, name, BEFORE.replace("two", f"of {later.name}"))


def test_a_restored_text_stays(devices: tuple[Device, Device]) -> None:
    first, second = devices
    name = shared(devices, "restored.txt", BEFORE)
    first.svc("push", "-m", "Sealed")
    (second.folder / name).write_text(BEFORE.replace("two", "live"))
    until(lambda: "live" in (first.folder / name).read_text())
    first.wait_for("live")
    first.svc("restore", name)
    _shows_on_both(devices, name, BEFORE)


def test_a_reverted_seal_stays_reverted(devices: tuple[Device, Device]) -> None:
    first, second = devices
    name = shared(devices, "reverted.txt", BEFORE)
    first.svc("push", "-m", "Sealed")
    (second.folder / name).write_text(BEFORE.replace("two", "wrong"))
    until(lambda: "wrong" in (first.folder / name).read_text())
    for device in devices:
        device.wait_for("live")
    seal = second.svc("push", "-m", "Wrong").strip()
    until(lambda: json.loads(first.svc("status", "--json", "last_seal"))["last_seal"] == seal)
    first.svc("revert", seal)
    _shows_on_both(devices, name, BEFORE)
