"""Programs that read a file at any moment and save what they read, changed, while edits of others arrive."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from localstore.live.rounds import Done
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.live.test_rounds import TEXT, Side
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

FILE = "a.txt"
STEPS = 14


class History:
    """Ann writes lines. A program on Bob's device reads the file whenever the dice say so, within the rounds
    of live sync too, and saves the text that it read last with a line more or less."""

    def __init__(self, base: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        relay = ModelRelay()
        ann, bob = Place(base, relay, "ann"), Place(base, relay, "bob")
        ann.write(FILE, TEXT)
        ann.push("One")
        bob.pull()
        self.ann, self.bob = Side(ann), Side(bob)
        self.held = TEXT  # what the program read last, or saved
        self.written: list[str] = []
        self.taken: set[str] = set()  # lines that the program took away
        self.bob.bring()

    def close(self) -> None:
        """Give back what watches for reads: a user has only so many."""
        self.ann.rounds.close()
        self.bob.rounds.close()

    def step(self) -> None:
        match self.dice.randrange(5):
            case 0 | 1:
                self.ann.bring()
                text = self.ann.text(FILE)
                self.ann.save(FILE, self._longer(text, "ann"))
                self._bring()
            case 2:
                self._read()
            case _:
                self._save()

    def end(self) -> None:
        for _ in range(2):
            self.ann.bring()
            self.bob.bring()
        mine, theirs = self.bob.text(FILE), self.ann.text(FILE)
        assert mine == theirs
        aside = "".join(one.read_text() for one in self.bob.place.folder.glob("*sync-conflict*"))
        lines = mine.splitlines()
        assert all(lines.count(line) == 1 for line in lines), "a line is there twice"
        for line in {*TEXT.splitlines(), *self.written} - self.taken:
            assert line in lines or line in aside, f"{line} is lost"

    def _bring(self) -> None:
        """Bring what Ann wrote; the program may read the file as soon as it has its name."""

        def work(copy: WorkingCopy) -> Done:
            self.bob.rounds.bootstrap(copy)
            placing, placed = copy.placing, copy.placed

            @contextmanager
            def read_at_once(path: str, temp: str) -> Iterator[None]:
                with placing(path, temp):
                    yield
                    self._perhaps_read()
                self._perhaps_read()

            def read_soon(path: str, before: bytes | None, new: bytes) -> None:
                self._perhaps_read()
                placed(path, before, new)
                self._perhaps_read()

            copy.placing, copy.placed = read_at_once, read_soon
            done = self.bob.rounds.bring(copy)
            self._perhaps_read()
            return done

        self.bob.run(work)

    def _perhaps_read(self) -> None:
        if self.dice.random() < 0.15:
            self._read()

    def _read(self) -> None:
        self.held = self.bob.text(FILE)

    def _save(self) -> None:
        lines = self.held.splitlines()
        old = [line for line in lines if not line.startswith("ann ")]
        if self.dice.random() < 0.4 and old:
            gone = self.dice.choice(old)
            self.taken.add(gone)
            self.held = "".join(f"{line}\n" for line in lines if line != gone)
        else:
            self.held = self._longer(self.held, "bob")
        place = self.bob.place.folder / FILE
        if self.dice.random() < 0.5:
            place.write_text(self.held)
        else:
            beside = place.with_name("saved.tmp")
            beside.write_text(self.held)
            beside.replace(place)
        self.bob.run(lambda copy: self.bob.rounds.capture_saved(copy, [FILE]))

    def _longer(self, text: str, who: str) -> str:
        self.written.append(f"{who} {len(self.written)}")
        lines = text.splitlines()
        lines.insert(self.dice.randrange(len(lines) + 1), self.written[-1])
        return "".join(f"{line}\n" for line in lines)


@given(seed=some.integers(0, 1 << 32))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_was_read_when_no_line_is_lost_or_there_twice(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    history = History(tmp_path_factory.mktemp("history"), seed)
    try:
        for _ in range(STEPS):
            history.step()
        history.end()
    finally:
        history.close()
