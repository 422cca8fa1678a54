"""Decides the answer to one live update, without I/O. It makes the checks in the order that the lane protocol
gives (docs/design/004).

A `Batch` holds the rows, directories, objects and lanes that its updates may need. It processes the updates
in order, and collects the changes to write.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

import msgspec

from localstore.core import paths
from localstore.core.errors import SvcError
from localstore.core.lane.update import LiveUpdate
from localstore.core.manifest import RepoManifest, parse
from localstore.core.model import limits
from localstore.core.model.live import LaneMoved, UpdateAnswer
from localstore.core.names import MANIFEST
from localstore.core.storage.chunks import RAISED, kind_of_bytes
from relay.db.live.lane import LaneRow
from relay.domain.history.live_update_format import Asked
from relay.domain.live.lane_work import Workbench
from relay.memory.lanes import LaneKey


@lru_cache(maxsize=256)
def file_cap(manifest: bytes | None, kind: str) -> int:
    """The size limit in bytes of a file in a repository of this kind. `manifest`: the text of the
    repository's `.svc.yaml`. None and an invalid manifest count as an empty one."""
    try:
        parsed = RepoManifest() if manifest is None else parse(manifest)
    except SvcError:
        parsed = RepoManifest()
    return parsed.file_cap(kind)


def over_cap(path: str, size: int, cap: int, kind: str) -> str:
    """The error message for a file that is too large for this kind of repository. If the limit can be raised,
    the message says how."""
    remedy = f"; {RAISED}" if kind == "app" and size <= limits.APP_FILE_CLAMP else ""
    return f"{path} has {size} bytes; this repository takes files of {limits.in_words(cap)} at most{remedy}"


class Refusal(Exception):
    """Raised if an update is refused. The answer to the update is `result`, and the update changes
    nothing."""

    def __init__(self, result: str, code: str = "", detail: str = "") -> None:
        super().__init__(result)
        self.result, self.code, self.detail = result, code, detail


class Operation(NamedTuple):
    """One entry in the log of a lane (the live text of a file): the operation with the index `part` in the
    update with the number `seq`."""

    seq: int
    part: int
    data: bytes


