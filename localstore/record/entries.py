"""The entries of a working copy (what is recorded about each path), loaded from the database on first
access."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, MutableMapping, ValuesView
from typing import TypeVar, overload

from localstore.record.database import Database
from localstore.record.entry import PathRecord

T = TypeVar("T")
SINGLE = 500  # paths looked up by name, in one command or round; for one more, all are read


class Entries(MutableMapping[str, PathRecord]):
    """A mapping from path to entry. Each entry stays the same object for the life of the mapping. The caller
    stores changes in the database."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._loaded: dict[str, PathRecord] = {}
        self._absent: set[str] = set()  # asked for, or deleted here
        self._queried = 0
        self._whole = False  # whether all that the database had is known

    def __getitem__(self, path: str) -> PathRecord:
        entry = self.get(path)
        if entry is None:
            raise KeyError(path)
        return entry

    @overload
    def get(self, path: str, default: None = None, /) -> PathRecord | None: ...
    @overload
    def get(self, path: str, default: T, /) -> PathRecord | T: ...
    def get(self, path: str, default: T | None = None, /) -> PathRecord | T | None:
        entry = self._loaded.get(path)
        if entry is None and not self._whole and path not in self._absent:
            entry = self._look_up(path)
        return default if entry is None else entry

    def __setitem__(self, path: str, entry: PathRecord) -> None:
        self._loaded[path] = entry
        self._absent.discard(path)

    def __delitem__(self, path: str) -> None:
        self[path]
        del self._loaded[path]
        self._absent.add(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return bool(self._loaded) or (not self._whole and self._db.knows_any())

    def keys(self) -> KeysView[str]:
        return self._all().keys()

    def values(self) -> ValuesView[PathRecord]:
        return self._all().values()

    def items(self) -> ItemsView[str, PathRecord]:
        return self._all().items()

    def begin_round(self) -> None:
        """Reset the count of looked-up paths at the beginning of a round. If one round looks up many paths,
        all entries are read at once. Without the reset, many short rounds would cause this too."""
        self._queried = 0

    def load(self, paths: Iterable[str]) -> None:
        """Load the entries of these paths in one query."""
        if self._whole:
            return
        unknown = [path for path in paths if path not in self._loaded and path not in self._absent]
        self._queried += len(unknown)
        if self._queried > SINGLE:
            self._all()
            return
        entries = self._db.entries_at(unknown)
        self._loaded.update(entries)
        self._absent.update(path for path in unknown if path not in entries)

    def _look_up(self, path: str) -> PathRecord | None:
        self.load([path])
        return self._loaded.get(path)

    def _all(self) -> dict[str, PathRecord]:
        if not self._whole:
            stored = self._db.entries()
            for path in self._absent:
                stored.pop(path, None)
            stored.update(self._loaded)
            self._loaded, self._whole = stored, True
        return self._loaded
