"""A text document of the CRDT library (pycrdt), used directly through the library's compiled core.

The library's Python layer is not used: it would import anyio and asyncio and wrap every call, for features
that lanes do not need. The version of the library is pinned, because the bytes that its core writes are a
stored format (docs/design/003).

Offsets are UTF-8 bytes. A document belongs to one thread. The library's errors and panics are raised
unchanged; `Lane` translates them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

from localstore.core.lane.update_format import ROOT

Delta = list[dict[str, Any]]  # {"retain": n} | {"delete": n} | {"insert": text}, n in UTF-8 bytes

_CORE = "pycrdt._pycrdt"
_NOTHING_SEEN = b"\x00"  # the state vector of an empty document


def core() -> Any:
    """The compiled core of the CRDT library, imported on first use without the library's Python package."""
    if _CORE not in sys.modules:
        package = find_spec("pycrdt")
        spec = PathFinder.find_spec(_CORE, package.submodule_search_locations if package else None)
        if spec is None or spec.loader is None:
            raise ImportError(f"{_CORE} is not installed")
        module = sys.modules[_CORE] = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[_CORE]


class TextDocument:
    """A CRDT text that several replicas edit. `writer`: the client id under which edits made through this
    object are recorded."""

    __slots__ = ("_document", "_open", "_text")

    def __init__(self, writer: int) -> None:
        self._document = core().Doc(writer, None, None)
        self._open: Any = None
        with self.transaction() as opened:
            self._text = self._document.get_or_insert_text(opened, ROOT)

    def transaction(self) -> _Transaction:
        """A context whose writes are one update. Nested contexts are part of the outer one."""
        return _Transaction(self)

    def apply_all(self, updates: Sequence[bytes], reading: bool) -> tuple[bytes, str | None]:
        """Apply updates in one transaction. Returns (state vector, the text if `reading`, else None). The
        state vector is the number of units of each client."""
        with self.transaction() as opened:
            for update in updates:
                self._document.apply_update(opened, update)
            seen = bytes(self._document.get_state(opened))
            return seen, str(self._text.get_string(opened)) if reading else None

    def text(self) -> str:
        with self.transaction() as opened:
            return str(self._text.get_string(opened))

    def state(self) -> bytes:
        """The whole document as one update."""
        with self.transaction() as opened:
            return bytes(self._document.get_update(opened, _NOTHING_SEEN))

    def seen(self) -> bytes:
        """The encoded state vector of the document, which is the number of units that it has of each
        client."""
        with self.transaction() as opened:
            return bytes(self._document.get_state(opened))

    def apply(self, update: bytes) -> None:
        with self.transaction() as opened:
            self._document.apply_update(opened, update)

    def insert(self, offset: int, text: str) -> None:
        with self.transaction() as opened:
            self._text.insert(opened, offset, text)

    def delete(self, offset: int, size: int) -> None:
        with self.transaction() as opened:
            self._text.remove_range(opened, offset, size)

    def written(self, write: Callable[[], None]) -> bytes:
        """Run the function `write`, which edits the document, in one transaction. Returns the update that
        results."""
        updates: list[bytes] = []
        subscription = self._document.observe(lambda event: updates.append(bytes(event.update)))
        try:
            with self.transaction():
                write()
        finally:
            subscription.drop()
        return b"".join(updates)

    def deltas(self, change: Callable[[], None]) -> list[Delta]:
        """Run the function `change`, which edits the document. Returns the changes of the text (deltas), one
        for each transaction."""
        deltas: list[Delta] = []
        subscription = self._text.observe(lambda event: deltas.append([dict(step) for step in event.delta]))
        try:
            change()
        finally:
            subscription.drop()
        return deltas


class _Transaction:
    """A context in which a transaction of the document is open. Inside another such context it uses the
    transaction of that one. It is a class, because a context made from a generator would double the cost of a
    call."""

    __slots__ = ("_document", "_mine")

    def __init__(self, document: TextDocument) -> None:
        self._document = document
        self._mine = False

    def __enter__(self) -> Any:
        document = self._document
        if document._open is None:
            document._open = document._document.create_transaction()
            self._mine = True
        return document._open

    def __exit__(self, kind: object, *_: object) -> None:
        if not self._mine:
            return
        opened = self._document._open
        try:
            if kind is None:
                opened.commit()
        finally:
            opened.drop()
            self._document._open = None
