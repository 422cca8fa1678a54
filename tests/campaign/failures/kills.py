"""Commands killed right after their n-th write of the file system, repeated, and held against what must be.

`die_after` is the kill; a `Scenario` is one command with what stands before and after it; `rounds` walks the
points. The suite takes samples (`test_kills.py`), `scripts/campaign/kills.py` every point.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

from tests.campaign.conftest import Place
from tests.campaign.world import Broken, Machine

WRITES = frozenset(
    "write pwrite open mkdir rmdir rename replace unlink remove link ftruncate".split()  # noqa: SIM905
)
BUFFERED = frozenset(("write", "writelines", "flush", "close"))
SQL = frozenset(("execute", "executescript"))


def die_after(number: int) -> None:
    """Kill this process once it has made its `number`-th write: a call of the system that changes files, or a
    step of the database."""
    left = number

    def count(frame: FrameType, event: str, called: Any) -> None:
        nonlocal left
        if event == "c_return":
            counts = _changes_files(frame, called)
        else:
            counts = event == "return" and frame.f_code.co_name == "_renameat2"
        if counts:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def _changes_files(frame: FrameType, called: Any) -> bool:
    name = getattr(called, "__name__", "")
    if getattr(called, "__module__", None) == "posix":
        return name in WRITES and "importlib" not in frame.f_code.co_filename
    if frame.f_code.co_name == "step" and frame.f_code.co_filename.endswith("localstore/record/database.py"):
        return name in SQL
    owner = getattr(called, "__self__", None)
    return name in BUFFERED and isinstance(owner, io.BufferedWriter)


def unwanted(machine: Machine) -> list[str]:
    """Files that svc left and no person made: conflict copies and temporary files."""
    return [
        name
        for name in machine.files()
        if ".sync-conflict-" in name or name.split("/")[-1].startswith(".svc-")
    ]


def same(machine: Machine, expected: dict[str, bytes]) -> None:
    """The folder holds exactly this."""
    found = machine.files()
    if found != expected:
        wrong = sorted(
            {name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name)}
        )
        raise Broken(f"{machine.name}: {wrong[:8]} of {len(wrong)} differ")


class Scenario:
    """One command under kills. `ready` makes the state before a round, `command` is what dies, and `after`
    repeats it and raises Broken if something is lost, left over or brought back."""

    def __init__(self, place: Place) -> None:
        self.place, self.ann = place, place.ann
        self.begin()

    def begin(self) -> None:
        """What all rounds share."""

    def ready(self, number: int) -> None: ...

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        raise NotImplementedError

    def after(self) -> None: ...

    def killed(self, number: int) -> bool:
        """One round; whether the command was killed before its end."""
        self.ready(number)
        machine, words = self.command()
        ran = machine.run(*words, before=lambda: die_after(number), where=self.where(machine))
        if ran.code not in (0, -signal.SIGKILL):
            raise Broken(f"{' '.join(words)} at {number} ended with {ran.code}: {ran.err}")
        try:
            self.after()
        except AssertionError as error:
            raise Broken(f"killed after write {number} of svc {' '.join(words)}: {error}") from error
        return ran.code != 0

    def where(self, machine: Machine) -> Path:
        return machine.folder

    def nothing_to_push(self, machine: Machine) -> None:
        done = machine.ok("push", "-m", "nothing")
        if "Nothing to seal" not in done.out + done.err:
            raise Broken(f"{machine.name} had something to push: {done.out}{done.err}")


def rounds(scenario: Scenario, first: int = 1, stride: int = 1, most: int = 10_000) -> int:
    """Kill at `first`, `first + stride`, … until the command outlives the count; the number of kills."""
    for count, number in enumerate(range(first, first + stride * most, stride)):
        if not scenario.killed(number):
            return count
    return most


def tree(number: int) -> dict[str, bytes]:
    """A small project: texts, a binary, folders; every text says `number`."""
    files = {f"src/{name}.py": f"# {name}\nvalue = {number}\n".encode() for name in "abcdefgh"}
    files |= {f"old/{name}.txt": f"{name} of {number}\n".encode() for name in "abcdef"}
    files["logo.bin"] = b"\0logo" + bytes([number % 256]) * 3000
    files["README.md"] = b"# Project\n"
    return files


def lay(machine: Machine, files: dict[str, bytes]) -> None:
    """Make the folder hold exactly these files."""
    for name in machine.files().keys() - files.keys():
        (machine.folder / name).unlink()
    for name, data in files.items():
        target = machine.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != data:
            target.write_bytes(data)


class Clone(Scenario):
    """A clone dies, the branch moves on (files changed and deleted), the clone is repeated."""

    def begin(self) -> None:
        self.bob = self.place.machine("bob", clone=False)

    def ready(self, number: int) -> None:
        lay(self.ann, tree(number))
        self.ann.ok("push", "-m", f"tree {number}")
        self.bob.folder = self.bob.folder.parent / f"clone-{number}"

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        return self.bob, ("repo", "clone", self.place.repo, str(self.bob.folder))

    def where(self, machine: Machine) -> Path:
        return self.place.base

    def after(self) -> None:
        whole = (self.bob.folder / ".svc/state.json").exists() and len(self.bob.files()) == len(
            self.ann.files()
        )
        left = {name: data for name, data in self.ann.files().items() if not name.startswith("old/")}
        lay(self.ann, left | {"src/a.py": b"# a, moved on\n", "new.txt": b"new\n"})
        self.ann.ok("push", "-m", "moved on")
        done = self.bob.run(*self.command()[1], where=self.place.base)
        if done.code and not (whole and "is not empty" in done.err):
            raise Broken(f"the repeated clone: {done.err}")
        self.bob.ok("pull")
        same(self.bob, self.ann.files())
        self.nothing_to_push(self.bob)


class Pulled(Scenario):
    """A pull dies; the next one finishes it."""

    words: tuple[str, ...] = ("pull",)

    def begin(self) -> None:
        lay(self.ann, tree(0))
        self.ann.ok("push", "-m", "first")
        self.bob = self.place.machine("bob")

    def ready(self, number: int) -> None:
        files = tree(number)
        files.pop("old/f.txt" if number % 2 else "old/e.txt")
        lay(self.ann, files)
        self.ann.ok("push", "-m", f"tree {number}")

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        return self.bob, self.words

    def after(self) -> None:
        self.bob.ok(*self.words)
        same(self.bob, self.ann.files())
        self.nothing_to_push(self.bob)


class Forced(Pulled):
    """A forced pull dies: what was edited is in the trash once, or still in the folder."""

    words = ("pull", "--force")

    def ready(self, number: int) -> None:
        super().ready(number)
        self.mine = f"# mine {number}\n".encode()
        self.place.write(self.bob, "src/b.py", self.mine)

    def after(self) -> None:
        if self.mine not in [*self.bob.files().values(), *self.bob.trash()]:
            raise Broken("the edit is lost")
        super().after()


class Pushed(Scenario):
    """A push dies; the next one finishes it and nobody has a file twice."""

    def begin(self) -> None:
        self.bob = self.place.machine("bob")

    def ready(self, number: int) -> None:
        files = tree(number)
        files.pop("old/f.txt" if number % 2 else "old/e.txt")
        lay(self.ann, files)

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        return self.ann, ("push", "-m", "work")

    def after(self) -> None:
        before = self.ann.files()
        self.ann.ok("push", "-m", "again")
        self.bob.ok("pull")
        same(self.ann, before)
        same(self.bob, before)


class RelayKilled(Pushed):
    """The relay dies while a push is under way, after so many sixtieths of the time that a push takes. What
    was acknowledged is there; the next push finishes the rest."""

    def begin(self) -> None:
        super().begin()
        self.ready(0)
        began = time.monotonic()
        self.ann.ok("push", "-m", "timed")
        self.step = (time.monotonic() - began) / 60

    def killed(self, number: int) -> bool:
        self.ready(number)
        machine, words = self.command()
        running = machine.begin(*words)
        time.sleep(number * self.step)
        over = running.over()
        self.place.node.kill()
        self.place.node.start()
        ran = running.wait()
        try:
            if ran.code == 0:
                self.nothing_to_push(machine)
            self.after()
        except AssertionError as error:
            raise Broken(f"relay killed at {number}/60, push ended with {ran.code}: {error}") from error
        return not over


class Switched(Scenario):
    """A switch dies; one of the paths is a text here and a binary there. Pull and switch go on."""

    def begin(self) -> None:
        lay(self.ann, tree(0) | {"both": b"a text\n"})
        self.ann.ok("push", "-m", "main")
        self.ann.ok("repo", "branch", "other")
        self.ann.ok("switch", "other")
        lay(self.ann, tree(1) | {"both": b"\xff\x00 bytes", "only.txt": b"only here\n"})
        self.ann.ok("push", "-m", "other")
        self.trees = {"other": self.ann.files()}
        self.ann.ok("switch", "main")
        self.trees["main"] = self.ann.files()

    def ready(self, number: int) -> None:
        branch = self._branch()
        self.ann.ok("pull", "--force")
        self.target = "main" if branch == "other" else "other"

    def _branch(self) -> str:
        return str(self.ann.ok("repo", "status", "--json", "branch").json()["branch"])

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        return self.ann, ("switch", self.target)

    def after(self) -> None:
        self.ann.ok("pull", "--merge")
        self.ann.ok("switch", self.target)
        same(self.ann, self.trees[self.target])
        self.nothing_to_push(self.ann)


class SwitchedEdited(Switched):
    """The same, and the path of two kinds is edited after the kill: the edit is kept, and no command ends in
    an error."""

    def after(self) -> None:
        self.place.write(self.ann, "both", b"edited\n")
        for words in (("pull", "--merge"), ("switch", self.target, "--merge")):
            self.ann.joined(*words)
        kept = [*self.ann.files().values(), *self.ann.trash()]
        if b"edited\n" not in kept:
            raise Broken("the edit is lost")
        self.ann.ok("pull", "--force")
        for name in unwanted(self.ann):
            (self.ann.folder / name).unlink()
        self.ann.ok("pull", "--merge")
        same(self.ann, self.trees[self.target])


class Restored(Scenario):
    """A restore dies. Files that nobody else touched have no copies beside them after the repeat."""

    def begin(self) -> None:
        lay(self.ann, tree(0))
        self.ann.ok("push", "-m", "first")
        self.sealed = self.ann.files()

    def ready(self, number: int) -> None:
        self.edits = {
            name: data + b"\n# edited %d\n" % number for name, data in tree(0).items() if "old" in name
        }
        self.edits["logo.bin"] = b"\0edited %d" % number
        for name, data in self.edits.items():
            self.place.write(self.ann, name, data)

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        return self.ann, ("restore", "old", "logo.bin")

    def after(self) -> None:
        kept = [*self.ann.files().values(), *self.ann.trash()]
        lost = [name for name, data in self.edits.items() if data not in kept]
        if lost:
            raise Broken(f"{lost} are lost")
        self.ann.ok("restore", "old", "logo.bin")
        same(self.ann, self.sealed)
        self.nothing_to_push(self.ann)


class Relinked(Scenario):
    """`.svc` is deleted, linking again dies, and the branch moves on."""

    def begin(self) -> None:
        lay(self.ann, tree(0))
        self.ann.ok("push", "-m", "first")
        self.bob = self.place.machine("bob")

    def ready(self, number: int) -> None:
        self.ann.ok("pull", "--merge")
        lay(self.ann, tree(number))
        self.ann.ok("push", "-m", f"tree {number}")
        self.bob.ok("pull", "--merge")
        lay(self.ann, self.ann.files() | {"src/a.py": b"# a, moved on\n"})
        (self.ann.folder / "old/a.txt").unlink()
        self.ann.ok("push", "-m", "moved on")
        for file in (self.bob.folder / ".svc").iterdir():
            file.unlink()
        (self.bob.folder / ".svc").rename(self.bob.folder.parent / f"old-{number}")

    def command(self) -> tuple[Machine, tuple[str, ...]]:
        return self.bob, ("repo", "init", self.place.repo)

    def after(self) -> None:
        if not (self.bob.folder / ".svc/repo.json").exists():
            self.bob.ok(*self.command()[1])
        self.bob.ok("pull", "--merge")
        if unwanted(self.bob):
            raise Broken(f"left over: {unwanted(self.bob)}")
        same(self.bob, self.ann.files())
        self.nothing_to_push(self.bob)


SCENARIOS: dict[str, type[Scenario]] = {
    "push": Pushed,
    "relay": RelayKilled,
    "pull": Pulled,
    "force": Forced,
    "switch": Switched,
    "switch-edited": SwitchedEdited,
    "restore": Restored,
    "clone": Clone,
    "relink": Relinked,
}
