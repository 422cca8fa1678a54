"""Two watched folders, real agents and a real relay: one renames a file while the other edits it, offline and
at the same moment. The edit is in the renamed file on both, and the old name is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.campaign.live_people import files_of
from scripts.live.devices import Device, Relay
from tests.patience import until
from tests.svc.agent.pair import devices, relay, shared

__all__ = ["devices", "relay"]

TEXT = "".join(f"line {number}\n" for number in range(30))


def rename(device: Device, old: str, new: str) -> None:
    (device.folder / new).parent.mkdir(parents=True, exist_ok=True)
    (device.folder / old).rename(device.folder / new)


def edit(device: Device, path: str, line: int, words: str) -> None:
    file = device.folder / path
    file.write_text(file.read_text().replace(f"line {line}\n", f"{words}\n"))


def require_rest(devices: tuple[Device, Device], name: str, content: bytes, gone: str) -> None:
    """Both have this content at this name and nothing at the other, the same files, and nothing to send."""

    def rested() -> bool:
        for device in devices:
            if files_of(device.folder).get(name) != content or (device.folder / gone).exists():
                return False
        if files_of(devices[0].folder) != files_of(devices[1].folder):
            return False
        states = [device.state() for device in devices]
        return all(state.get("light") == "live" and not state.get("queued") for state in states)

    until(rested, lambda: f"{[files_of(device.folder) for device in devices]}")


@pytest.mark.parametrize("away", [True, False])
def test_a_text(devices: tuple[Device, Device], relay: Relay, away: bool) -> None:
    first, second = devices
    old = shared(devices, f"old-{away}.txt", TEXT)
    if away:
        relay.kill()
    rename(first, old, f"new-{away}/text.txt")
    edit(first, f"new-{away}/text.txt", 3, "by first")
    edit(second, old, 25, "by second")
    if away:
        relay.start()
    want = TEXT.replace("line 3\n", "by first\n").replace("line 25\n", "by second\n")
    require_rest(devices, f"new-{away}/text.txt", want.encode(), old)


@pytest.mark.parametrize("away", [True, False])
def test_bytes(devices: tuple[Device, Device], relay: Relay, away: bool) -> None:
    first, second = devices
    old = shared(devices, f"old-{away}.bin", "\0first bytes")
    if away:
        relay.kill()
    rename(first, old, f"new-{away}.bin")
    (second.folder / old).write_bytes(b"\0second bytes")
    if away:
        relay.start()
    require_rest(devices, f"new-{away}.bin", b"\0second bytes", old)


@pytest.mark.parametrize("killed", [True, False])
def test_a_folder_renamed_beside_an_agent_that_is_killed(
    devices: tuple[Device, Device], relay: Relay, killed: bool
) -> None:
    first, second = devices
    (first.folder / f"dir-{killed}").mkdir()
    old = shared(devices, f"dir-{killed}/one.txt", TEXT)
    other = shared(devices, f"dir-{killed}/two.txt", "two\n" + TEXT)
    relay.kill()
    rename(first, f"dir-{killed}", f"moved-{killed}")
    edit(second, old, 3, "in one")
    edit(second, other, 4, "in two")
    for device in devices if killed else ():
        device.end_agent(9)
    relay.start()
    for device in devices if killed else ():
        device.svc("watch", "--detach")
    one, two = TEXT.replace("line 3\n", "in one\n"), "two\n" + TEXT.replace("line 4\n", "in two\n")
    require_rest(devices, f"moved-{killed}/one.txt", one.encode(), old)
    require_rest(devices, f"moved-{killed}/two.txt", two.encode(), other)


def test_both_rename_it(devices: tuple[Device, Device], relay: Relay) -> None:
    old = shared(devices, "both.txt", TEXT)
    relay.kill()
    for number, device in enumerate(devices):
        rename(device, old, f"both-{number}.txt")
        edit(device, f"both-{number}.txt", 3, f"by {number}")
    relay.start()
    for number in range(2):
        require_rest(devices, f"both-{number}.txt", TEXT.replace("line 3\n", f"by {number}\n").encode(), old)


def test_deleted_there_and_edited_here_is_said(
    devices: tuple[Device, Device], relay: Relay, tmp_path: Path
) -> None:
    first, second = devices
    old = shared(devices, "deleted.txt", TEXT)
    relay.kill()
    (first.folder / old).unlink()
    edit(second, old, 3, "by second")
    first.wait_for_queue(1)
    second.end_agent()  # its edit reaches the relay after the removal
    relay.start()
    first.wait_for("live")
    with second.watching():
        second.wait_for("live")
        want = TEXT.replace("line 3\n", "by second\n").encode()
        aside = until(
            lambda: [
                name for name, data in files_of(first.folder).items() if data == want and "conflict" in name
            ]
        )
        require_rest(devices, aside[0], want, old)
