"""What a copy knows of its paths, read from the database as far as a command asks for it."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, MutableMapping, ValuesView
from typing import TypeVar, overload

from localstore.record.database import Database
from localstore.record.entry import Entry

T = TypeVar("T")
SINGLE = 500  # paths looked up by name; for one more, all are read


class Entries(MutableMapping[str, Entry]):
    """Path → entry, which stays the same object as long as the mapping lives. Storing what changes in the
    database is up to the caller."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[str, Entry] = {}
        self._absent: set[str] = set()  # asked for, or deleted here
        self._asked = 0
        self._whole = False  # whether all that the database had is known

    def __getitem__(self, path: str) -> Entry:
        found = self.get(path)
        if found is None:
            raise KeyError(path)
        return found

    @overload
    def get(self, path: str, default: None = None, /) -> Entry | None: ...
    @overload
    def get(self, path: str, default: T, /) -> Entry | T: ...
    def get(self, path: str, default: T | None = None, /) -> Entry | T | None:
        found = self._known.get(path)
        if found is None and not self._whole and path not in self._absent:
            found = self._looked_up(path)
        return default if found is None else found

    def __setitem__(self, path: str, entry: Entry) -> None:
        self._known[path] = entry
        self._absent.discard(path)

    def __delitem__(self, path: str) -> None:
        self[path]
        del self._known[path]
        self._absent.add(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return bool(self._known) or (not self._whole and self._db.knows_any())

    def keys(self) -> KeysView[str]:
        return self._all().keys()

    def values(self) -> ValuesView[Entry]:
        return self._all().values()

    def items(self) -> ItemsView[str, Entry]:
        return self._all().items()

    def load(self, paths: Iterable[str]) -> None:
        """Look these up together, because each will be asked for."""
        if self._whole:
            return
        unknown = [path for path in paths if path not in self._known and path not in self._absent]
        self._asked += len(unknown)
        if self._asked > SINGLE:
            self._all()
            return
        found = self._db.entries_at(unknown)
        self._known.update(found)
        self._absent.update(path for path in unknown if path not in found)

    def _looked_up(self, path: str) -> Entry | None:
        self.load([path])
        return self._known.get(path)

    def _all(self) -> dict[str, Entry]:
        if not self._whole:
            stored = self._db.entries()
            for path in self._absent:
                stored.pop(path, None)
            stored.update(self._known)
            self._known, self._whole = stored, True
        return self._known
