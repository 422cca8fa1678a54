"""A folder that changes at random in every way that people and programs change folders."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import stat
from pathlib import Path

FILES = ("a", "b.txt", "c.log", "keep.log", "con", b"odd\xff", "tab\tname")
FOLDERS = ("x", "y", "build", "node_modules", "deep", b"bytes\xfe", ".git", "a")
RULES = (".gitignore", ".svcignore", ".stignore")
PATTERNS = ("", "*.log", "x/", "y/*", "!y/a", "build", "!build/", "!keep.log", "/x/y", "deep/**", "!x/b.txt")
EXCHANGE = 2
_libc = ctypes.CDLL(None, use_errno=True)


class Changing:
    """Changes `root` one act at a time; `acts` names those that were done. No seed both keeps files open and
    gives them second names: who writes by a name that is deleted or unwatched changes the other one unheard.
    """

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.chance = root, random.Random(seed)
        self.acts: list[str] = []
        self._open: list[int] = []
        left_out = "do_give_a_second_name" if seed % 2 else "do_keep_open_and_write_later"
        names = [name for name in dir(self) if name.startswith("do_") and name != left_out]
        self._all = [getattr(self, name) for name in names]

    def close(self) -> None:
        for fd in self._open:
            os.close(fd)

    def act(self) -> None:
        """One change; what the system refuses is none."""
        act = self.chance.choice(self._all)
        try:
            what = act()
        except (OSError, shutil.Error) as error:
            what = f"refused: {error}"
        self.acts.append(f"{act.__name__} {what}")

    # --- choices

    def folder(self) -> bytes:
        return self.chance.choice([found[0] for found in os.walk(os.fsencode(self.root)) if _ours(found[0])])

    def name(self, names: tuple[str | bytes, ...]) -> bytes:
        return os.fsencode(self.chance.choice(names))

    def entry(self, directories: bool) -> bytes:
        """An entry that is there, else any name."""
        found = [
            os.path.join(above, name)
            for above, folders, files in os.walk(os.fsencode(self.root))
            for name in (folders if directories else files)
            if _ours(above) and name != b".svc"
        ]
        return self.chance.choice(found) if found else os.path.join(os.fsencode(self.root), b"a")

    def regular(self) -> bytes:
        path = self.entry(False)
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise OSError("a pipe would wait for its other end")
        return path

    def place(self, names: tuple[str | bytes, ...]) -> bytes:
        return os.path.join(self.folder(), self.name(names))

    def data(self) -> bytes:
        return self.chance.choice([b"one", b"two", b"three\n", b"\0" * 5, b""])

    # --- acts

    def do_write(self) -> bytes:
        path = self.place(FILES)
        self._write(path)
        return path

    do_write_again = do_write

    def do_edit_in_place_keeping_the_times(self) -> bytes:
        path = self.regular()
        was = os.stat(path)
        with open(path, "r+b") as file:
            file.write(bytes(self.chance.choices(b"abc", k=was.st_size)))
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
        return path

    def do_append(self) -> bytes:
        path = self.regular()
        with open(path, "ab") as file:
            file.write(b"more")
        return path

    def do_keep_open_and_write_later(self) -> bytes:
        path = self.regular()
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        self._open.append(fd)
        return path

    def do_write_what_is_open(self) -> int:
        fd = self.chance.choice(self._open or [-1])
        return os.write(fd, b"later")

    def do_save_as_editors_do(self) -> bytes:
        path = self.regular()
        self._write(path + b".new")
        os.replace(path + b".new", path)
        return path

    def do_delete(self) -> bytes:
        path = self.entry(False)
        os.unlink(path)
        return path

    def do_rename(self) -> tuple[bytes, bytes]:
        path, new = self.entry(False), self.place((*FILES, *RULES))
        os.replace(path, new)
        return path, new

    def do_make_folder(self) -> bytes:
        path = self.place(FOLDERS)
        os.mkdir(path)
        return path

    def do_make_tree(self) -> bytes:
        path = self.place(FOLDERS)
        os.makedirs(os.path.join(path, self.name(FOLDERS), self.name(FOLDERS)))
        for above, _, _ in os.walk(path):
            self._write(os.path.join(above, self.name(FILES)))
        return path

    def do_rename_folder(self) -> tuple[bytes, bytes]:
        path, new = self.entry(True), self.place(FOLDERS)
        os.rename(path, new)
        return path, new

    do_rename_folder_again = do_rename_folder

    def do_exchange(self) -> tuple[bytes, bytes]:
        directories = self.chance.random() < 0.7
        path, other = self.entry(directories), self.entry(self.chance.random() < 0.7)
        if _libc.renameat2(-100, path, -100, other, EXCHANGE):
            raise OSError(ctypes.get_errno(), "exchange")
        return path, other

    def do_delete_folder(self) -> bytes:
        path = self.entry(True)
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise OSError("a link to a pipe would wait")
        shutil.rmtree(path)
        return path

    def do_turn_into_the_other_kind(self) -> bytes:
        path = self.entry(self.chance.random() < 0.5)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
            self._write(path)
        else:
            os.unlink(path)
            os.mkdir(path)
            self._write(os.path.join(path, self.name(FILES)))
        return path

    def _write(self, path: bytes, data: bytes | None = None) -> None:
        """Without waiting for the other end of a pipe."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o666)
        os.write(fd, self.data() if data is None else data)
        os.close(fd)

    def do_link(self) -> bytes:
        path = self.place((*FILES, *FOLDERS))
        os.symlink(self.chance.choice([b"a", b"..", b"x"]), path)
        return path

    def do_give_a_second_name(self) -> tuple[bytes, bytes]:
        """Beside the first: a link from a folder that nobody watches is what no event tells of."""
        path = self.entry(False)
        new = os.path.join(os.path.dirname(path), self.name(FILES))
        os.link(path, new, follow_symlinks=False)
        return path, new

    def do_write_rules(self) -> tuple[bytes, str]:
        path = self.place(RULES)
        text = "\n".join(self.chance.sample(PATTERNS, 2))
        self._write(path, text.encode())
        return path, text

    do_write_rules_again = do_write_rules

    def do_change_permissions(self) -> tuple[bytes, int]:
        path, mode = self.entry(self.chance.random() < 0.5), self.chance.choice([0, 0o500, 0o644, 0o755])
        if os.path.islink(path):
            raise OSError("it may lead out of the folder")
        os.chmod(path, mode)
        return path, mode

    def do_become_a_repository(self) -> bytes:
        path = os.path.join(self.entry(True), self.chance.choice([b".git", b".svc"]))
        self._write(path)
        return path

    def do_make_a_pipe(self) -> bytes:
        path = self.place(FILES)
        os.mkfifo(path)
        return path


def _ours(path: bytes) -> bool:
    return b".svc" not in path.split(b"/")
