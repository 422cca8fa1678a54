"""Tests live sync of two or three devices, while agents and the relay are killed and the network is cut.

    python -m scripts.campaign.live [--seconds 300] [--seed 1] [--devices 3] [--database-url URL]

A history is some seconds in which the devices edit texts and bytes, remove and rename files, and replace
texts by bytes and the reverse, while commands such as `svc push` run in the same folders. After it, the
script waits until each device is connected live with nothing queued, and checks the result. The folders must
be equal, and equal to what a device that never wrote pulls from the branch. Each written word must be in a
file, a conflict copy, the trash, or a file that somebody deleted, and may not be doubled.

`--database-url`: an empty database; without it, SQLite in a temporary folder is used.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from localstore.agent.talk import AgentSilent, Conversation, Folder, Request
from scripts.campaign.live_people import Person, faults_of, files_of, text_of
from scripts.live.cable import Cable
from scripts.live.devices import Device, Relay, join, pair_devices

COMMANDS = ("push -m Work", "pull", "pull --merge", "status", "diff", "resolve", "restore")
REST = 150.0  # seconds for all to come to rest
ACTING = (3.0, 9.0)  # seconds of a history
BETWEEN = (0.1, 1.5)  # seconds between two faults
CUT = (0.2, 3.0)  # seconds without a network


class Commands(threading.Thread):
    """Runs commands in a device's folder, beside its agent. `counts`: how often each command ended with each
    exit code. `faults`: what was wrong with their output."""

    def __init__(self, device: Device, seed: int) -> None:
        super().__init__(name=f"commands of {device.name}")
        self._device, self._chance = device, random.Random(seed)
        self.stopped = threading.Event()
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def run(self) -> None:
        while not self.stopped.wait(self._chance.uniform(0.0, 0.5)):
            words = self._choose()
            done = self._device.run(*words)
            self.counts[f"{words[0]} {done.returncode}"] += 1
            if "Traceback" in done.stderr or done.returncode < 0:
                self.faults.append(f"svc {' '.join(words)} ended with {done.returncode}: {done.stderr}")

    def _choose(self) -> list[str]:
        """Choose a command, and the file that it is about. Returns its words."""
        words, folder = self._chance.choice(COMMANDS).split(), self._device.folder
        if words == ["resolve"]:
            listed = self._device.run("conflicts", "--json", "path")
            paths = [conflict["path"] for conflict in json.loads(listed.stdout or "[]")]
            return [
                *words,
                self._chance.choice(paths or ["none.txt"]),
                self._chance.choice(["--mine", "--theirs"]),
            ]
        if words == ["restore"]:
            return [*words, self._chance.choice(sorted(files_of(folder)) or ["none.txt"])]
        return words


class Campaign:
    """A relay behind a network that can be cut, devices with one person each, and one more device that only
    pulls."""

    def __init__(self, base: Path, devices: int, seed: int, variables: Mapping[str, str]) -> None:
        self.base, self._seed, self._chance = base, seed, random.Random(seed)
        self._cable = Cable()
        address = f"http://127.0.0.1:{self._cable.port}"
        self._relay = Relay(base / "relay", {**variables, "TR_PUBLIC_URL": address})
        self._relay.start()
        self._cable.upstream = int(self._relay.server.rpartition(":")[2])
        self._devices: list[Device] = list(pair_devices(base, address, _fill))
        while len(self._devices) < devices + 1:
            self._devices.append(Device(base, f"device-{len(self._devices)}", address))
            join(self._devices[0], self._devices[-1])
        self._observer = self._devices.pop()
        self.written: list[list[bytes]] = [[] for _ in self._devices]
        self.counts: Counter[str] = Counter()
        self.people: list[Person] = []
        for device in self._devices:
            device.svc("watch", "--detach")

    def close(self) -> None:
        for person in self.people:
            person.stopped.set()
        for device in self._devices:
            device.end_agent()
        self._relay.kill()

    def play(self) -> list[str]:
        """Play one history. Returns the faults that were found."""
        self.counts["histories"] += 1
        acting = []
        for at, device in enumerate(self._devices):
            seed = self._seed * 1000 + self.counts["histories"] * 10 + at
            acting.append(Person(self.base, device.name, "abc"[at], seed, self.written[at]))
        self.people = acting
        commands = [Commands(device, self._seed + at) for at, device in enumerate(self._devices)]
        for thread in (*acting, *commands):
            thread.start()
        until = time.monotonic() + self._chance.uniform(*ACTING)
        while time.monotonic() < until:
            time.sleep(self._chance.uniform(*BETWEEN))
            self._harm(self._chance.choice(["kill", "kill", "relay", "all", "cut", "silent"]))
        for person in acting:
            person.stopped.set()
            person.join()
            self.counts.update(person.acts)
        for thread in commands:
            thread.stopped.set()
            thread.join()
            self.counts.update(thread.counts)
        return [*(fault for thread in commands for fault in thread.faults), *self._judge(acting)]

    def _harm(self, what: str) -> None:
        """Cause the failure `what`: kill agents or the relay, or cut the network. Then repair it."""
        self.counts[what] += 1
        if what in ("cut", "silent"):
            self._cable.become("closed" if what == "cut" else "silent")
            time.sleep(self._chance.uniform(*CUT))
            self._cable.become("open")
            return
        hit = [self._chance.choice(self._devices)] if what == "kill" else []
        hit = self._devices if what == "all" else hit
        for device in hit:
            device.end_agent(9)
        self.counts["agents killed"] += len(hit)
        if what != "kill":
            self._relay.kill()
            self.counts["relays killed"] += 1
            time.sleep(self._chance.uniform(0.0, 1.0))
        with ThreadPoolExecutor() as pool:
            begun = [pool.submit(device.svc, "watch", "--detach") for device in hit]
            if what != "kill":
                self._relay.start()
        for one in begun:
            one.result()

    def _judge(self, acting: list[Person]) -> list[str]:
        faults = [] if self._rests() else [f"no rest: {[self._state(one) for one in self._devices]}"]
        disks = [files_of(device.folder) for device in self._devices]
        for device, disk in zip(self._devices[1:], disks[1:], strict=True):
            faults += _differences(f"{self._devices[0].name} and {device.name}", disks[0], disk)
        self._observer.svc("pull")
        faults += _differences("the first disk and the branch", disks[0], files_of(self._observer.folder))
        deleted = b"\n".join(person.read_deleted() for person in acting)
        trash = (device.home.rglob("trash/**/*") for device in self._devices)
        kept = b"\n".join(path.read_bytes() for paths in trash for path in paths if path.is_file())
        wrong, twice = faults_of(disks[0], [word for one in self.written for word in one], deleted + kept)
        self.counts["documents with two names or a copy at the end"] = twice
        self.counts["words"] = sum(map(len, self.written))
        return faults + wrong

    def _rests(self) -> bool:
        """Wait until all devices are connected live with nothing queued and have equal folders. This must be
        so several times in a row, because the last save may not be noticed yet. Returns whether it happened
        in time."""
        until, calm = time.monotonic() + REST, 0
        while calm < 4 and time.monotonic() < until:
            states = [self._state(device) for device in self._devices]
            quiet = all(one is not None and one.light == "live" and not one.queued for one in states)
            disks = [files_of(device.folder) for device in self._devices] if quiet else []
            calm = calm + 1 if quiet and all(one == disks[0] for one in disks) else 0
            time.sleep(0.4)
        return calm == 4

    def _state(self, device: Device) -> Folder | None:
        try:
            with Conversation(device.home) as agent:
                folders = agent.ask(Request("about")).folders
        except (AgentSilent, OSError):
            return None
        return folders[0] if folders else None


def _fill(folder: Path) -> None:
    for number in range(4):
        (folder / f"text-{number}.txt").write_bytes(text_of(str(number), b""))
    (folder / "dir-0").mkdir()
    for number in range(4, 7):
        (folder / f"dir-0/text-{number}.txt").write_bytes(text_of(str(number), b""))


def _differences(who: str, one: Mapping[str, bytes], other: Mapping[str, bytes]) -> list[str]:
    paths = sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
    return [f"{who} differ in {path}: {one.get(path)!r} and {other.get(path)!r}" for path in paths[:3]]


def run(seconds: float, seed: int, devices: int, variables: Mapping[str, str], histories: int = 10**6) -> int:
    """Play histories until the time is over, at most `histories` of them. Prints figures and faults. Returns
    the number of faults."""
    began, failed = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="svc-live-") as made:
        campaign = Campaign(Path(made), devices, seed, variables)
        try:
            while time.monotonic() < began + seconds and campaign.counts["histories"] < histories:
                faults = campaign.play()
                failed += len(faults)
                for fault in faults[:10]:
                    sys.stdout.write(f"history {campaign.counts['histories']}: {fault[:1500]}\n")
                sys.stdout.flush()
                if faults:
                    break  # what follows would be judged by what is wrong already
        finally:
            campaign.close()
            if failed and (kept := os.environ.get("KEEP")):
                Path(made).rename(kept)
                Path(made).mkdir()
    figures = ", ".join(f"{count} {name}" for name, count in sorted(campaign.counts.items()))
    sys.stdout.write(f"seed {seed}: {figures}; {failed} faults, {time.monotonic() - began:.0f} s\n")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--devices", type=int, default=3, choices=(2, 3))
    parser.add_argument("--database-url", default="")
    given = parser.parse_args()
    variables = {"DATABASE_URL": given.database_url} if given.database_url else {}
    return 1 if run(given.seconds, given.seed, given.devices, variables) else 0


if __name__ == "__main__":
    sys.exit(main())
