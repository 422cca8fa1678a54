"""Random histories: people edit, go offline, push, pull, get killed anywhere; then everything comes to rest.

What must hold: every acknowledged or saved edit survives, if need be in a conflict copy; no file holds a word
that nobody wrote, or one twice that everybody wrote once, except the very words that a typed edit and an edit
that it did not know mixed by their characters; all folders equal the frontier, seals form a chain
whose trees were the frontier, no temporary file stays behind. One seed is one history.
"""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from localstore.core.diff.line_diff import lines, opcodes
from localstore.core.diff.text_merge import MergedText, merge
from localstore.core.errors import SvcError
from localstore.core.model.live import UpdateBatch
from localstore.folder.files import Files
from localstore.sync import merging
from localstore.sync.compose import compose
from localstore.sync.transfer.send import send
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import WorkingCopy
from svc.flows import push
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

NAMES = ["a.txt", "b.py", "d", "d/x.txt", "d/y.bin", "c.bin"]
WORDS = [
    "a",
    "b",
    " ",
    "\n",
    "ab",
    "é",
    "世",
    "😀",
    "e\u0301",
    "    return x\n",
    "def f(a, b):\n",
    "\r\n",
    "aa",
]
OWN = re.compile(r"k\d+[xy]*")  # words that stand for one edit each, or for the same edit by several people
ROUNDS = 12
CALLS = ("bootstrap", "lanes", "updates", "have", "upload_pack", "prepare", "finalize", "seal", "tree")
STEPS = ("create", "exchange", "move", "remove", "stat", "read")


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


def words(data: bytes) -> list[str]:
    return re.findall(r"\w+", data.decode("utf-8", "ignore"))


def tokens(data: bytes) -> set[str]:
    """The words that stand for edits."""
    return set(filter(OWN.fullmatch, words(data)))


