"""One text lane: the text of one path on one branch, edited by several replicas and merged by characters.

Offsets are UTF-8 bytes, as in the CRDT library; its clocks count UTF-16 units and are used in `update_format`
only. A lane belongs to one thread.

A refused update is not passed to the library, so the lane stays unchanged. If the library fails on an update
that passed the checks, the lane is *broken* (the library cannot roll back): every further call raises, and
the owner must load the lane again from its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from localstore.core.diff import text_edits
from localstore.core.encoding import digest
from localstore.core.errors import Invalid, TooLarge
from localstore.core.lane import update_format
from localstore.core.lane.crdt import Delta, TextDocument
from localstore.core.lane.genesis import genesis, pieces
from localstore.core.lane.load_cost import PARTS, Load, exact_cost, load_of, woven
from localstore.core.lane.update_format import GENESIS_BIT
from localstore.core.model import limits
from localstore.core.model.live import UpdateInvalid

READER = 1  # client id of a document that nobody writes through
SPLITS = 3  # most items that one item or deletion of an update can add to a lane
AT_ONCE = 1000  # updates of a log in one transaction, at whose end the library joins what they wrote


class Lane:
    """The CRDT text of one path. Create it with `genesis` or `load`."""

    __slots__ = (
        "_bytes", "_counted", "_document", "_halves", "_items", "_known", "_load", "_problem", "_replica",
        "_vector", "looked",
    )  # fmt: skip
    _bytes: bytes | None  # the text and the state vector, where they are known since the last change
    _known: Mapping[int, int] | None
    _vector: bytes | None  # `_known`, encoded

    def __init__(self, replica: int = READER) -> None:
        """An empty lane, ready to be edited by `replica`."""
        self._open(replica)
        self._items = self._counted = 0  # at most this many items; exact after `_recount`
        self._load = Load()  # of its state, at most
        self.looked = 0  # steps that the last `take` spent on finding out `_load`
        self._halves: set[update_format.Point] = set()
        self._problem: str | None = None

    @classmethod
    def genesis(cls, branch_id: str, gen: int, epoch: int, text: bytes, replica: int = READER) -> Lane:
        """A new lane at the beginning of an epoch. `gen`: the id of the lane; `epoch`: the number of the
        epoch; `text`: the text with which the epoch begins. The encoded state is the same on every machine.
        `replica`: who edits the lane.

        Raises NotText unless `text` is UTF-8, TooLarge above TEXT_FILE."""
        text_edits.require_utf8(text)
        if len(text) > limits.TEXT_FILE:
            most = limits.in_words(limits.TEXT_FILE)
            raise TooLarge(f"the text has {len(text)} bytes; a text file holds at most {most}")
        first, lane = genesis(branch_id, gen, epoch, text), cls(replica)
        with lane._library():
            lane._document.apply(first.state())
        lane._items = lane._counted = len(first.pieces)
        lane._known = {first.writer: sum(first.units)} if first.pieces else {}
        if update_format.has_pairs(text):
            lane._halves = update_format.second_halves(lane._parse_state())
        lane._bytes, lane._load = text, Load(longest=limits.GENESIS_PIECE)
        return lane

    @classmethod
    def load(cls, state: bytes, replica: int = READER) -> Lane:
        """The lane with this state, which `Lane.state` returned. `replica`: who edits it. Raises
        UpdateInvalid."""
        lane = cls(replica)
        lane.merge(state)
        return lane

    def text(self) -> bytes:
        """The text as UTF-8."""
        self._require_sound()
        if self._bytes is None:
            with self._library():
                self._bytes = self._document.text().encode("utf-8")
        return self._bytes

    def digest(self) -> bytes:
        """BLAKE3 of the text."""
        return digest(self.text())

    def state(self) -> bytes:
        """The encoded state, for `load` and `merge`. Equal lanes may have different encodings: compare
        digests."""
        self._require_sound()
        with self._library():
            return self._document.state()

    def state_vector(self) -> bytes:
        """The encoded state vector, which is the number of units that the lane has of each client."""
        vector = self._seen()
        if self._vector is None:
            self._vector = update_format.encode_state_vector(vector)
        return self._vector

    def count_units(self) -> dict[int, int]:
        """The state vector: how many UTF-16 units of each client the lane has."""
        return dict(self._seen())

    def edit(self, replica: int, new: bytes) -> bytes | None:
        """Change the text to `new`, as `replica`. Returns the update for other replicas, None if nothing
        changes.

        Raises NotText unless `new` is UTF-8, TooLarge if the update would exceed the limits of `apply`; the
        lane is then unchanged."""
        require_replica(replica)
        changes = self._affordable(text_edits.edits(self.text(), new))
        if not changes:
            return None

        def write() -> None:
            for offset, deleted, inserted in reversed(changes):
                self._delete(offset, deleted)
                self._insert(offset, pieces(inserted))

        update = self._write(replica, write)
        self._bytes = new
        return update

    def apply(self, update: bytes, replica: int) -> None:
        """Apply one update written by `replica`.

        Raises UpdateInvalid if the update is refused; the lane is then unchanged. Raises UpdateInvalid too if
        the CRDT library fails on an accepted update; the lane is then broken (see the module)."""
        self.accept([update], replica)

    def accept(
        self,
        updates: Sequence[bytes],
        replica: int,
        budget: int = limits.UPDATE_WORK,
        *,
        reading: bool = False,
    ) -> int:
        """Apply several updates written by `replica`, all or none. Returns the steps this took
        (`update_format.work`).

        `budget`: the most steps allowed. `reading`: also read the text, because the caller needs it next.
        Raises UpdateInvalid for an invalid update or too many steps; the lane is then unchanged. Raises
        UpdateInvalid too if the CRDT library fails on the updates; the lane is then broken (see the
        module)."""
        self.looked = 0
        steps = [update_format.parse(update) for update in updates]
        most = min(budget, limits.UPDATE_WORK)
        if sum([update_format.work(step, self._items) for step in steps]) > most and self._grown():
            self._recount()
        steps_taken, items, halves, vector = 0, self._items, self._halves, self._seen()
        for step in steps:
            steps_taken += update_format.work(step, items)
            if steps_taken > budget:
                raise UpdateInvalid(
                    "the edits of this lane have too many parts for its size; send the file as a new version"
                )
            vector, own = update_format.check(step, vector, replica, items, halves)
            items += _count_added(step)
            halves = halves | own if own else halves
        added = items - self._items
        load = self._measure_load(steps)  # may count the items again
        self._absorb(updates, vector, reading)
        self._items, self._halves, self._load = self._items + added, halves, load
        return steps_taken

    def follow(self, update: bytes, replica: int) -> list[Delta]:
        """Apply an update, as `apply` does. Returns the changes of the text."""
        self._require_sound()
        with self._library():
            return self._document.deltas(lambda: self.apply(update, replica))

    def repeat(self, replica: int, deltas: Sequence[Delta]) -> bytes | None:
        """Change the text as `replica`, by changes that the CRDT library has reported. `deltas`: these
        changes, in order. Returns the update for other replicas, None if they change nothing."""
        require_replica(replica)
        return self._write(replica, lambda: self._replay(deltas)) if any(deltas) else None

    def most_work(self, parts: int) -> int:
        """The most steps that `accept` may need to apply some updates. `parts`: how many items (inserted
        runs) and deletions the updates have together."""
        steps = parts * (self._items + parts)
        bound = self._load.steps + parts * (PARTS * (self._items + PARTS * parts) + self._load.longest)
        return steps if bound <= limits.LANE_WORK else steps + exact_cost(self._items, limits.LANE_WORK)

    @property
    def sound(self) -> bool:
        """Whether the lane can still be used. It is unusable once the CRDT library has failed in it."""
        return self._problem is None

    def replay(self, log: Sequence[bytes]) -> None:
        """Apply updates from a log that the caller trusts, in order. They may be by any writer and of any
        size. Raises UpdateInvalid; the lane is then unusable."""
        if not log:
            return
        vector = self._seen()
        for start in range(0, len(log), AT_ONCE):
            part = log[start : start + AT_ONCE]
            for update in part:
                parsed = update_format.parse(update)
                vector, own = update_format.check(parsed, vector, None, 0, self._halves)
                self._grow(parsed, own)
            self._absorb(part, vector)

    def merge(self, state: bytes) -> None:
        """Merge another state of the same lane and epoch into this one. Raises UpdateInvalid for a bad state,
        and if the result would take more than LANE_WORK steps to load."""
        vector = self.count_units()
        parsed = update_format.validate_state(state)
        theirs = update_format.ends_of(parsed)
        if vector and theirs and update_format.genesis_ids(vector) != update_format.genesis_ids(theirs):
            raise UpdateInvalid("the state belongs to another lane or epoch")
        load = load_of(self._parse_state(), parsed) if vector else load_of(parsed)
        for client, clock in theirs.items():
            vector[client] = max(clock, vector.get(client, 0))
        self._absorb([state], vector)
        self._load = load
        self._recount()

    def copy(self, replica: int | None = None) -> Lane:
        """An independent copy, to be edited by `replica` (default: the replica that edits this lane)."""
        state = self.state()
        twin = Lane(self._replica if replica is None else replica)
        with twin._library():
            twin._document.apply(state)
        twin._items, twin._halves, twin._bytes = self._items, set(self._halves), self._bytes
        twin._counted, twin._load = self._counted, self._load
        return twin

    # --- the one place where the library is touched

    def _open(self, replica: int) -> None:
        self._replica = replica
        self._document = TextDocument(replica)
        self._forget()

    def _forget(self) -> None:
        """Drop the cached text and the cached state vector (the number of units of each client)."""
        self._bytes = self._known = self._vector = None

    def _library(self) -> _Library:
        return _Library(self)

    def _seen(self) -> Mapping[int, int]:
        """The cached state vector (the number of units of each client). The caller must not change it."""
        self._require_sound()
        if self._known is None:
            with self._library():
                self._known = update_format.decode_state_vector(self._document.seen())
        return self._known

    def _require_sound(self) -> None:
        if self._problem is not None:
            raise UpdateInvalid(f"this lane is broken: {self._problem}; load it again from its log")

    def _absorb(self, updates: Sequence[bytes], expected: Mapping[int, int], reading: bool = False) -> None:
        """Apply updates that passed the checks. `expected`: how many units of each client the lane must have
        afterwards. If it has not, the lane is marked as broken. `reading`: also read the text."""
        self._forget()
        with self._library():
            seen, text = self._document.apply_all(updates, reading)
            self._known, self._vector = expected, update_format.encode_state_vector(expected)
            whole = seen == self._vector or update_format.says(seen, expected)
            self._bytes = None if text is None else text.encode("utf-8")
        if not whole:
            self._problem = "the text library left a part of an update waiting"
            self._require_sound()

    def _write(self, replica: int, write: Callable[[], None]) -> bytes:
        """Run the function `write`, which edits the lane, in one transaction as `replica`. Returns the
        update."""
        self._become(replica)
        self._forget()
        with self._library():
            update = self._document.written(write)
        written = update_format.parse(update)
        self._grow(written, update_format.second_halves(written))
        return update

    def _become(self, replica: int) -> None:
        """Make `replica` the writer of further edits. The CRDT library fixes the writer when it creates a
        document, so the document is loaded again under the new writer."""
        require_replica(replica)
        self._require_sound()
        if replica == self._replica:
            return
        state, text = self.state(), self._bytes
        self._open(replica)
        with self._library():
            self._document.apply(state)
        self._bytes = text

    def _delete(self, offset: int, size: int) -> None:
        if size:
            self._document.delete(offset, size)

    def _insert(self, offset: int, cut: list[str]) -> None:
        """Insert a text at an offset. `cut`: the text in pieces, as `pieces` returns them. The last piece is
        inserted first. Otherwise the CRDT library would join the pieces into one large block, in which edits
        are slow."""
        for piece in reversed(cut):
            self._document.insert(offset, piece)

    def _replay(self, deltas: Sequence[Delta]) -> None:
        for delta in deltas:
            offset = 0
            for step in delta:
                if "retain" in step:
                    offset += step["retain"]
                elif "delete" in step:
                    self._delete(offset, step["delete"])
                else:
                    inserted = step["insert"].encode("utf-8")
                    self._insert(offset, pieces(inserted))
                    offset += len(inserted)

    def _deltas(self, updates: Sequence[bytes]) -> list[Delta]:
        """Apply updates from a trusted log. Returns the changes of the text, update after update."""

        def replay() -> None:
            for update in updates:
                self.replay([update])

        with self._library():
            return self._document.deltas(replay)

    # --- what the reader needs to know of the lane

    def _grow(self, update: update_format.Update, halves: set[update_format.Point]) -> None:
        self._load = self._load.after([update], self._items)
        self._items += _count_added(update)
        self._halves |= halves

    def _grown(self) -> bool:
        """Whether the items (inserted runs) of the lane should be counted again, because their estimated
        number has grown by more than an eighth. Counting reads the whole lane."""
        return self._items - self._counted > self._counted // 8

    def _measure_load(self, steps: Sequence[update_format.Update]) -> Load:
        """The cost of loading the lane once the updates `steps` are applied. Raises UpdateInvalid if it is
        above LANE_WORK."""
        load = self._load.after(steps, self._items)
        if load.steps <= limits.LANE_WORK:
            return load
        whole = self._parse_state()
        self._items = self._counted = len(whole.structs)
        self.looked = exact_cost(self._items, limits.LANE_WORK)
        load = woven(update_format.join_updates([whole, *steps]))
        self.looked = exact_cost(self._items, load.steps)
        return load

    def _parse_state(self) -> update_format.Update:
        return update_format.parse(self.state(), update_format.STATE_CAPS)

    def _recount(self) -> None:
        update = self._parse_state()
        self._items = self._counted = len(update.structs)
        self._halves = update_format.second_halves(update)

    def _affordable(self, changes: list[text_edits.Edit]) -> list[text_edits.Edit]:
        """The edits for one update; if they are too many, they are joined to fewer and larger ones. Raises
        TooLarge if even these are too many."""
        if len(changes) > update_format.most_structs(self._items) // 2:
            self._recount()
        most = update_format.most_structs(self._items)
        if len(changes) > most // 2:
            changes = text_edits.coarser(self.text(), changes, max(most // 2, 1))
        written = sum(len(pieces(change.inserted)) for change in changes)
        if written + len(changes) // 64 > most:
            raise TooLarge("the edit has too many parts for one update; send the file as a new version")
        return changes


class _Library:
    """A context around calls of the CRDT library. An error of the library marks the lane as broken and is
    raised as UpdateInvalid. This includes a panic, which is no Exception."""

    __slots__ = ("_lane",)

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            return
        if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, UpdateInvalid)):
            self._lane._problem = "an operation was cut short"
            return
        self._lane._problem = f"the text library failed ({type(error).__name__})"
        raise UpdateInvalid(f"{self._lane._problem}; load the lane again from its log") from None


def _count_added(update: update_format.Update) -> int:
    """An upper bound of how many items (inserted or deleted runs) an update adds to a lane."""
    return SPLITS * (len(update.structs) + len(update.deletions))


def require_replica(replica: int) -> None:
    """Raise Invalid unless `replica` is a valid id of a working copy: 1 … 2**52 − 1."""
    if not 0 < replica < GENESIS_BIT:
        raise Invalid("a replica id is a whole number from 1 to 2**52 - 1")
