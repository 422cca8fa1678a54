"""Changed files as a tree. If a folder contains nothing but one folder, both are shown in one row."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from rich.cells import cell_len
from textual.strip import Strip

from localstore.core.model.history import ChangedFile
from localstore.core.words import count
from tui.changed import counts_of, sign_of
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, Rows

LEVELS = 24  # folders that are told apart; what is below keeps its path
DEEPEST = 8  # levels that are indented


class Entry(NamedTuple):
    """A row of the tree: a file or a folder. `file`: index of the file among the changed files, negative for
    a folder. `first`, `last`: the range of files that belong to the row, in the order of the tree. `last` is
    the place after the last of these files."""

    path: str
    label: str
    depth: int
    file: int
    first: int
    last: int


class TreeKey(NamedTuple):
    """The key of a row of the tree. `kind`: file or folder."""

    kind: str
    path: str


class _Folder:
    def __init__(self) -> None:
        self.folders: dict[str, _Folder] = {}
        self.files: list[tuple[str, int]] = []


class Changes:
    """The changed files in the order of the tree: by name, with folders before files. `order`: for each place
    in that order the index of the file in `files`."""

    def __init__(self, files: Sequence[ChangedFile] = ()) -> None:
        self.files = tuple(files)
        root = _Folder()
        for place, file in enumerate(self.files):
            *above, name = file.path.split("/", LEVELS)
            folder = root
            for part in above:
                folder = folder.folders.setdefault(part, _Folder())
            folder.files.append((name, place))
        self.order: list[int] = []
        self.entries: list[Entry] = []
        self._walk(root)
        self.place_of = {self.files[at].path: place for place, at in enumerate(self.order)}

    def _walk(self, root: _Folder) -> None:
        """Make the rows of the tree, without recursion."""
        open_folders: list[int] = []  # rows whose last file is not known yet
        waiting: list[tuple[str, str, int, _Folder | int | None]] = [("", "", -1, root)]
        while waiting:
            path, label, depth, what = waiting.pop()
            if what is None:
                at = open_folders.pop()
                self.entries[at] = self.entries[at]._replace(last=len(self.order))
                continue
            if isinstance(what, int):
                place = len(self.order)
                self.order.append(what)
                self.entries.append(Entry(path, label, depth, what, place, place + 1))
                continue
            while depth >= 0 and not what.files and len(what.folders) == 1:
                ((name, what),) = what.folders.items()
                path, label = f"{path}/{name}", f"{label}/{name}"
            if depth >= 0:
                open_folders.append(len(self.entries))
                self.entries.append(Entry(path, label, depth, -1, len(self.order), 0))
                waiting.append(("", "", 0, None))
            prefix = f"{path}/" if path else ""
            for name, at in sorted(what.files, reverse=True):
                waiting.append((prefix + name, name, depth + 1, at))
            for name, folder in sorted(what.folders.items(), reverse=True):
                waiting.append((prefix + name, name, depth + 1, folder))

    def file(self, place: int) -> ChangedFile:
        """Returns the file at this place in the order of the tree."""
        return self.files[self.order[place]]

    def __len__(self) -> int:
        return len(self.order)


class TreeRows:
    """The rows of a tree. A row is made when it is painted. `folded`: folders whose files are hidden. `seen`:
    paths of the files that are marked as seen. `open_threads`: number of open threads, by path. `flat`: each
    row shows the whole path, as in a filtered tree."""

    def __init__(
        self,
        changes: Changes,
        folded: Collection[str],
        seen: Collection[str],
        open_threads: Mapping[str, int],
    ) -> None:
        self._changes, self._folded, self._seen, self._open = changes, folded, seen, open_threads
        self.flat = False
        self.room = 0  # columns of a row, 0 while they are unknown
        self._entries: list[Entry] = []
        until = 0  # files before this place are hidden
        for entry in changes.entries:
            if entry.first < until:
                continue
            self._entries.append(entry)
            if entry.file < 0 and entry.path in folded:
                until = entry.last
        self._places = {_key(entry): place for place, entry in enumerate(self._entries)}
        paths = [changes.file(place).path for place in range(len(changes))]
        self._seen_before = [0, *accumulate(path in seen for path in paths)]
        self._open_before = [0, *accumulate(open_threads.get(path, 0) for path in paths)]

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, index: int, /) -> Item:
        entry = self._entries[index]
        indent = "" if self.flat else "  " * min(entry.depth, DEEPEST)
        if entry.file < 0:
            return self._folder(entry, indent)
        file = self._changes.files[entry.file]
        seen = file.path in self._seen
        mark: Part = ("✓ " if seen else "  ", "good")
        name = file.path if self.flat else entry.label
        label: Part = (safe(name), "dim" if seen else "text")
        was: tuple[Part, ...] = ()
        if file.old_path and file.old_path != file.path:
            was = ((f" ← {safe(file.old_path.rpartition('/')[2])}", "dim"),)
        parts = (mark, (indent, "text"), sign_of(file), (" ", "text"), label, *was)
        return Item(_key(entry), parts, self._right(file, sum(cell_len(text) for text, _ in parts)))

    def _folder(self, entry: Entry, indent: str) -> Item:
        first, last = entry.first, entry.last
        files = last - first
        whole = self._seen_before[last] - self._seen_before[first] == files
        folded = entry.path in self._folded
        open_threads = self._open_before[last] - self._open_before[first] if folded else 0
        right: list[Part] = [(f"◆{open_threads} ", "warn")] if open_threads else []
        if folded:
            right.append((f"{count(files, 'file')} ", "dim"))
        mark: Part = ("✓ " if whole else "  ", "good")
        label: Part = (f"{'▸' if folded else '▾'} {safe(entry.label)}", "dim" if whole else "accent")
        return Item(_key(entry), (mark, (indent, "text"), label), tuple(right))

    def _right(self, file: ChangedFile, used: int) -> tuple[Part, ...]:
        """Returns the number of threads and of lines. The lines are left out if the name of the file needs
        their room. `used`: the columns of its name, and of what is before it."""
        open_threads = self._open.get(file.path, 0)
        threads: list[Part] = [(f"◆{open_threads} ", "warn")] if open_threads else []
        both = (*threads, *counts_of(file), (" ", "text"))
        fits = not self.room or used + 1 + sum(cell_len(text) for text, _ in both) <= self.room
        return both if fits else tuple(threads)

    def text_of(self, index: int) -> str:
        """Returns the path of the file in the row `index`, and "" for a folder. Filters look for the typed
        words in it."""
        entry = self._entries[index]
        return entry.path if entry.file >= 0 else ""

    def place_of(self, key: Hashable) -> int | None:
        return self._places.get(key) if isinstance(key, TreeKey) else None


def _key(entry: Entry) -> TreeKey:
    return TreeKey("file" if entry.file >= 0 else "folder", entry.path)


class FileTree(Lines):
    """The list that shows the tree of changed files. While it is filtered, its rows show whole paths."""

    def show(self, rows: Rows, cursor: Hashable | None = None) -> None:
        if isinstance(rows, TreeRows):
            rows.flat = bool(self._filter.strip())
        super().show(rows, cursor)

    def render_line(self, y: int) -> Strip:
        if isinstance(self._all, TreeRows):
            self._all.room = self.room - self.marked
        return super().render_line(y)

    def filter(self, text: str) -> None:
        if isinstance(self._all, TreeRows):
            self._all.flat = bool(text.strip())
        super().filter(text)