@dataclass(slots=True)
class Frontier:
    """The part of a branch's live frontier that a transaction works on, and the changes that it makes there.
    It covers the paths for which it was loaded.

    `seq`: number of the frontier's last change. `rows`: by path, the rows of the loaded paths and of their
    parent directories, where a file would be in the way. `directories`: by path of a directory, the number of
    its files, without files of the base (the tree that the branch began with). `below`: by path of a
    directory, the number of its files in the base. `unwritten`: loaded paths of base files that have no row
    yet. `taken`: lane numbers of files in `unwritten` that another lane uses too. `changed`: the paths that
    were changed here. `log`: by lane, the operations to append to its log.
    """

    branch_id: str
    seq: int
    rows: dict[str, LaneRow]
    directories: dict[str, int]
    below: Mapping[str, int] = field(default_factory=dict)
    unwritten: Set[str] = frozenset()
    taken: Set[int] = frozenset()
    changed: dict[str, None] = field(default_factory=dict)
    log: dict[LaneKey, list[Operation]] = field(default_factory=dict)

    def living(self, path: str) -> LaneRow | None:
        row = self.rows.get(path)
        return row if row is not None and row.living else None

    def clashes(self, path: str) -> bool:
        """Whether a file at `path` would be below another file or replace a directory."""
        if self.holds(path):
            return True
        return any(self.living(parent) is not None for parent in paths.parents(path))

    def holds(self, path: str) -> bool:
        """Whether there are files below `path`. It must be one of the paths for which this frontier was
        loaded."""
        return self.directories.get(path, 0) + self.below.get(path, 0) > 0

    def collides(self, key: LaneKey, path: str) -> bool:
        """Whether another lane already has the lane number of the file at `path`. This is possible only for a
        file of the base that was never changed, because its number is computed and not counted."""
        fresh = path in self.unwritten and path not in self.changed
        return fresh and (key.gen in self.taken or key in self.log)

    def copy(self) -> Frontier:
        """Copy the frontier. `changed` and `log` of the copy are empty."""
        rows, directories = dict(self.rows), dict(self.directories)
        return replace(self, rows=rows, directories=directories, changed={}, log={})

    def add(self, more: Frontier) -> None:
        """Add the rows and file counts of `more`, a frontier that was loaded for other paths."""
        self.rows.update(more.rows)
        self.directories.update(more.directories)
        self.below = {**self.below, **more.below}
        self.unwritten = frozenset((*self.unwritten, *more.unwritten))
        self.taken = frozenset((*self.taken, *more.taken))

    def renumber(self, began: int, by: int) -> Frontier:
        """A copy of this frontier with later numbers for its own changes: each number above `began` is raised
        by `by`. `began`: the number that the frontier had before these changes."""
        if not by:
            return self

        def renumber_one(number: int) -> int:
            return number + by if began < number <= self.seq else number

        rows = dict(self.rows)
        for path in self.changed:
            row = rows[path]
            rows[path] = msgspec.structs.replace(
                row,
                gen=renumber_one(row.gen),
                ver=renumber_one(row.ver),
                last_seq=renumber_one(row.last_seq),
                second_seq=renumber_one(row.second_seq),
            )
        log = {
            key: [operation._replace(seq=renumber_one(operation.seq)) for operation in operations]
            for key, operations in self.log.items()
        }
        return replace(self, seq=self.seq + by, rows=rows, log=log)

    def next(self) -> int:
        self.seq += 1
        return self.seq

    def put(self, row: LaneRow) -> None:
        """Write one row. If this creates or deletes a file, also correct the file counts of its parent
        directories."""
        before = self.living(row.path) is not None
        if before != row.living:
            step = 1 if row.living else -1
            for parent in paths.parents(row.path):
                self.directories[parent] = self.directories.get(parent, 0) + step
        self.rows[row.path] = row
        self.changed[row.path] = None

    def create(self, path: str, kind: str, blob: bytes, size: int, by: int) -> LaneRow:
        """Create a file and return its row. Its lane has the number of this change. `by`: the replica that
        creates it."""
        seq = self.next()
        row = LaneRow(path, kind, seq, 0, seq, blob, size, blob, False, by, seq, 0)
        self.put(row)
        return row

    def remove(self, row: LaneRow, by: int) -> LaneRow:
        gone = msgspec.structs.replace(row.with_change(by, self.next()), kind="gone", edited=False)
        self.put(gone)
        return gone

    def edit(
        self, key: LaneKey, row: LaneRow, digest: bytes, size: int, operations: list[bytes], by: int
    ) -> LaneRow:
        """Record an edit of a text, and return the new row. `by`: the replica that made the edit. `digest`,
        `size`: those of the text after it. `row`: the row before it."""
        seq = self.next()
        self.log.setdefault(key, []).extend(
            [Operation(seq, part, data) for part, data in enumerate(operations)]
        )
        edited = row.edit(by, seq, digest, size)
        self.put(edited)
        return edited


