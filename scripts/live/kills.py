"""Kills agents and the relay while two devices edit, and checks whether a word is lost or doubled.

    python -m scripts.live.kills [--kills 60] [--seed 1] [--queue]

Both devices append words to files, create files and delete some of their own files. Agents and relay are
killed with SIGKILL at random moments and started again. In the end both folders must be equal. Each word must
be once in its file (or in a conflict copy), and deleted files must be gone. With --queue both devices also
comment on an issue through their outbox. Each comment must be there once, and the comments of a device in the
order in which they were queued."""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from scripts.live.devices import Device, Relay, pair_devices

FILES = 6
REST = 180.0  # seconds for both to come to rest
QUEUE_EVERY = (0.8, 2.0)  # seconds between two comments
BETWEEN = (0.1, 1.2)  # seconds between two kills


class FolderEditor(threading.Thread):
    """A thread that edits the folder of a device. It reads a file anew for each edit, as tools do."""

    def __init__(self, device: Device, word: str, seed: int) -> None:
        super().__init__()
        self._device, self._word, self._chance = device, word, random.Random(seed)
        self.stopped = threading.Event()
        self.typed: dict[str, str] = {}  # word → path
        self.deleted: set[str] = set()

    def run(self) -> None:
        own: list[str] = []
        while not self.stopped.wait(self._chance.uniform(0.02, 0.25)):
            word = f"{self._word}{len(self.typed)}"
            luck = self._chance.random()
            if luck < 0.1:
                path = f"{self._word}-{len(self.typed)}.txt"
                (self._device.folder / path).write_text(f"{word}\n")
                own.append(path)
                self.typed[word] = path
            elif luck < 0.13 and len(own) > 3:
                path = own.pop(0)
                (self._device.folder / path).unlink(missing_ok=True)
                self.deleted.add(path)
            else:
                path = f"shared-{self._chance.randrange(FILES)}.txt"
                self._append(self._device.folder / path, word)
                self.typed[word] = path

    def _append(self, file: Path, word: str) -> None:
        """Append a word to the one line of the file in which this person writes."""
        lines = file.read_text().splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith(f"{self._word}:"))
        lines[at] += f" {word}"
        fresh = file.with_name(f".{file.name}.{self._word}.swp")
        fresh.write_text("".join(f"{line}\n" for line in lines))
        fresh.replace(file)


class Commenter(threading.Thread):
    """A thread that queues comments on issue 1, one after the other."""

    def __init__(self, device: Device, word: str, seed: int) -> None:
        super().__init__()
        self._device, self._word, self._chance = device, word, random.Random(seed)
        self.stopped = threading.Event()
        self.queued: list[str] = []

    def run(self) -> None:
        while not self.stopped.wait(self._chance.uniform(*QUEUE_EVERY)):
            body = f"{self._word}{len(self.queued)}"
            self._device.svc("issue", "comment", "1", "--body", body, "--queue")
            self.queued.append(body)


def find_misqueued(devices: tuple[Device, Device], commenters: list[Commenter]) -> list[str]:
    """Wait until nothing is queued. Returns the comments that are lost, doubled or out of order."""
    until = time.monotonic() + REST
    while time.monotonic() < until:
        waiting = [entry for device in devices for entry in json.loads(device.svc("queue", "list", "--json"))]
        if not waiting:
            break
        time.sleep(1)
    else:
        return [f"{len(waiting)} actions still wait: {waiting[:2]}"]
    listed = json.loads(devices[0].svc("repo", "api", "repos/{id}/issues/1/comments", "--paginate"))
    bodies = [comment["body"] for comment in listed]
    faults = []
    for one in commenters:
        own = [body for body in bodies if body.startswith(one._word)]
        if own != one.queued:
            faults.append(f"queued {one.queued}, and on the issue are {own}")
    sys.stdout.write(f"{len(bodies)} comments queued and sent, {len(faults)} devices with faults; ")
    return faults


def fill(folder: Path) -> None:
    for number in range(FILES):
        middle = "".join(f"text {at} of {number} that nobody changes\n" for at in range(8))
        (folder / f"shared-{number}.txt").write_text(f"a: \n{middle}b: \n")


def files_of(device: Device) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(device.folder.glob("*.txt"))}


