"""A document of a user as a Yjs document (pycrdt's compiled core), whose content is written as operations.

The root map `ROOT` contains the content in its member `CONTENT`. Objects are maps, lists are arrays, strings
with white space are texts; all other values are stored unchanged. `write` compares old and new content and
changes only the differences: maps by member, lists by a bounded diff, texts by a text diff. So concurrent
changes that others made elsewhere in the content remain.

Only updates that `write` made may be applied: the library crashes on crafted bytes (docs/design/003). A
document belongs to one thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import msgspec

from localstore.core.diff import text_edits
from localstore.core.diff.alignment import Hunk, hunks, intern_elements
from localstore.core.diff.few_edits import few_edits
from localstore.core.document import items
from localstore.core.document.content import encode, is_text, normalize
from localstore.core.document.pairs import pairs
from localstore.core.lane.crdt import core
from localstore.core.lane.update_format import decode_state_vector
from localstore.core.model.document import DocumentDamaged

ROOT, CONTENT = "document", "content"
EMPTY = b"\0\0"  # an update without operations
MOST_EDITS = 1000  # of one text; nearer ones are joined
CELLS = 4_000_000  # of lists that are compared exactly
STEPS = 4_000_000  # items of lists that one write walks over: about 0.7 s
ACCESSES = 3  # of a list, for each of its runs and edited items
_NOTHING_SEEN = b"\0"


class YjsDocument:
    """A document that several replicas edit. `writer`: the client id (32 bits) under which this object
    writes."""

    __slots__ = ("_document", "_root")

    def __init__(self, writer: int, updates: Iterable[bytes] = ()) -> None:
        with _translate_errors():
            self._document = core().Doc(writer, None, None)
            with self._transaction() as opened:
                self._root = self._document.get_or_insert_map(opened, ROOT)
                for update in updates:
                    self._document.apply_update(opened, update)

    def apply(self, update: bytes) -> None:
        with _translate_errors(), self._transaction() as opened:
            self._document.apply_update(opened, update)

    def content(self) -> Any:
        """The content in its canonical form; None before the first write."""
        with _translate_errors(), self._transaction() as opened:
            held: str = self._root.to_json(opened)
        return normalize(msgspec.json.decode(held).get(CONTENT))

    def state(self) -> bytes:
        """The whole document as one update."""
        with _translate_errors(), self._transaction() as opened:
            return bytes(self._document.get_update(opened, _NOTHING_SEEN))

    def write(self, content: Any) -> bytes:
        """Change the content to `content`, which `content.check_content` returned. Returns the update for
        other replicas, or EMPTY if nothing differs."""
        old = self.content()
        updates: list[bytes] = []
        with _translate_errors():
            observing = self._document.observe(lambda event: updates.append(bytes(event.update)))
            try:
                with self._transaction() as opened:
                    before = {CONTENT: old} if self._root.has(opened, CONTENT) else {}
                    _Writer(self._document, opened).change_map(self._root, before, {CONTENT: content})
            finally:
                observing.drop()
        return updates[0] if updates else EMPTY

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        opened = self._document.create_transaction()
        try:
            yield opened
            opened.commit()
        finally:
            opened.drop()


class _Writer:
    """Writes differences into the maps, lists and texts of a Yjs document in one transaction. Each access to
    a list makes the Yjs library walk over the list's items. `_steps`: how many items it may still walk over.
    When the steps are used up, changed runs are replaced as a whole."""

    def __init__(self, document: Any, opened: Any) -> None:
        self._document, self._opened = document, opened
        self._writer = int(document.client_id())
        self._steps = STEPS

    def change_map(self, shared: Any, old: dict[str, Any], new: dict[str, Any]) -> None:
        for key in sorted(old.keys() - new.keys()):
            shared.remove(self._opened, key)
        for key, value in new.items():
            if key in old and encode(old[key]) == encode(value):
                continue
            held = shared.get(self._opened, key) if key in old else None
            if not self._change(held, old.get(key), value):
                self._insert(shared, key, value)

    def _change(self, held: Any, old: Any, new: Any) -> bool:
        """Change the map, list or text `held` of the Yjs document from `old` to `new` in place. Returns False
        if `new` is of another kind, so that the caller must replace the value."""
        kinds = core()
        if isinstance(held, kinds.Map) and isinstance(new, dict):
            self.change_map(held, old, new)
        elif isinstance(held, kinds.Array) and isinstance(new, list):
            self._change_list(held, old, new)
        elif isinstance(held, kinds.Text) and isinstance(new, str):
            self._change_text(held, old.encode(), new.encode())
        else:
            return False
        return True

    def _change_list(self, shared: Any, old: list[Any], new: list[Any]) -> None:
        before, after = intern_elements(map(encode, old), map(encode, new))
        changed = few_edits(before, after)
        if changed is None:
            changed = hunks(before, after, CELLS)
        most = max(1, self._steps // (ACCESSES * (len(old) + 1)))
        for hunk in reversed(_fewer(changed, most)):
            self._steps -= ACCESSES * len(old)
            self._change_run(shared, old, new, hunk)

    def _change_run(self, shared: Any, old: list[Any], new: list[Any], hunk: Hunk) -> None:
        """Change one run of a list from its end to its start, so that the indexes before the changed items
        stay valid."""
        old_end, new_end = hunk.old_end, hunk.new_end
        edited = pairs(old[hunk.old_start : old_end], new[hunk.new_start : new_end])
        cost = ACCESSES * len(edited) * len(old)
        if cost > self._steps:
            edited, cost = [], 0
        self._steps -= cost
        for at, to in reversed([(-1, -1), *edited]):
            at, to = hunk.old_start + at, hunk.new_start + to
            if old_end > at + 1:
                shared.remove_range(self._opened, at + 1, old_end - at - 1)
            self._insert_run(shared, at + 1, new[to + 1 : new_end])
            if at >= hunk.old_start and not self._change(shared.get(self._opened, at), old[at], new[to]):
                shared.remove_range(self._opened, at, 1)
                self._insert(shared, at, new[to])
            old_end, new_end = at, to

    def _change_text(self, shared: Any, old: bytes, new: bytes) -> None:
        changes = text_edits.coarser(old, text_edits.edits(old, new), MOST_EDITS)
        for offset, deleted, inserted in reversed(changes):
            if deleted:
                shared.remove_range(self._opened, offset, deleted)
            if inserted:
                shared.insert(self._opened, offset, inserted.decode())

    def _insert_run(self, shared: Any, index: int, values: list[Any]) -> None:
        if not values:
            return
        clock = self._clock()
        self._insert(shared, index, values[0])
        if len(values) > 1:
            self._apply(items.elements_after(self._writer, self._clock(), (self._writer, clock), values[1:]))

    def _insert(self, shared: Any, place: str | int, value: Any) -> None:
        """Insert a new value into the map or array `shared`. `place`: the member of the map whose value is
        replaced, or the index of the array before which the value is inserted."""
        clock = self._clock()
        mine = (self._writer, clock)
        if isinstance(value, dict):
            shared.insert_map_prelim(self._opened, place)
            if value:
                self._apply(items.members(self._writer, clock + 1, mine, value))
        elif isinstance(value, list):
            shared.insert_array_prelim(self._opened, place)
            if value:
                self._apply(items.elements(self._writer, clock + 1, mine, value))
        elif isinstance(value, str) and is_text(value):
            shared.insert_text_prelim(self._opened, place).insert(self._opened, 0, value)
        else:
            shared.insert(self._opened, place, value)

    def _apply(self, update: bytes) -> None:
        self._document.apply_update(self._opened, update)

    def _clock(self) -> int:
        """The Yjs clock of the next item of this writer, which is the number of units that it has written so
        far."""
        seen = bytes(self._document.get_state(self._opened))
        return decode_state_vector(seen).get(self._writer, 0)


def _fewer(changed: list[Hunk], most: int) -> list[Hunk]:
    """The changed runs joined into at most `most` runs; the nearest ones are joined."""
    if len(changed) <= most:
        return changed
    gaps = [after.old_start - before.old_end for before, after in pairwise(changed)]
    widest_joined = sorted(gaps)[len(changed) - most - 1]
    joined = changed[:1]
    for gap, hunk in zip(gaps, changed[1:], strict=True):
        if gap > widest_joined:
            joined.append(hunk)
        else:
            first = joined[-1]
            joined[-1] = Hunk(first.old_start, hunk.old_end, first.new_start, hunk.new_end)
    return joined


@contextmanager
def _translate_errors() -> Iterator[None]:
    """A context in which errors and panics of the Yjs library are raised as DocumentDamaged."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ == "PanicException" or isinstance(error, (ValueError, RuntimeError)):
            raise DocumentDamaged("the operations of this document cannot be read") from None
        raise
