"""Runs a command without effect, to tell what it would do (`--dry-run`).

The command's own code runs on a copy of the database and on an overlay of the folder. Its transport answers
updates from the known frontier and sends nothing. A real run can differ only if others change something in
between, or if the relay refuses something for reasons that only it knows."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from localstore.core.encoding import unhex
from localstore.core.errors import ServerMisbehaved
from localstore.core.lane.update import LiveUpdate, decoded_ops
from localstore.core.model.history import Seal, Tree
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    LaneMoved,
    LanesRequest,
    LaneStates,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.model.live import Row as WireRow
from localstore.core.model.ref import Ref
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest
from localstore.core.paths import parents
from localstore.core.storage.chunks import kind_of_bytes
from localstore.core.storage.pack import Pack
from localstore.folder.files import FetchedFile
from localstore.folder.link import rename_link
from localstore.folder.overlay import OverlayFiles, Placeholder
from localstore.folder.scan_result import Scan
from localstore.folder.stat_cache import read_stat
from localstore.folder.writer import temp_name
from localstore.home import Home
from localstore.record.database import Database, FrontierRow
from localstore.record.objects import Objects
from localstore.record.state_file import Parts, StateFile
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import WorkingCopy

SCRATCH = "rehearsal-"


@contextmanager
def dry_run_copy(copy: WorkingCopy) -> Iterator[DryRunCopy]:
    """A context with a working copy whose changes affect neither the folder nor the record nor the relay. If
    the run finds that the branch has moved back to an older state, the real working copy `copy` notes this
    too, so that the user is told."""
    for folder in copy.record.glob(f"{SCRATCH}*"):  # of one that was killed
        shutil.rmtree(folder, ignore_errors=True)
    with scratch_copy(copy, SCRATCH) as dry_copy:
        try:
            yield dry_copy
        finally:
            copy.moved_back = dry_copy.moved_back


@contextmanager
def scratch_copy(copy: WorkingCopy, prefix: str) -> Iterator[DryRunCopy]:
    """A context with a working copy whose changes are discarded. Its scratch files are in a folder inside the
    record's folder; `prefix` is how that folder's name begins. The process need not own the real working
    copy."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=copy.record) as name:
        scratch = Path(name)
        real, duplicate = sqlite3.connect(copy.record / "state.db"), sqlite3.connect(scratch / "state.db")
        with closing(real), closing(duplicate):
            real.backup(duplicate)
        dry_copy = DryRunCopy(copy, scratch)
        try:
            yield dry_copy
        finally:
            dry_copy.close()