class World:
    """People on one branch."""

    def __init__(
        self, seed: int, root: Path, calm: bool, people: int = 3, typing: float = 0.0, reading: float = 0.0
    ) -> None:
        self.random, self.typing, self.reading = random.Random(seed), typing, reading
        self.calm = calm
        self.relay = ModelRelay(seed)
        self.places = [Place(root, self.relay, name) for name in ("ann", "bob", "cyd")[:people]]
        self.count = 0
        self.born: set[str] = set()
        self.written: set[str] = set()  # every word of every save
        self.merges = self.clashes = self.tears = 0
        self.dead: set[str] = set()
        self.moved: set[str] = set()
        self.twice: set[str] = set()
        self.late: list[tuple[Transport, UpdateBatch]] = []
        self.nested = False
        self.faults = False
        for place in self.places:
            place.wrap = lambda transport, place=place: Faulty(transport, self, place)  # type: ignore[misc]

    # --- people

    def token(self) -> str:
        self.count += 1
        fresh = f"k{self.count}"
        self.born.add(fresh)
        return fresh

    def edit(self, place: Place) -> None:
        """One save, deletion or rename by a person."""
        r = self.random
        path = r.choice([*NAMES, *["a.txt"] * 6, *["b.py"] * 3])
        target = place.folder / path
        if any(parent.is_file() for parent in target.parents):
            return
        if target.is_dir():
            if r.random() < 0.3:
                for file in [one for one in target.rglob("*") if one.is_file()]:
                    self.dead |= tokens(file.read_bytes())
                shutil.rmtree(target)
            return
        old = target.read_bytes() if target.exists() else None
        new = self._version(path, old, r)
        self.dead |= tokens(old or b"") - tokens(new or b"")
        self.born |= tokens(new or b"")
        self.written.update(words(new or b""))
        if new is None:
            target.unlink(missing_ok=True)
        elif r.random() < 0.5 or old is None:
            place.write(path, new)
        else:
            other = target.with_name("editor.tmp")
            other.write_bytes(new)
            other.replace(target)

    def _version(self, path: str, old: bytes | None, r: random.Random) -> bytes | None:
        binary = path.endswith("bin")
        if old is None or (b"\0" in old and r.random() < 0.8):
            head = self.token() + "\n" + "".join(f"v{i} = {self.token()}\n" for i in range(r.randrange(8)))
            return (b"\0" if binary else b"") + (head + "".join(r.choices(WORDS, k=5))).encode()
        if r.random() < 0.08:
            return None
        if b"\0" in old or r.random() < 0.05:
            return (b"" if b"\0" in old else b"\0") + (self.token() + " kind\n").encode()
        parts = re.findall(r"\w+|\W", old.decode())
        before = self.born.copy()
        for _ in range(r.randint(1, 3)):
            self._change(parts, r)
        new = "".join(parts).encode()
        self.dead |= self.born - before - tokens(new)  # written and deleted again before the save
        return new

    def _change(self, parts: list[str], r: random.Random) -> None:
        """Words come, go, or take the place of others; some as everybody would write them."""
        at, known = r.randint(0, len(parts)), [i for i, part in enumerate(parts) if OWN.fullmatch(part)]
        what = r.random()
        if what < 0.2:
            del parts[at : at + r.randint(1, 8)]
        elif what < 0.5 and known:
            at = r.choice(known)
            alike = parts[at] + "x"
            parts[at] = self.token() if r.random() < 0.5 or alike in parts else alike
        elif what < 0.6 and known:
            at = r.choice(known)
            if parts[at] + "y" not in parts:
                parts[at + 1 : at + 1] = ["\n", parts[at] + "y", "\n"]
        else:
            parts[at:at] = [r.choice(WORDS), " ", self.token(), " ", r.choice(WORDS)]

    def command(self, place: Place) -> None:
        """One command, which a fault may end."""
        choice = self.random.choice(
            ["push", "push", "live", "live", "merge", "merge", "plain", "force" if self.calm else "merge"]
        )
        try:
            with self.killable(place) as device:
                if choice == "live" and self.typing and self.random.random() < self.typing:
                    choice = "typed"
                if self.reading and self.random.random() < self.reading:
                    device.key = None  # whoever may only read now
                    choice = "plain" if choice == "plain" else "merge"
                run(device, choice)
        except (SvcError, Killed):
            pass
        self.nothing_mixed(place)

    def nothing_mixed(self, place: Place) -> None:
        """No word that nobody wrote, none twice that everybody wrote once."""
        self.note_mixed()
        for path, data in place.files().items():
            if b"\0" in data:
                continue
            found = words(data)
            strange = set(found) - self.written
            assert not strange, f"{place.folder.name}: {path} has {sorted(strange)}, which nobody wrote"
            double = {one for one in tokens(data) - self.moved if found.count(one) > 1}
            assert not double, f"{place.folder.name}: {path} has {sorted(double)} twice"

    def note_mixed(self) -> None:
        """Take note of the words that typed edits tore, made or doubled, at the places where they met edits
        that they did not know."""
        for one in self.relay.mixed:
            torn = (tokens(one.theirs) | tokens(one.mine)) - tokens(one.both)
            both = words(one.both)
            made = set(both) - set(words(one.theirs)) - set(words(one.mine))
            double = {word for word in tokens(one.both) if both.count(word) > 1}
            self.dead |= torn
            self.written |= made
            self.moved |= made | double
            self.tears += len(torn)
        self.relay.mixed.clear()

    def merged(self, base: bytes, theirs: bytes, mine: bytes) -> MergedText:
        """The merge, with a note of the words that a side moved to another place."""
        for side in (theirs, mine):
            old, new = lines(base), lines(side)
            changes = opcodes(old, new, by_indent=False)
            gone = [tokens(b"".join(old[one.old_start : one.old_end])) for one in changes]
            come = [tokens(b"".join(new[one.new_start : one.new_end])) for one in changes]
            self.moved |= {
                word
                for i, out in enumerate(gone)
                for j, into in enumerate(come)
                if i != j
                for word in out & into
            }
        found = merge(base, theirs, mine)
        self.merges += 1
        self.clashes += bool(found.conflicts)
        return found

    @contextmanager
    def killable(self, place: Place) -> Iterator[WorkingCopy]:
        with place.device() as device:
            device.files.close()
            device.files = FaultyFiles(place.folder, self, place)
            step = device.db.step

            @contextmanager
            def fragile() -> Iterator[None]:
                self.maybe_die(0.004)
                with step():
                    yield

            device.db.step = fragile  # type: ignore[method-assign]
            yield device

    def maybe_die(self, chance: float) -> None:
        if self.faults and self.random.random() < chance:
            raise Killed

    def meanwhile(self, chance: float, act: Callable[[], None]) -> None:
        """Something else happens in between."""
        if self.faults and not self.nested and self.random.random() < chance:
            self.nested = True
            try:
                act()
            finally:
                self.nested = False

    def somebody(self, here: Place) -> None:
        self.command(self.random.choice([place for place in self.places if place is not here]))

    # --- the end

    def act(self) -> None:
        self.faults = True
        for _ in range(self.random.randint(10, 45)):
            place = self.random.choice(self.places)
            if self.random.random() < 0.45:
                self.edit(place)
            elif self.late and self.random.random() < 0.15:
                transport, batch = self.late.pop(self.random.randrange(len(self.late)))
                transport.updates(batch)
            else:
                self.command(place)
        self.faults = False

    def rest(self) -> None:
        for _ in range(ROUNDS):
            for place in self.places:
                place.pull("merge")
                place.push()
            for transport, batch in self.late:
                transport.updates(batch)
            tree = self.relay.tree("main")
            if all(place.files() == tree for place in self.places):
                return
        raise AssertionError("the folders do not converge")

    def check(self) -> None:
        tree = self.relay.tree("main")
        self.note_mixed()
        for place in self.places:
            for file in (place.home.root / "trash").rglob("*"):
                self.dead |= tokens(file.read_bytes()) if file.is_file() else set()
        written: set[str] = set().union(*map(tokens, tree.values()))
        lost = self.born - self.dead - written
        assert not lost, f"lost {sorted(lost)}"
        for place in self.places:
            self.nothing_mixed(place)
        seen: dict[str, str] = {}
        for path, data in tree.items():
            if "sync-conflict" in path:
                continue
            for word in tokens(data) - self.moved:
                assert word not in seen, f"{word} is in {seen.get(word)} and again in {path}"
                seen[word] = path
        head, chain = self.relay.branches["main"].head, 0
        assert self.relay.sealed_tree(head) == tree
        while head:
            chain += 1
            parents = self.relay.seals[head].seal.parents
            head = parents[0] if parents else None
        assert chain == len(self.relay.seals)
        for place in self.places:
            with place.device() as device:
                assert not device.db.intents() and not device.db.flights()
                assert device.last_seal == self.relay.branches["main"].head