@dataclass(slots=True)
class Batch:
    """A batch of updates of one replica, with everything needed to answer them.

    `held`: by digest, the size of each object that an update names, if the repository holds it. `large`: by
    digest, the size of each named file that the repository holds in chunks. `texts`: the digests of new files
    that are text. `bench`: computes edits of lanes. `done`: answers so far. `manifests`: bytes by digest of
    each `.svc.yaml` that may raise the size limit of a file; empty if no file is over the common limit.
    """

    frontier: Frontier
    replica: int
    repo_kind: str
    settled: int
    answers: Mapping[int, UpdateAnswer]
    held: Mapping[bytes, int]
    large: Mapping[bytes, int]
    texts: frozenset[bytes]
    bench: Workbench = field(compare=False)
    manifests: dict[bytes, bytes] = field(default_factory=dict)
    fresh: dict[int, UpdateAnswer] = field(default_factory=dict)
    highest: int = 0
    done: list[UpdateAnswer] = field(default_factory=list)

    def run(self, updates: Sequence[Asked], seconds: float = math.inf) -> bool:
        """Answer updates for at most `seconds`. Returns whether all are answered."""
        until = time.monotonic() + seconds
        for update, operations in updates[len(self.done) :]:
            self.done.append(self.answer(update, operations))
            if time.monotonic() > until:
                break
        return len(self.done) == len(updates)

    def answer(self, update: LiveUpdate, operations: list[bytes]) -> UpdateAnswer:
        """Answer one update: with the stored answer if there is one, else with a new decision. Refusals are
        stored too."""
        if update.n <= self.settled:
            return UpdateAnswer(n=update.n, result="settled")
        earlier = self.fresh.get(update.n) or self.answers.get(update.n)
        if earlier is not None:
            return earlier
        self.settled = max(self.settled, update.settled)
        try:
            decision = self._decide(update, operations)
        except Refusal as no:
            decision = UpdateAnswer(n=update.n, result=no.result, code=no.code, detail=no.detail)  # type: ignore[arg-type]
        except SvcError as error:
            decision = UpdateAnswer(n=update.n, result="refused", code=error.code, detail=error.detail)
        self.fresh[update.n] = decision
        self.highest = max(self.highest, update.n)
        return decision

    def _decide(self, update: LiveUpdate, operations: list[bytes]) -> UpdateAnswer:
        paths.check(update.path)
        match update.kind:
            case "edit_text":
                return self._edit(update, operations)
            case "delete":
                return self._delete(update)
            case _:
                return self._set(update)

    def _edit(self, update: LiveUpdate, operations: list[bytes]) -> UpdateAnswer:
        row = self.frontier.living(update.path)
        if row is None or row.gen != update.gen or row.kind != "text":
            raise Refusal("stale")
        if row.epoch != update.epoch:
            raise Refusal("epoch")
        if not update.typed and row.other(self.replica) > update.base:
            raise LaneMoved(update.path)
        key = LaneKey(self.frontier.branch_id, row.gen, row.epoch)
        if self.frontier.collides(key, update.path):  # once in a million branches: start a new lane
            self.frontier.create(row.path, row.kind, row.digest, row.size, 0)
            raise Refusal("stale")
        edited = self.bench.edit(key, row, update.n, operations, self.replica)
        now = self.frontier.edit(key, row, edited.digest, edited.size, operations, self.replica)
        if edited.text is not None:
            self.manifests[now.digest] = edited.text
        return _accept(update.n, now, edited.vector)

    def _delete(self, update: LiveUpdate) -> UpdateAnswer:
        row = self.frontier.living(update.path)
        if row is None:
            return UpdateAnswer(n=update.n, result="ok", seq=self.frontier.seq)
        self._require_seen(update, row)
        return _accept(update.n, self.frontier.remove(row, self.replica))

    def _set(self, update: LiveUpdate) -> UpdateAnswer:
        blob, size = bytes.fromhex(update.blake3 or ""), update.size or 0
        kind = "text" if update.kind == "create_text" else kind_of_bytes(size, self.repo_kind)
        row = self.frontier.living(update.path)
        if row is not None and (row.kind, row.digest, row.size) == (kind, blob, size):
            return _accept(update.n, row)  # exists already, whatever the cap is now
        self._require_fit(update, kind, blob, size)
        if row is not None:
            self._require_seen(update, row)
        elif update.gen:
            raise Refusal("stale")  # somebody removed the file that this is a version of
        elif self.frontier.clashes(update.path):
            raise Refusal("stale", detail="a file and a directory cannot have one name")
        return _accept(update.n, self.frontier.create(update.path, kind, blob, size, self.replica))

    def _require_fit(self, update: LiveUpdate, kind: str, blob: bytes, size: int) -> None:
        """Raise Refusal unless the repository holds the bytes of the file and they are within the size
        limits. They must be held whole or in chunks, according to the kind of the file."""
        text = kind == "text"
        if not text and size > limits.BLOB_FILE and size > (cap := self._file_cap()):
            raise Refusal("refused", "too_large", over_cap(update.path, size, cap, self.repo_kind))
        held = (self.large if kind == "chunked" else self.held).get(blob)
        if held is None:
            raise Refusal("refused", "payload_missing", f"send the bytes of {update.path} first")
        if held != size:
            raise Refusal("refused", "digest_mismatch", f"{update.path} has {held} bytes, not {size}")
        if text:
            if size > limits.TEXT_FILE:
                raise Refusal(
                    "refused", "too_large", f"a text file holds at most {limits.in_words(limits.TEXT_FILE)}"
                )
            if blob not in self.texts:
                raise Refusal("refused", "not_text", f"{update.path} is not UTF-8 text")

    def _file_cap(self) -> int:
        """The size limit in bytes of a binary file. In a repository of class app, the `.svc.yaml` on the live
        frontier may raise it."""
        row = self.frontier.living(MANIFEST)
        text = self.manifests.get(row.digest) if row is not None and row.kind == "text" else None
        return file_cap(text, self.repo_kind)

    def _require_seen(self, update: LiveUpdate, row: LaneRow) -> None:
        if row.gen != update.gen or row.other(self.replica) > update.base:
            raise Refusal("stale")


def _accept(n: int, row: LaneRow, state_vector: str = "") -> UpdateAnswer:
    digest_hex = "" if row.kind == "gone" else row.digest.hex()
    return UpdateAnswer(
        n=n,
        result="ok",
        seq=row.ver,
        gen=row.gen,
        epoch=row.epoch,
        digest=digest_hex,
        state_vector=state_vector,
    )