class DryRunCopy(WorkingCopy):
    """A working copy that discards all changes. `sent_rows`: for the path of each update that a real run
    would send, the row that the relay would have afterwards; None if the path would be removed."""

    def __init__(self, copy: WorkingCopy, scratch: Path) -> None:
        real = copy.transport
        super().__init__(
            copy.folder, copy.repo, copy.home, scratch, real, copy.key, copy.now
        )  # no progress: nothing is sent
        self.files.close()
        self.objects.close()
        self._overlay = OverlayFiles(copy.folder, scratch / "files", self._bytes_of)
        self.files = self._overlay
        self.objects = _ScratchObjects(copy.record / "objects", scratch / "objects", self.db)
        self.state = _UnwrittenState(copy.folder, self.db)
        self.home = _ScratchHome(copy.home, scratch)
        self.file_cap = copy.file_cap
        self.sent_rows: dict[str, FrontierRow | None] = {}
        self.use_transport(_DryRunTransport(real, self))

    def rename(self, repo: str, class_: str) -> None:
        self.repo = rename_link(self.repo, repo, class_)

    def scan(self, lean: bool = False, heard: bool = False) -> Scan:
        scanned = super().scan(lean, heard)
        touched = self._overlay.touched
        if touched:
            fresh = [stat for path in touched if (stat := read_stat(self.files, path)) is not None]
            present = {stat.path for stat in fresh}
            with self.db.step():
                self.db.put_stats(fresh, [path for path in touched if path not in present])
            scanned.read_from_records(lambda: self.db.folders().values(), self.db.scan_record.file)
        return scanned

    def fetch(self, sizes: Mapping[bytes, int], keep: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yields (digest, bytes) of objects. `keep`: whether the objects are texts that the run reads. If so,
        their bytes are fetched; otherwise placeholders stand for the bytes."""
        if keep:
            yield from super().fetch(sizes, keep)
            return
        for digest, size in sizes.items():
            yield digest, Placeholder.of(digest, "blob", size)

    def copies_of(self, sizes: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
        """Yields nothing, because `fetch` returns placeholders, for which no copies are needed."""
        yield from ()

    def placeholder_for(self, digest: bytes, size: int) -> FetchedFile | None:
        path = temp_name("")
        self._overlay.promise(path, Placeholder.of(digest, "chunked", size))
        return FetchedFile(path)

    def frontier(self) -> dict[str, tuple[str, bytes]]:
        """(kind, digest) of each file on the branch as the relay would have it after the run, by path."""
        rows: dict[str, FrontierRow | None] = {**self.db.rows(), **self.sent_rows}
        return {path: (row.kind, row.digest) for path, row in rows.items() if row is not None}

    def _bytes_of(self, promise: Placeholder) -> bytes:
        fetched = dict(super().fetch({promise.digest: promise.size}, keep=False))
        if promise.digest not in fetched:
            raise ServerMisbehaved(f"the server did not send {promise.digest.hex()[:12]}; try again")
        return fetched[promise.digest]


class _DryRunTransport(Transport):
    """A transport that passes reads to the relay and discards writes."""

    def __init__(self, real: Transport, copy: DryRunCopy) -> None:
        self._real, self._copy = real, copy
        self._seq = self._known_seq = 0
        self._folders: Counter[str] = Counter()  # how many files the relay would have below each folder

    def bootstrap(self, request: BootstrapRequest) -> Bootstrap:
        adjusted = msgspec.structs.replace(
            request, since=min(request.since, self._known_seq or request.since)
        )
        answer = self._real.bootstrap(adjusted)
        self._known_seq = answer.seq
        self._seq = max(self._seq, answer.seq)
        taken = [_to_wire(path, row) for path, row in self._copy.sent_rows.items()]
        return msgspec.structs.replace(answer, seq=self._seq, rows=[*answer.rows, *taken])

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        self._folders = Counter(above for path in self._copy.frontier() for above in parents(path))
        answers = [self._answer(update) for update in batch.updates]
        return UpdateAnswers(seq=self._seq, answers=answers)

    def _answer(self, update: LiveUpdate) -> UpdateAnswer:
        """The answer that the relay would give to an update. It is derived from the known rows of the
        frontier."""
        row = self._row(update.path)
        if update.kind == "edit_text":
            return self._answer_edit(update, row)
        if update.kind == "delete" and row is None:
            return UpdateAnswer(n=update.n, result="ok", seq=self._seq)
        kind = (
            "text" if update.kind == "create_text" else kind_of_bytes(update.size or 0, self._copy.repo_kind)
        )
        content = unhex(update.blake3) if update.blake3 is not None else b""
        if row is not None and (row.kind, row.digest) == (kind, content):
            return _ok(update, row)
        if row is not None and (row.gen != update.gen or row.other > update.base):
            return UpdateAnswer(n=update.n, result="stale")
        if update.kind == "delete":
            self._seq += 1
            self._copy.sent_rows[update.path] = None
            self._folders.subtract(parents(update.path))
            return UpdateAnswer(n=update.n, result="ok", seq=self._seq)
        if self._clashes(update.path):
            return UpdateAnswer(n=update.n, result="stale")
        self._seq += 1
        new_row = FrontierRow(update.path, kind, self._seq, 0, self._seq, 0, content, update.size or 0, False)
        self._copy.sent_rows[update.path] = new_row
        if row is None:
            self._folders.update(parents(update.path))
        return _ok(update, new_row)

    def _answer_edit(self, update: LiveUpdate, row: FrontierRow | None) -> UpdateAnswer:
        if row is None or row.gen != update.gen or row.kind != "text":
            return UpdateAnswer(n=update.n, result="stale")
        entry, ops = self._copy.entries[update.path], decoded_ops(update)
        if row.epoch not in (update.epoch, -1):
            return UpdateAnswer(n=update.n, result="epoch")
        if not update.typed and row.other > update.base:
            moved = LaneMoved(update.path)
            return UpdateAnswer(n=update.n, result="refused", code=moved.code, detail=moved.detail)
        if entry.pending == len(ops) and entry.want is not None:
            text = entry.want
        else:
            lane = self._copy.confirmed_lane(entry)
            lane.replay(ops)
            text = lane.digest()
        self._seq += 1
        edited = row._replace(ver=self._seq, digest=text, live=True)
        self._copy.sent_rows[update.path] = edited
        return _ok(update, edited)

    def _row(self, path: str) -> FrontierRow | None:
        taken = self._copy.sent_rows
        return taken[path] if path in taken else self._copy.db.row(path)

    def _clashes(self, path: str) -> bool:
        """Whether the branch cannot have a file at the path, because it has a directory there, or a file at
        the path of a folder above."""
        return self._folders[path] > 0 or any(self._row(above) is not None for above in parents(path))

    def have(self, digests: Sequence[bytes]) -> list[bytes]:
        return []

    def upload_pack(self, pack: Pack) -> None:
        """Does nothing, because a dry run sends nothing."""

    def put_manifest(self, digest: bytes, raw: bytes) -> None:
        """Does nothing, because a dry run sends nothing."""

    def prepare(self, request: PrepareRequest) -> Prepared:
        raise NotImplementedError("a rehearsal ends before the seal")

    def finalize(self, request: FinalizeRequest) -> Seal:
        raise NotImplementedError("a rehearsal ends before the seal")

    def lanes(self, request: LanesRequest) -> LaneStates:
        return self._real.lanes(request)

    def fetch_pack(self, digests: Sequence[bytes]) -> Iterator[bytes]:
        return self._real.fetch_pack(digests)

    def manifest(self, digest: bytes) -> bytes:
        return self._real.manifest(digest)

    def ref(self) -> Ref:
        return self._real.ref()

    def head(self) -> str | None:
        return self._real.head()

    def seal(self, seal_id: str) -> Seal:
        return self._real.seal(seal_id)

    def tree(self, seal_id: str) -> Tree:
        return self._real.tree(seal_id)

    def proof(self, seal_id: str) -> bytes:
        return self._real.proof(seal_id)


def _to_wire(path: str, row: FrontierRow | None) -> WireRow:
    """The row in the relay's wire format. For None, it is a row of the kind `gone`."""
    if row is None:
        return WireRow(path=path, kind="gone", gen=0, epoch=0, ver=0, other=0, digest="", size=0, live=False)
    return WireRow(
        path=path, kind=row.kind, gen=row.gen, epoch=row.epoch, ver=row.ver, other=row.other,
        digest=row.digest.hex(), size=row.size, live=row.live,
    )  # fmt: skip


def _ok(update: LiveUpdate, row: FrontierRow) -> UpdateAnswer:
    return UpdateAnswer(
        n=update.n, result="ok", seq=row.ver, gen=row.gen, epoch=row.epoch, digest=row.digest.hex()
    )


class _ScratchObjects(Objects):
    """An object store that reads the texts of the real record, and writes new ones to a scratch folder."""

    def __init__(self, real: Path, scratch: Path, db: Database) -> None:
        self._real = real
        numbers = [int(path.stem) for path in real.glob("*.pack") if path.stem.isdigit()]
        self._first = max(numbers, default=0) + 1
        super().__init__(scratch, db)

    def _current(self) -> int:
        return self._first

    def _path(self, number: int) -> Path:
        return super()._path(number) if number >= self._first else self._real / f"{number}.pack"


class _UnwrittenState(StateFile):
    """A state file that is never written."""

    def is_written(self) -> bool:
        return True

    def write(self, state: Parts) -> None:
        """Does nothing, because a dry run writes no state file."""


class _ScratchHome(Home):
    """The data folder of the client (SVC_HOME) with a temporary trash, which is deleted after the dry run."""

    def __init__(self, real: Home, scratch: Path) -> None:
        super().__init__(real.root)
        self._scratch = scratch

    def new_trash(self, now: datetime) -> Path:
        trash = self._scratch / "trash"
        shutil.rmtree(trash, ignore_errors=True)
        trash.mkdir()
        return trash
