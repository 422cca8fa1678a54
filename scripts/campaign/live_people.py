"""People who write, rename and delete in watched folders, and checks of what became of their words."""

from __future__ import annotations

import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from localstore.folder.files import Files

WORD = re.compile(rb"\bw[a-z]\d+x\b")
DOCUMENT = re.compile(rb"\bdocument (\S+)\b")
PAUSE = (0.02, 0.3)  # seconds between two acts
LINES = 12
ASIDE = ".sync-conflict-"


def files_of(folder: Path) -> dict[str, bytes]:
    """Path → content of every file in a working copy, except svc's own files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(".svc") and "/.svc-" not in f"/{name}" and path.is_file():
            with suppress(OSError):
                found[name] = path.read_bytes()
    return found


class Person(threading.Thread):
    """A person at one device, who reads, changes and writes texts as editors do. A file that is deleted or
    replaced is first moved to another folder (the grave), so that its last bytes are known."""

    def __init__(self, base: Path, name: str, letter: str, seed: int, written: list[bytes]) -> None:
        super().__init__(name=f"person {name}")
        self.folder, self._grave, self._letter = base / name, base / f"grave-{name}", letter
        self._grave.mkdir(exist_ok=True)
        self._files, self._inside = Files(base), name
        self._chance, self._written = random.Random(seed), written
        self.stopped = threading.Event()
        self.acts: Counter[str] = Counter()

    def run(self) -> None:
        acts = (
            (self._append, 40), (self._rewrite_bytes, 14), (self._new_text, 6), (self._new_bytes, 5),
            (self._rename, 16), (self._rename_folder, 5), (self._remove, 5), (self._change_kind, 4),
            (self._make_folder_of_file, 2), (self._make_file_of_folder, 1),
        )  # fmt: skip
        choices, weights = [act for act, _ in acts], [weight for _, weight in acts]
        while not self.stopped.wait(self._chance.uniform(*PAUSE)):
            self._files.forget()  # folders may have other names now
            act: Callable[[], bool] = self._chance.choices(choices, weights)[0]
            with suppress(FileNotFoundError, FileExistsError, NotADirectoryError, IsADirectoryError):
                if act():
                    self.acts[act.__name__.strip("_")] += 1
        self._files.close()

    def read_deleted(self) -> bytes:
        """The joined contents of all files that this person deleted or replaced."""
        return b"\n".join(path.read_bytes() for path in self._grave.rglob("*") if path.is_file())

    # --- acts; False: there was nothing to do

    def _append(self) -> bool:
        path = self._pick(lambda name: name.endswith(".txt"))
        if path is None:
            return False
        file = self.folder / path
        lines = file.read_bytes().split(b"\n")
        mine = f"{self._letter}: ".encode()
        at = next((number for number, line in enumerate(lines) if line.startswith(mine)), None)
        if at is None:
            return False
        lines[at] += b" " + self._word()
        fresh = self._grave.parent / f"{self._inside}.swp"
        fresh.write_bytes(b"\n".join(lines))
        try:
            if not file.exists():  # renamed meanwhile: this is not the place to make it anew
                raise FileNotFoundError
            fresh.replace(file)
        except OSError:
            self._written.pop()
            raise
        return True

    def _new_text(self) -> bool:
        number = f"{self._letter}{len(self._written)}"
        return self._place(f"{self._folder()}text-{number}.txt", text_of(number, self._word()))

    def _new_bytes(self) -> bool:
        number = f"{self._letter}{len(self._written)}"
        return self._place(f"{self._folder()}bytes-{number}.bin", bytes_of(number, self._word()))

    def _rewrite_bytes(self) -> bool:
        path = self._pick(lambda name: name.endswith(".bin"))
        if path is None:
            return False
        return self._replace(path, bytes_of(_document(self.folder / path), self._word()))

    def _change_kind(self) -> bool:
        path = self._pick(lambda name: name.endswith((".bin", ".txt")))
        if path is None:
            return False
        old = (self.folder / path).read_bytes()
        number, word = _document(self.folder / path), self._word()
        return self._replace(path, text_of(number, word) if old.startswith(b"\0") else bytes_of(number, word))

    def _rename(self) -> bool:
        path = self._pick(lambda name: True)
        if path is None:
            return False
        stem, dot, end = path.rpartition("/")[2].partition(".")
        mark = f"-r{self._letter}{self._chance.randrange(1000)}"
        new = f"{self._folder()}{stem.partition('-r')[0]}{mark}{dot}{end}"
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        self._files.move(f"{self._inside}/{path}", f"{self._inside}/{new}")
        return True

    def _rename_folder(self) -> bool:
        folders = [path.name for path in self.folder.iterdir() if path.is_dir() and path.name[0] != "."]
        if not folders:
            return False
        new = f"dir-{self._letter}{self._chance.randrange(1000)}"
        self._files.move(f"{self._inside}/{self._chance.choice(sorted(folders))}", f"{self._inside}/{new}")
        return True

    def _remove(self) -> bool:
        path = self._pick(lambda name: True)
        if path is None:
            return False
        self._files.move(f"{self._inside}/{path}", self._choose_grave())
        return True

    def _make_folder_of_file(self) -> bool:
        path = self._pick(lambda name: True)
        if path is None:
            return False
        self._files.move(f"{self._inside}/{path}", self._choose_grave())
        number = f"{self._letter}{len(self._written)}"
        return self._place(f"{path}/text-{number}.txt", text_of(number, self._word()))

    def _make_file_of_folder(self) -> bool:
        folders = [path.name for path in self.folder.iterdir() if path.is_dir() and path.name[0] != "."]
        if len(folders) < 4:
            return False
        name = self._chance.choice(sorted(folders))
        self._files.move(f"{self._inside}/{name}", self._choose_grave())
        number = f"{self._letter}{len(self._written)}"
        return self._place(name, bytes_of(number, self._word()))

    # --- the parts

    def _word(self) -> bytes:
        word = f"w{self._letter}{len(self._written)}x".encode()
        self._written.append(word)
        return word

    def _folder(self) -> str:
        folders = [f"{path.name}/" for path in self.folder.iterdir() if path.is_dir() and path.name[0] != "."]
        return self._chance.choice(["", f"dir-{self._letter}/", *sorted(folders)])

    def _pick(self, fits: Callable[[str], bool]) -> str | None:
        names = [
            name for name in files_of(self.folder) if ASIDE not in name and name[0] != "." and fits(name)
        ]
        return self._chance.choice(names) if names else None

    def _choose_grave(self) -> str:
        return f"{self._grave.name}/{len(list(self._grave.iterdir()))}"

    def _place(self, path: str, content: bytes) -> bool:
        """Write a new file. If a folder or another file is at its path, writes nothing and returns False."""
        try:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (self.folder / path).open("xb") as file:
                file.write(content)
        except OSError:
            self._written.pop()
            raise
        return True

    def _replace(self, path: str, content: bytes) -> bool:
        """Replace the content of a file, after moving the old file to the folder for replaced files. Returns
        whether it worked."""
        buried = self._choose_grave()
        (self._grave.parent / buried).write_bytes(content)
        try:
            self._files.exchange(buried, f"{self._inside}/{path}")
        except OSError:
            (self._grave.parent / buried).unlink()
            self._written.pop()
            raise
        return True


def text_of(number: str, word: bytes) -> bytes:
    middle = "".join(f"line {at} of document {number} that nobody changes\n" for at in range(LINES))
    return f"document {number}\na: \n{middle}b: \n{middle}c: \n".encode() + word + b"\n"


def bytes_of(number: str, word: bytes) -> bytes:
    return b"\0 document " + number.encode() + b" holds " + word + b"\n"


def _document(file: Path) -> str:
    found = DOCUMENT.search(file.read_bytes())
    return found[1].decode() if found else "none"


def faults_of(files: Mapping[str, bytes], written: Iterable[bytes], deleted: bytes) -> tuple[list[str], int]:
    """Find words that are lost, doubled, or in two different documents. A document keeps its number in its
    text when its file is renamed. Returns (a line for each fault, how many documents are in files at several
    paths). `written`: all words that people wrote. `deleted`: contents that people deleted or replaced on
    purpose."""
    faults, places = [], dict[bytes, list[str]]()
    names: dict[bytes, set[bytes]] = {}
    for path, content in files.items():
        document = DOCUMENT.search(content)
        for word, count in Counter(WORD.findall(content)).items():
            places.setdefault(word, []).append(path)
            names.setdefault(word, set()).add(document[1] if document else b"")
            if count > 1:
                faults.append(f"{word.decode()} stands {count} times in {path}")
    gone = set(WORD.findall(deleted))
    faults += [f"{word.decode()} is lost" for word in written if word not in places and word not in gone]
    faults += [
        f"{word.decode()} is in documents {sorted(found)}: {places[word]}"
        for word, found in names.items()
        if len(found) > 1
    ]
    twice = {DOCUMENT.search(files[where[0]]) for where in places.values() if len(where) > 1}
    return faults, len({one[1] for one in twice if one})