def at_rest(devices: tuple[Device, Device]) -> bool:
    until, calm = time.monotonic() + REST, 0
    while time.monotonic() < until:
        states = [device.state() for device in devices]
        quiet = all(state.get("light") == "live" and not state.get("queued") for state in states)
        calm = calm + 1 if quiet and files_of(devices[0]) == files_of(devices[1]) else 0
        if calm == 3:
            return True
        time.sleep(0.5)
    return False


def report_faults(devices: tuple[Device, Device], people: list[FolderEditor], rested: bool) -> int:
    """Print the faults in the files of both devices after the run, and return their number. `people`: the
    threads that typed. `rested`: whether the devices stopped changing the files in time."""
    files = files_of(devices[0])
    deleted = people[0].deleted | people[1].deleted
    where: dict[str, Counter[str]] = {
        path: Counter(re.findall(r"\b[ab]\d+\b", text)) for path, text in files.items()
    }
    aside = Counter[str]()
    for path, found in where.items():
        if "sync-conflict" in path:
            aside |= found
    faults = [] if rested else ["they did not come to rest"]
    other = files_of(devices[1])
    for path in sorted(files.keys() | other.keys()):
        if files.get(path) != other.get(path):
            sys.stdout.write(f"differs: {path}: {files.get(path)!r} and {other.get(path)!r}\n")
    kept = 0
    for person in people:
        for word, path in person.typed.items():
            count = where.get(path, Counter())[word]
            if path in deleted:
                continue
            if count == 0 and aside[word]:
                kept += 1
            elif count != 1:
                faults.append(f"{word} stands {count} times in {path}")
    faults += [f"{path} was deleted and is there" for path in sorted(deleted & files.keys())]
    words = sum(len(person.typed) for person in people)
    sys.stdout.write(f"{words} words, {kept} in conflict copies only, {len(faults)} faults {faults[:5]}\n")
    return len(faults)


def kill(victim: str, devices: tuple[Device, Device], relay: Relay) -> None:
    """Kill an agent, the relay, or all of them, and start them again. All start at the same time, so that an
    agent often starts before the relay answers."""
    hit = [device for device in devices if victim in (device.name, "all")]
    for device in hit:
        device.end_agent(9)
    struck = victim in ("relay", "all")
    if struck:
        relay.kill()
    with ThreadPoolExecutor() as pool:
        begun: list[Future[object]] = [pool.submit(device.svc, "watch", "--detach") for device in hit]
        if struck:
            begun.append(pool.submit(relay.start))
    for one in begun:
        one.result()


def run(kills: int, seed: int, queue: bool) -> int:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="svc-kills-") as made:
        relay = Relay(Path(made) / "relay")
        relay.start()
        devices = pair_devices(Path(made), relay.server, fill)
        people = [
            FolderEditor(device, word, seed + at)
            for at, (device, word) in enumerate(zip(devices, "ab", strict=True))
        ]
        commenters = [Commenter(device, word, seed) for device, word in zip(devices, "ab", strict=True)]
        counts: Counter[str] = Counter()
        if queue:
            devices[0].svc("issue", "create", "--title", "Talk", "--body", "Here")
        busy: list[FolderEditor | Commenter] = [*people, *(commenters if queue else [])]
        try:
            for device in devices:
                device.svc("watch", "--detach")
                device.wait_for("live")
            for one in busy:
                one.start()
            for _ in range(kills):
                time.sleep(chance.uniform(*BETWEEN))
                victim = chance.choice(("first", "second", "relay", "all"))
                counts[victim] += 1
                kill(victim, devices, relay)
            for one in busy:
                one.stopped.set()
                one.join()
            rested = at_rest(devices)
            sys.stdout.write(f"{kills} kills ({dict(counts)}), seed {seed}: ")
            wrong = find_misqueued(devices, commenters) if queue else []
            faults = len(wrong) + report_faults(devices, people, rested)
            if faults:
                sys.stdout.write("".join(f"{one[:2000]}\n" for one in wrong))
                for device in devices:
                    sys.stdout.write(f"{device.state()}\n{(device.home / 'agent.log').read_text()[-3000:]}\n")
            return faults
        finally:
            for one in busy:
                one.stopped.set()
            for device in devices:
                device.end_agent()
            relay.kill()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queue", action="store_true", help="queue comments as well")
    given = parser.parse_args()
    return 1 if run(given.kills, given.seed, given.queue) else 0


if __name__ == "__main__":
    sys.exit(main())