def run(device: WorkingCopy, choice: str) -> None:
    from svc.flows.common import begin
    from svc.flows.pull import pull
    from svc.flows.push import push

    if choice == "push":
        push(device, "work")
    elif choice in ("live", "typed"):
        begin(device)
        compose(device, device.scan(), typed=device.entries.keys() if choice == "typed" else ())
        send(device)
    else:
        pull(device, choice)  # type: ignore[arg-type]


class Faulty:
    """A transport that loses requests and answers, keeps copies of updates, and lets others act meanwhile."""

    def __init__(self, real: Transport, world: World, place: Place) -> None:
        self._real, self._world, self._place = real, world, place

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._real, name)
        if name not in CALLS:
            return call

        def risky(*arguments: Any) -> Any:
            world = self._world
            world.meanwhile(0.06, lambda: world.somebody(self._place))
            world.meanwhile(0.04, lambda: world.edit(self._place))
            world.maybe_die(0.02)
            if name == "updates" and world.faults and world.random.random() < 0.2:
                world.late.append((self._real, arguments[0]))
            answer = call(*arguments)
            world.maybe_die(0.03)
            return answer

        return risky


class FaultyFiles(Files):
    """File operations between which people save and processes die."""

    def __init__(self, root: Path, world: World, place: Place) -> None:
        super().__init__(root)
        self._world, self._place = world, place

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name not in STEPS:
            return found
        world, place = self._world, self._place

        def risky(*arguments: Any) -> Any:
            world.meanwhile(0.02, lambda: world.edit(place))
            world.maybe_die(0.006)
            answer = found(*arguments)
            world.maybe_die(0.006)
            return answer

        return risky


def play(seed: int, people: int = 3, typing: float = 0.0, reading: float = 0.0) -> World:
    """One history. AssertionError if it loses, doubles, mixes or diverges. `typing`: the share of edits sent
    live that are sent as typed. `reading`: the share of commands during which somebody may only read."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(seed, Path(folder), seed % 3 == 0, people, typing, reading)
        with patch.object(merging, "merge", world.merged), patch.object(push, "PAUSE", 0.0):
            world.act()
            world.rest()
            world.check()
        return world
