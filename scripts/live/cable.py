"""Tests the light and the edits of a watched folder while the network fails in several ways.

    python -m scripts.live.cable [--rounds 3] [--seed 1]

The light says how the folder is connected: live, polling or offline. The network refuses, is silent, slow or
cut, and comes back. Two devices reach the relay through one cable, a proxy that this script controls. After
each change of the cable, the script measures how long it takes until the light of both devices is right. The
limit is 5 s, and 15 s for a change from or to polling. Meanwhile both devices write files; in the end both
folders must have all of them.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import msgspec

from localstore.agent.talk import AgentSilent, Conversation, Request
from scripts.live.devices import Device, Relay, pair_devices

BAR, BLUE_BAR = 5.0, 15.0
PATIENCE = 90.0
SLOW = 8_000  # bytes a second: 64 kbit/s
STEPS = (
    ("closed", "offline"),
    ("open", "live"),
    ("silent", "offline"),
    ("open", "live"),
    ("no sockets", "polling"),
    ("open again", "live"),
    ("slow", "live"),
    ("open", "live"),
)


class Cable:
    """A proxy in front of the relay, which can behave like a broken network. `open`: passes everything on;
    `no sockets`: refuses WebSockets; `closed`: ends connections at once; `silent`: discards what is sent;
    `slow`: passes 64 kbit/s each way."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.upstream = 0
        self._mode, self._ends = "open", set[socket.socket]()
        threading.Thread(target=self._serve, daemon=True).start()

    def become(self, mode: str) -> None:
        """Switch to `mode`, one of the modes that the class describes. Open connections are cut where they
        would otherwise continue as before."""
        before, self._mode = self._mode, mode
        if mode in ("closed", "no sockets") or before == "silent":
            for end in list(self._ends):
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
                try:
                    while self._pass(client, relay):
                        pass
                finally:
                    self._ends -= {client, relay}

    def _pass(self, client: socket.socket, relay: socket.socket) -> bool:
        """Pass on one piece of data, in either direction. Returns whether the connection goes on."""
        for end in select.select([client, relay], [], [])[0]:
            mode = self._mode
            data = end.recv(SLOW // 10 if mode == "slow" else 1 << 16)
            if not data:
                return False
            if mode == "silent":
                continue
            if mode == "slow":
                time.sleep(len(data) / SLOW)
            if mode == "no sockets" and b"upgrade: websocket" in data.lower():
                client.sendall(b"HTTP/1.1 502 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return False
            (relay if end is client else client).sendall(data)
        return True


class Writer(threading.Thread):
    """A thread that now and then writes a new file, and appends a line to a file that both devices have."""

    def __init__(self, device: Device, seed: int) -> None:
        super().__init__()
        self._device, self._chance = device, random.Random(seed)
        self.stopped = threading.Event()
        self.written: list[str] = []

    def run(self) -> None:
        while not self.stopped.wait(self._chance.uniform(0.3, 1.0)):
            name = f"{self._device.name}-{len(self.written)}.txt"
            (self._device.folder / name).write_text(f"{name}\n")
            self.written.append(name)


def light(device: Device) -> str:
    """The light of the device's folder; "" if the agent does not answer. The agent is asked over its socket,
    because to start a command would take longer than the times that are measured."""
    with suppress(AgentSilent), Conversation(device.home) as agent:
        folders = agent.ask(Request("about")).folders
        return folders[0].light if folders else ""
    return ""


def seconds_until(devices: tuple[Device, Device], wanted: str) -> float:
    began, took = time.monotonic(), 0.0
    for device in devices:
        while light(device) != wanted:
            if time.monotonic() - began > PATIENCE:
                return PATIENCE
            time.sleep(0.02)
        took = time.monotonic() - began
    return took


def complete(devices: tuple[Device, Device], writers: list[Writer]) -> list[str]:
    """Wait until nothing changes any more. Returns the written files that one of the devices lacks."""
    names = [name for writer in writers for name in writer.written]
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        lost = [f"{one.name}: {name}" for one in devices for name in names if not _has(one, name)]
        if not lost:
            break
        time.sleep(0.5)
    return lost


def _has(device: Device, name: str) -> bool:
    with suppress(FileNotFoundError):
        return (device.folder / name).read_text() == f"{name}\n"
    return False


def run(rounds: int, seed: int) -> int:
    cable, faults = Cable(), 0
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="svc-cable-") as made:
        relay = Relay(Path(made) / "relay")
        os.environ["TR_PUBLIC_URL"] = f"http://127.0.0.1:{cable.port}"
        relay.start()
        cable.upstream = int(relay.server.rpartition(":")[2])
        devices = pair_devices(
            Path(made), f"http://127.0.0.1:{cable.port}", lambda to: (to / "a").write_text("a\n")
        )
        writers = [Writer(device, seed + at) for at, device in enumerate(devices)]
        try:
            for device in devices:
                device.svc("watch", "--detach")
                device.wait_for("live")
            for writer in writers:
                writer.start()
            for _ in range(rounds):
                for mode, wanted in STEPS:
                    cable.become(mode)
                    seconds = seconds_until(devices, wanted)
                    took.setdefault(f"{mode} → {wanted}", []).append(seconds)
                    time.sleep(6.0 if mode == "slow" else 2.0)
                    if mode == "slow" and any(light(device) != "live" for device in devices):
                        faults += 1
                        sys.stdout.write("slow: the light left live\n")
            for writer in writers:
                writer.stopped.set()
                writer.join()
            lost = complete(devices, writers)
        finally:
            for writer in writers:
                writer.stopped.set()
            for device in devices:
                device.end_agent()
            relay.kill()
    for name, seconds_ in took.items():
        bar = BLUE_BAR if "again" in name or "polling" in name else BAR
        late = sum(one > bar for one in seconds_)
        faults += late
        sys.stdout.write(f"{name}: {', '.join(f'{one:.1f}' for one in seconds_)} s (≤{bar:g}), late {late}\n")
    files = sum(len(writer.written) for writer in writers)
    sys.stdout.write(f"{files} files written, lost {len(lost)} {msgspec.json.encode(lost[:5]).decode()}\n")
    return faults + len(lost)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    return 1 if run(given.rounds, given.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
