"""What a person does to a folder, at random. Every edit that writes something writes a word of its own, or
makes of an old one what anybody else would make of it: two machines then have the same edit."""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from pathlib import Path

from localstore.core.model.limits import IGNORE_FILE_BYTES
from localstore.core.paths import TEMPORARY
from tests.campaign.world import Machine

WORD = re.compile(rb"(?<!\w)k\d+x*(?!\w)")
ANY_WORD = re.compile(rb"[\w\x80-\xff]+")
ORDINARY = ["the", "return x", "    pass", "a", "{", "}", "", "é 世 😀", "e\u0301\r", "-" * 60]
NAMES = [
    "a.txt", "b.py", "README.md", "d", "d/x.txt", "d/y.bin", "d/e/z.txt", "c.bin", "Case.txt", "case.txt",
    "naïve ü.txt", "世界/😀.md", "empty", "d/e", "e\u0301.txt", "big.bin", ".gitignore", "-n", "a b", "$(x)",
]  # fmt: skip
EDITS = (
    ["write"] * 8
    + ["alike"] * 4
    + ["bytes"] * 3
    + ["delete", "rename", "empty", "cut", "folder", "copy", "huge"]
)


def temporary(path: str) -> bool:
    """Whether svc makes and removes such a file beside people's own."""
    return TEMPORARY.fullmatch(path.rpartition("/")[2]) is not None


def words(data: bytes) -> Counter[bytes]:
    return Counter(WORD.findall(data))


def all_words(data: bytes) -> set[bytes]:
    """Every word of a text, whoever wrote it; none of bytes."""
    return set() if b"\0" in data else set(ANY_WORD.findall(data))


class Person:
    """Edits the folders of machines. `touched`: the path that the last edit was about."""

    def __init__(self, chance: random.Random) -> None:
        self.random = chance
        self.made = 0
        self.touched = ""

    def word(self) -> bytes:
        self.made += 1
        return b"k%d" % self.made

    def edit(self, machine: Machine) -> str:
        """One thing done to the folder; what it was."""
        what = self.random.choice(EDITS)
        try:
            getattr(self, f"_{what}")(machine)
        except OSError:
            pass  # a file where a directory is needed, and the like: a person is told so by the shell
        finally:
            self._keep_rules_short(machine)
        return what

    def _keep_rules_short(self, machine: Machine) -> None:
        """An ignore file over its limit stops every command until somebody shortens it."""
        rules = machine.folder / ".gitignore"
        if rules.is_file() and rules.stat().st_size > IGNORE_FILE_BYTES // 4:
            rules.unlink()

    def _path(self, machine: Machine, existing: bool = True) -> Path:
        known = sorted(path for path in machine.files() if not temporary(path))  # nobody opens those
        old = existing and known and self.random.random() < 0.8
        self.touched = self.random.choice(known if old else NAMES)
        return machine.folder / self.touched

    def _write(self, machine: Machine) -> None:
        path = self._path(machine)
        old = path.read_bytes() if path.exists() else b""
        lines = old.split(b"\n")
        if b"\0" in old:
            lines = [old]
        at = self.random.randrange(len(lines) + 1)
        new = [self.random.choice(ORDINARY).encode() for _ in range(self.random.randrange(3))]
        new.append(self.random.choice(ORDINARY).encode() + b" " + self.word() + b" ")
        self._save(path, b"\n".join(lines[:at] + new + lines[at:]))

    def _alike(self, machine: Machine) -> None:
        """The edit that anybody would make of a word."""
        path = self._path(machine)
        data = path.read_bytes()
        found = words(data)
        if found:
            word = self.random.choice(sorted(found))
            if word + b"x" not in found:
                self._save(path, re.sub(rb"(?<!\w)" + word + rb"(?!\w)", word + b"x", data, count=1))

    def _cut(self, machine: Machine) -> None:
        path = self._path(machine)
        lines = path.read_bytes().split(b"\n")
        at = self.random.randrange(len(lines))
        self._save(path, b"\n".join(lines[:at] + lines[at + self.random.randrange(1, 4) :]))

    def _bytes(self, machine: Machine) -> None:
        path = self._path(machine)
        size = self.random.choice([0, 1, 300, 70_000])
        self._save(path, b"\0" + self.word() + b" " + self._noise(size))

    def _noise(self, size: int) -> bytes:
        """Random bytes without any word."""
        return self.random.randbytes(size).replace(b"k", b"\xff")

    def _huge(self, machine: Machine) -> None:
        lines = [b"line %d of many" % self.random.randrange(50) for _ in range(4000)]
        lines[self.random.randrange(4000)] = self.word()
        if self.random.random() < 0.4:
            lines.append(b"\0" + self._noise(1_500_000))
        self._save(self._path(machine), b"\n".join(lines))

    def _empty(self, machine: Machine) -> None:
        self._save(self._path(machine), b"")

    def _delete(self, machine: Machine) -> None:
        self._path(machine).unlink()

    def _rename(self, machine: Machine) -> None:
        old, new = self._path(machine), self._path(machine, existing=False)
        new.parent.mkdir(parents=True, exist_ok=True)
        old.rename(new)

    def _copy(self, machine: Machine) -> None:
        old, new = self._path(machine), self._path(machine, existing=False)
        self._save(new, old.read_bytes())

    def _folder(self, machine: Machine) -> None:
        """A file becomes a directory, or the other way round."""
        self.touched = self.random.choice(["d", "d/e", "a.txt", "世界", "empty"])
        path = machine.folder / self.touched
        if path.is_dir():
            shutil.rmtree(path)
            path.write_bytes(b"was a directory " + self.word() + b"\n")
        else:
            path.unlink(missing_ok=True)
            path.mkdir(parents=True)
            (path / "in.txt").write_bytes(b"below " + self.word() + b"\n")

    def _save(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.random.random() < 0.5:  # as editors do: a new file renamed over the old one
            fresh = path.with_name(path.name + "~")
            fresh.write_bytes(data)
            try:
                fresh.rename(path)
            finally:
                fresh.unlink(missing_ok=True)
        else:
            path.write_bytes(data)
