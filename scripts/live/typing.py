"""Two devices type words into one file for a minute, each in an editor that never reloads the file.

    python -m scripts.live.typing [--seconds 60] [--place apart|near|same] [--way rename|write]

`--place`: whether they type in distant lines, in neighbouring lines or in the same line. `--way`: whether an
editor saves by renaming a new file or by writing to the old one. Each word is typed once. In the end both
devices must have the same file with every word once. Words in conflict copies are counted separately."""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from scripts.live.devices import Device, pair_devices
from scripts.tour import start_relay

FILE = "notes.txt"
EVERY = (0.1, 0.6)  # seconds between two saves
QUIET = 20.0  # seconds for both to come to rest
START = "".join(f"paragraph {number}: here stands some text that nobody changes\n" for number in range(12))


class Editor(threading.Thread):
    """A thread that loads the file once, then types words at one position and saves the whole file after each
    few words. `word`: the letter with which its words begin. `way`: how it saves, `rename` or `write`."""

    def __init__(self, path: Path, word: str, line: int, way: str, until: float, seed: int) -> None:
        super().__init__()
        self._path, self._word, self._line, self._way, self._until = path, word, line, way, until
        self._chance = random.Random(seed)
        self._lines = path.read_text().splitlines()
        self.typed: list[str] = []

    def run(self) -> None:
        while time.monotonic() < self._until:
            for _ in range(self._chance.randint(1, 4)):
                word = f"{self._word}{len(self.typed)}"
                self.typed.append(word)
                if self._chance.random() < 0.2:
                    self._lines.insert(self._line + 1, word)
                    self._line += 1
                else:
                    self._lines[self._line] += f" {word}"
            text = "".join(f"{line}\n" for line in self._lines)
            if self._way == "rename":
                fresh = self._path.with_name(f".{self._path.name}.{self._word}.swp")
                fresh.write_text(text)
                fresh.replace(self._path)
            else:
                self._path.write_text(text)
            time.sleep(self._chance.uniform(*EVERY))


def words_of(text: str) -> Counter[str]:
    return Counter(re.findall(r"\b[ab]\d+\b", text))


def at_rest(first: Device, second: Device) -> bool:
    """Wait until both files are equal and stay equal for a second. Returns whether this happened in time."""
    until, since = time.monotonic() + QUIET, None
    while time.monotonic() < until:
        texts = [(device.folder / FILE).read_bytes() for device in (first, second)]
        if texts[0] != texts[1]:
            since = None
        elif since is None:
            since = time.monotonic()
        elif time.monotonic() - since > 2.0:
            return True
        time.sleep(0.1)
    return False


def run(seconds: float, place: str, way: str, seed: int) -> int:
    with tempfile.TemporaryDirectory(prefix="svc-typing-") as made:
        base = Path(made)
        relay, server = start_relay(base / "relay")
        try:
            first, second = pair_devices(base, server, lambda folder: (folder / FILE).write_text(START))
            with first.watching(), second.watching():
                first.wait_for("live")
                second.wait_for("live")
                until = time.monotonic() + seconds
                lines = {"apart": (2, 9), "near": (4, 5), "same": (11, 11)}[place]
                editors = [
                    Editor(device.folder / FILE, word, line, way, until, seed + at)
                    for at, (device, word, line) in enumerate(zip((first, second), "ab", lines, strict=True))
                ]
                for editor in editors:
                    editor.start()
                for editor in editors:
                    editor.join()
                rested = at_rest(first, second)
                return report_words(first, second, editors, rested)
        finally:
            relay.terminate()
            relay.wait(20)


def report_words(first: Device, second: Device, editors: list[Editor], rested: bool) -> int:
    """Print how many words are in the file, lost or doubled. `rested`: whether the files of both devices
    became equal in time. Returns the number of faults."""
    text = (first.folder / FILE).read_text()
    here = words_of(text)
    aside: Counter[str] = Counter()
    copies = sorted(first.folder.glob("*.sync-conflict-*"))
    for copy in copies:
        aside |= words_of(copy.read_text())
    typed = [word for editor in editors for word in editor.typed]
    lost = [word for word in typed if not here[word] and not aside[word]]
    only_aside = [word for word in typed if not here[word] and aside[word]]
    doubled = [word for word in typed if here[word] > 1]
    strange = sorted(here.keys() - set(typed))
    equal = (second.folder / FILE).read_text() == text
    said = f"{len(typed)} words, lost {len(lost)}, doubled {len(doubled)}, mixed {len(strange)}, "
    said += f"only in one of {len(copies)} conflict copies {len(only_aside)}, converged {rested and equal}\n"
    sys.stdout.write(said)
    if lost or doubled or strange or not (rested and equal):
        sys.stdout.write(f"lost {lost[:10]} doubled {doubled[:10]} strange {strange[:10]}\n{text}\n")
        for device in (first, second):
            sys.stdout.write(
                f"--- {device.name}\n{(device.home / 'agent.log').read_text()}\n{device.state()}\n"
            )
    return len(lost) + len(doubled) + len(strange) + (not (rested and equal))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--place", choices=("apart", "near", "same"), default="apart")
    parser.add_argument("--way", choices=("rename", "write"), default="rename")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    return 1 if run(given.seconds, given.place, given.way, given.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
