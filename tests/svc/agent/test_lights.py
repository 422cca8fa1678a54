"""The light of a watched folder, on a road that refuses, swallows and cuts what travels."""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from localstore.core.errors import Forbidden, ServerUnreachable
from scripts.live.devices import Device, Relay, pair_devices
from svc.agent.line import ChannelParameters, Heard, Light, Line
from svc.http.session import Sessions
from tests.patience import PATIENCE

SOON = PATIENCE


class Road:
    """A port before the relay. `open`: all passes; `no sockets`: upgrades are refused; `closed`: connections
    end at once; `silent`: what is sent is swallowed."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.upstream = 0
        self._mode, self._ends = "open", set[socket.socket]()
        threading.Thread(target=self._serve, daemon=True).start()

    def become(self, mode: str, cut: bool = True) -> None:
        self._mode = mode
        for end in list(self._ends) if cut else []:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            if self._mode == "closed":
                return
            with socket.create_connection(("127.0.0.1", self.upstream)) as relay:
                self._ends |= {client, relay}
                while True:
                    for end in select.select([client, relay], [], [])[0]:
                        data = end.recv(1 << 16)
                        if not data:
                            return
                        if self._mode == "silent":
                            continue
                        if self._mode == "no sockets" and b"upgrade: websocket" in data.lower():
                            client.sendall(
                                b"HTTP/1.1 502 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                            )
                            return
                        (relay if end is client else client).sendall(data)


@pytest.fixture(scope="module")
def road() -> Road:
    return Road()


@pytest.fixture(scope="module")
def devices(road: Road, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Device, Device]]:
    base = tmp_path_factory.mktemp("lights")
    relay = Relay(base / "relay")
    os.environ["TR_PUBLIC_URL"] = f"http://127.0.0.1:{road.port}"
    try:
        relay.start()
    finally:
        del os.environ["TR_PUBLIC_URL"]
    road.upstream = int(relay.server.rpartition(":")[2])
    found = pair_devices(
        base, f"http://127.0.0.1:{road.port}", lambda folder: (folder / "a.txt").write_text("a\n")
    )
    for device in found:
        device.svc("watch", "--detach")
        device.wait_for("live")
    yield found
    for device in found:
        device.end_agent()
    relay.kill()


def arrives(file: Path) -> None:
    until = time.monotonic() + SOON
    while not file.exists():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("mode", "light"), [("closed", "offline"), ("silent", "offline"), ("no sockets", "polling")]
)
def test_the_light_follows_the_road_and_no_edit_is_lost(
    devices: tuple[Device, Device], road: Road, mode: str, light: str
) -> None:
    first, second = devices
    name = mode.replace(" ", "-")
    road.become(mode)
    first.wait_for(light)
    (first.folder / f"{name}-first.txt").write_text("x\n")
    (second.folder / f"{name}-second.txt").write_text("x\n")
    if light == "polling":  # saves travel all the same
        arrives(second.folder / f"{name}-first.txt")
        arrives(first.folder / f"{name}-second.txt")
    road.become("open", cut=mode != "no sockets")
    arrives(second.folder / f"{name}-first.txt")
    arrives(first.folder / f"{name}-second.txt")
    if mode != "no sockets":  # a socket is tried each minute while polling
        first.wait_for("live")


class Witness:
    """A member of a line that records its lights."""

    channel_parameters: ChannelParameters | None = None
    channel, repo_id = 1, ""

    def __init__(self) -> None:
        self.lights: list[tuple[str, str]] = []

    def queue_light(self, light: Light, why: str) -> None:
        self.lights.append((light, why))

    def queue_message(self, message: Heard) -> None:
        raise AssertionError(message)


def test_one_outage_has_one_reason(tmp_path: Path) -> None:
    line, witness = Line("http://127.0.0.1:9", Sessions(tmp_path), print, lambda: None), Witness()
    line.close()
    line._thread.join()  # it tries nothing beside the test
    line.light, line._unreachable = "polling", False
    line._members[1] = witness
    reset, refused = ServerUnreachable("it was reset"), ServerUnreachable("it was refused")
    line._lose(reset)
    line._lose(refused)
    line._light("live", "")
    line._lose(refused)
    line._lose(Forbidden("you may not"))  # another thing to do
    line._lose(reset)
    assert witness.lights == [
        ("offline", "it was reset"),
        ("live", ""),
        ("offline", "it was refused"),
        ("offline", "you may not"),
        ("offline", "it was reset"),
    ]
