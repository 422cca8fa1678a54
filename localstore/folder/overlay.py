"""An overlay over a folder, for `--dry-run`. Writes go to a scratch folder, and moves and removals are only
remembered in memory. The folder itself is not changed."""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from localstore.core.paths import parents
from localstore.folder.files import Blocked, Content, FetchedFile, Files
from localstore.record.entry import Kind

Place = str | Path | None
"""Where the bytes of a path are: at another path of the folder, at a file of the scratch folder, nowhere."""


class Placeholder(bytes):
    """Stands for the bytes of a file in a dry run. Digest, kind and size are known; the bytes are fetched
    only if they are read."""

    digest: bytes
    kind: Kind
    size: int

    @classmethod
    def of(cls, digest: bytes, kind: Kind, size: int) -> Placeholder:
        placeholder = cls()
        placeholder.digest, placeholder.kind, placeholder.size = digest, kind, size
        return placeholder


class OverlayFiles(Files):
    """The files below `root` as they would be after changes that exist only in this object. `fetch`: a
    function that returns the bytes of a placeholder."""

    def __init__(self, root: Path, scratch: Path, fetch: Callable[[Placeholder], bytes]) -> None:
        super().__init__(root)
        self._scratch, self._fetch = scratch, fetch
        self._places: dict[str, Place] = {}
        self._promises: dict[Path, Placeholder] = {}
        self._numbers = itertools.count()
        scratch.mkdir(exist_ok=True)

    @property
    def touched(self) -> list[str]:
        """Paths that were written, moved or removed."""
        return list(self._places)

    def find_known(self, path: str) -> tuple[Kind, int, bytes] | None:
        place = self._place(path)
        promise = self._promises.get(place) if isinstance(place, Path) else None
        return (promise.kind, promise.size, promise.digest) if promise is not None else None

    # --- reading

    def stat(self, path: str) -> os.stat_result | None:
        place = self._place(path)
        status = super().stat(place) if isinstance(place, str) else place.lstat() if place else None
        return self._scratch.stat() if status is None and self._made_below(path) else status

    def open_with_stat(self, path: str) -> tuple[int, os.stat_result]:
        place = self._place(path)
        if place is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        if isinstance(place, str):
            return super().open_with_stat(place)
        promise = self._promises.pop(place, None)
        if promise is not None:
            place.write_bytes(self._fetch(promise))
        opened = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        return opened, os.fstat(opened)

    def link_target(self, path: str) -> str:
        place = self._place(path)
        if isinstance(place, str):
            return super().link_target(place)
        raise OSError(errno.EINVAL, "not a link", path)

    def names(self, path: str) -> list[str]:
        place = self._place(path)
        entries = set(super().names(place)) if isinstance(place, str) and super().stat(place) else set()
        prefix = path + "/"
        for placed, where in self._places.items():
            if not placed.startswith(prefix):
                continue
            name, _, below = placed.removeprefix(prefix).partition("/")
            if where is not None:
                entries.add(name)
            elif not below and not self._made_below(placed):
                entries.discard(name)
        return sorted(entries)

    # --- changing

    def make_executable(self, path: str) -> None:
        """Does nothing, because an overlay has no file modes."""

    def create(self, path: str, parts: Iterable[bytes], mode: int | None, sync: bool) -> os.stat_result:
        self._require_free(path)
        target = self._scratch / str(next(self._numbers))
        pieces = list(parts)
        with target.open("xb") as file:
            file.writelines(pieces)
        if len(pieces) == 1 and isinstance(pieces[0], Placeholder):
            self._promises[target] = pieces[0]
        self._places[path] = target
        return target.stat()

    def promise(self, path: str, content: Placeholder) -> None:
        """Create a file with the placeholder `content`, whose bytes are fetched when needed."""
        self.create(path, [content], None, sync=False)

    def resume(self, path: str) -> int:
        if self.stat(path) is None:
            self.create(path, (), None, sync=False)
        place = self._place(path)
        if not isinstance(place, Path):
            raise FileExistsError(errno.EEXIST, "a file of the folder is in the way", path)
        return os.open(place, os.O_RDWR | os.O_CLOEXEC)

    def place(
        self, content: Content, path: str, mode: int | None, sync: bool, last: bool = True
    ) -> os.stat_result:
        if isinstance(content, FetchedFile) and not last and (identified := self.find_known(content.path)):
            return self.create(
                path, [Placeholder.of(identified[2], identified[0], identified[1])], mode, sync
            )
        if isinstance(content, FetchedFile) and last:
            self.move(content.path, path)
            status = self.stat(path)
            assert status is not None  # noqa: S101 - it was moved here
            return status
        return super().place(content, path, mode, sync, last)

    def exchange(self, path: str, other: str) -> None:
        if self.stat(path) is None or self.stat(other) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._places[path], self._places[other] = self._place(other), self._place(path)

    def move(self, path: str, new: str) -> None:
        if self.stat(path) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._require_free(new)
        place = self._place(path)
        below = [old for old in self._places if old.startswith(path + "/")]
        for old in below:
            self._places[new + old[len(path) :]] = self._places.pop(old)
        self._places[path], self._places[new] = None, place

    def move_out(self, path: str, target: Path) -> bool:
        return False  # nothing of the folder leaves it

    def remove(self, path: str) -> None:
        if self.stat(path) is not None:
            self._places[path] = None

    def prune(self, path: str) -> None:
        for folder in sorted(parents(path), key=len, reverse=True):
            if self.stat(folder) is None or self.names(folder):
                return
            self._places[folder] = None

    def sync(self) -> None:
        """Does nothing, because the overlay is discarded at the end of the command."""

    # --- where things are

    def _place(self, path: str) -> Place:
        if path in self._places:
            return self._places[path]
        for above in sorted(parents(path), key=len, reverse=True):
            if above in self._places:
                place = self._places[above]
                return place + path[len(above) :] if isinstance(place, str) else None
        return path

    def _made_below(self, path: str) -> bool:
        prefix = path + "/"
        return any(place is not None and placed.startswith(prefix) for placed, place in self._places.items())

    def _require_free(self, path: str) -> None:
        """Raise FileExistsError if the name is taken, Blocked if a parent of the path is a file."""
        if self.stat(path) is not None:
            raise FileExistsError(errno.EEXIST, "the name is taken", path)
        for above in parents(path):
            info = self.stat(above)
            if info is not None and not stat.S_ISDIR(info.st_mode):
                raise Blocked(errno.ENOTDIR, "not a directory", above)
