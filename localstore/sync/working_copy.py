"""An opened working copy: its folder, record, branch and connection to the relay. All functions of
`localstore.sync` work on an opened working copy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localstore.core import paths
from localstore.core.encoding import digest as blake3
from localstore.core.errors import ServerMisbehaved, ServerUnreachable
from localstore.core.identity.keys import DeviceKey
from localstore.core.lane.first_edit import FirstEdit
from localstore.core.lane.genesis import genesis
from localstore.core.lane.lane import Lane
from localstore.core.model import limits
from localstore.core.model.history import Tree
from localstore.core.seal import SealPayload
from localstore.folder import link
from localstore.folder.chunking import ChunkLists
from localstore.folder.files import FetchedFile, Files
from localstore.folder.git_excludes import GitExcludes
from localstore.folder.git_tracked import GitTracked, TrackedPaths
from localstore.folder.link import RepoLink
from localstore.folder.rescan import rescan
from localstore.folder.scan_result import Scan
from localstore.folder.stat_cache import ScanSinks, Stat, read_stat
from localstore.home import Home
from localstore.progress import Progress, silent
from localstore.record.database import Database, SealedFile, SealedTree
from localstore.record.entries import Entries
from localstore.record.entry import PathRecord, known_by_bytes
from localstore.record.objects import Objects
from localstore.record.state_file import StateFile
from localstore.record.typed import drop_typed
from localstore.sync import verify
from localstore.sync.edited_lanes import EditedLanes
from localstore.sync.followed import Followed
from localstore.sync.transfer.fetch import fetch
from localstore.sync.transfer.fill import KnownFile
from localstore.sync.transfer.transport import Transport

RECORDED = "recorded"  # set once the record knows the folder better than `state.json`
Placed = Callable[[str, bytes | None, bytes], object]
"""Called within the step that records a file written here: its path, the digest before (None: no file) and
the digest now."""
Placing = Callable[[str, str], AbstractContextManager[object]]
"""Called with a path and a temporary name: the context in which a file comes from there to its path."""
Rebase = Callable[[PathRecord, bytes, bytes], object]
"""Called with an entry and a text that differs from its shadow: digest and bytes. It may make an older text
the shadow, the one that the save was made from."""
Ours = Callable[[str], Stat | None]
"""Stat and digest of a file that svc wrote, if it still is the one. Who is the next to read such a file is of
interest while edits travel as they are made, so svc does not read it."""
SEALED_AT = "sealed_at"  # when the folder's last seal was made, as the seal says
PART_SEEN = "part_seen"  # the seal of which this account saw a part when its files were recorded
REUSED = "reused"  # set when the relay reports an update number that was used twice


def utc_now() -> datetime:
    return datetime.now(UTC)


class WorkingCopy:
    """An opened working copy. Use `localstore.sync.owning` to open one. `transport`: None for offline
    commands. `key`: None for commands that sign nothing."""

    def __init__(
        self,
        folder: Path,
        repo: RepoLink,
        home: Home,
        record: Path,
        transport: Transport | None = None,
        key: DeviceKey | None = None,
        now: Callable[[], datetime] = utc_now,
        progress: Progress = silent,
    ) -> None:
        self.folder, self.repo, self.home, self.key = folder, repo, home, key
        self.now, self.progress = now, progress
        self.record, self._transport = record, transport
        self.db = Database(record / "state.db")
        self.objects = Objects(record / "objects", self.db)
        self.state = StateFile(folder, self.db)
        self.files = Files(folder)
        self.git = GitTracked(folder, record)
        self.tracked = TrackedPaths(self.db, self.git)
        self.git_excludes = GitExcludes(folder)
        self.sends_git_ignored = False  # whether the user confirmed that
        self.conflicts: list[tuple[str, str]] = []  # paths, and what their files are called now
        self.merged: set[str] = set()  # paths whose captured edits were merged with edits by others
        self.hidden: dict[str, Path | None] = {}  # paths that only writers see now: the files' trash folder
        self.sealed_by: list[str] = []  # handles of those who made the seals that a pull brings
        self.unreadable: dict[str, str] = {}  # paths whose lanes, as the relay sent them, were refused: why
        self.turn_id: str | None = None  # what an agent calls the turn in which it edits
        self.moved_back: str | None = None  # the branch was older than before: the seal that both have, or ""
        self.live = False  # whether saves travel as they are made
        self.followed = Followed()
        self.placed: Placed = lambda path, before, new: None
        self.placing: Placing = lambda path, temp: nullcontext()
        self.ours: Ours = lambda path: None
        self.rebase: Rebase = lambda entry, digest, data: None
        self.file_cap = limits.BLOB_FILE  # bytes that one binary of the repository may have
        self.entries = Entries(self.db)
        self.edited_lanes = EditedLanes()
        self.chunk_lists = ChunkLists()
        self.fetched_lists = ChunkLists()  # of large files that came, or that chunks were looked for in
        self.known_files: Callable[[int], Iterable[KnownFile]] = lambda size: ()
        self.paths_of_binaries: dict[bytes, list[str]] = {}  # of wanted files that lie here
        self.reused = 0  # bytes of binary files that were copied from others instead of fetched

    def close(self) -> None:
        self.files.close()
        self.objects.close()
        self.db.close()

    def renew(self) -> None:
        """Drop cached values of the record, because another process may have changed it."""
        self.objects.renew()
        self.db.byte_files.forget_total()
        self.entries = Entries(self.db)
        self.edited_lanes = EditedLanes()

    def begin_report(self) -> None:
        """Begin a round: empty the lists of conflicts and merges to report, and close the directories that
        are still open from before."""
        self.conflicts, self.sealed_by = [], []
        self.merged, self.unreadable, self.hidden = set(), {}, {}
        self.entries.begin_round()
        self.files.forget()

    def rename(self, repo: str, class_: str) -> None:
        """Record the repository's name and class as the server reports them now."""
        self.repo = link.refresh(self.folder, self.repo, repo, class_)

    # --- who we are

    @property
    def transport(self) -> Transport:
        """The connection to the relay, for one repository and branch. Raises ServerUnreachable in an offline
        command."""
        if self._transport is None:
            raise ServerUnreachable("this needs the server, and the command runs offline")
        return self._transport

    def use_transport(self, transport: Transport) -> None:
        """Use this transport, which belongs to another branch, from now on."""
        self._transport = transport

    @property
    def replica(self) -> int:
        return self.db.number("replica")

    @property
    def branch_id(self) -> str:
        return self.db.text("branch_id") or ""

    @property
    def last_seal(self) -> str | None:
        """The id of the folder's last seal, which is the newest seal whose tree the folder has. None without
        a seal."""
        return self.db.text("last")

    @property
    def repo_kind(self) -> str:
        """The repository's kind, as last reported by the relay."""
        return self.db.text("repo_kind") or ""

    @property
    def device_id(self) -> str:
        return self.key.id if self.key else "offline"

    # --- entries

    def save_all(self, entries: Iterable[PathRecord]) -> None:
        """Store these entries. If one of the paths is new, the next scan walks the whole folder."""
        stored = list(entries)
        if not all(entry.path in self.entries for entry in stored):
            self.db.scan_record.put_last_scan(None)
        self.entries.update((entry.path, entry) for entry in stored)
        self.db.put_entries(stored)

    def save(self, entry: PathRecord) -> None:
        """Store one entry. If its path is new, the next scan walks the whole folder."""
        if entry.path not in self.entries:
            self.db.scan_record.put_last_scan(None)
        self.entries[entry.path] = entry
        self.db.put_entries([entry])

    def forget(self, path: str) -> None:
        """Drop the entry of a path. A file at the path then counts as new."""
        if self.entries.pop(path, None) is not None:
            self.db.scan_record.put_last_scan(None)
        self.db.drop_entries([path])
        drop_typed(self.db, path)

    def replace(self, entries: Mapping[str, tuple[PathRecord, bytes | None]]) -> None:
        """Store an entry and a lane state for each path. Pending updates and older states of the paths are
        dropped. None of the paths may have an update in flight."""
        stored = [entry for entry, _ in entries.values()]
        if not all(path in self.entries for path in entries):
            self.db.scan_record.put_last_scan(None)
        self.entries.update((entry.path, entry) for entry in stored)
        self.db.replace_entries(stored)
        for path, (_, state) in entries.items():
            if state is not None:
                self.db.put_lane_state(path, state)

    def confirmed_lane(self, entry: PathRecord) -> Lane:
        """The lane of an entry as the relay confirmed it. This replica can edit it."""
        state = self.confirmed_state(entry)
        if state is not None:
            return Lane.load(state, self.replica)
        assert entry.genesis is not None  # noqa: S101 - every text entry has one
        return self.genesis(entry.gen, entry.epoch, self.text(entry.genesis))

    def confirmed_state(self, entry: PathRecord) -> bytes | None:
        """The CRDT state of the lane as the relay confirmed it. None if the lane still has the text with
        which it began."""
        stored = self.db.lane_state(entry.path) if entry.touched else None
        if stored is None or entry.genesis is None:
            return None
        state, whole = stored
        if whole:
            return state
        text = self.text(entry.genesis)
        return FirstEdit(genesis(self.branch_id, entry.gen, entry.epoch, text, entry.genesis), state).state()

    def genesis(self, gen: int, epoch: int, text: bytes) -> Lane:
        return Lane.genesis(self.branch_id, gen, epoch, text, self.replica)

    def lane_with_pending(self, entry: PathRecord) -> Lane:
        """The confirmed lane with the pending updates applied."""
        lane = self.confirmed_lane(entry)
        if entry.pending:
            lane.replay(self.db.pending(entry.path))
        return lane

    # --- bytes

    def text(self, digest: bytes) -> bytes:
        """The text with this digest, from the record or otherwise from the relay. Raises ServerMisbehaved if
        the relay does not send it."""
        stored = self.objects.get(digest)
        if stored is not None:
            return stored
        fetched = dict(self.fetch({digest: 0}, keep=True))
        if digest in fetched:
            return fetched[digest]
        raise ServerMisbehaved(f"the server did not send the text {digest.hex()[:12]}; try again")

    def fetch(self, sizes: Mapping[bytes, int], keep: bool) -> Iterator[tuple[bytes, bytes]]:
        """Yields verified objects (digest, bytes) from the relay, each once. `keep`: also store them in the
        record. `sizes`: the requested digests with their sizes in bytes, which decide how the objects are
        divided into requests."""
        return fetch(self.transport, self.objects if keep else None, sizes)

    def copies_of(self, sizes: Mapping[bytes, int]) -> Iterator[tuple[bytes, bytes]]:
        """Yields (digest, bytes) of binary files that are somewhere in this folder, as after a rename or a
        copy on the branch. Each is yielded once. `sizes`: the digests to look for, with their sizes in
        bytes."""
        for digest, size in sizes.items():
            for path in self.paths_of_binaries.get(digest, ()):
                data = self.files.read_up_to(path, size)
                if data is not None and blake3(data) == digest:
                    yield digest, data
                    break

    def placeholder_for(self, digest: bytes, size: int) -> FetchedFile | None:
        """A placeholder for a large file that need not be fetched. None if the file must be fetched, which is
        always so here; a dry run overrides this method."""
        return None

    # --- the folder

    def scan(self, lean: bool = False, heard: bool = False) -> Scan:
        """Scan the folder, store the changes, and return the scan.

        `lean`, `heard`: each of them limits the scan to the folders that a running watcher names. `lean` also
        keeps nothing for sending; otherwise changed texts are cached, and the chunks of large files are
        remembered."""
        sends = self._transport is not None and self.file_cap > limits.BLOB_FILE
        sinks = ScanSinks(self.chunk_lists if sends else None, None if lean else self.objects.cache)
        now = int(self.now().timestamp())
        return rescan(self.db, self.files, self.record, now, self.tracked, sinks, lean or heard)

    def exists(self, path: str) -> bool:
        """Whether anything is at the path."""
        return self.files.stat(path) is not None

    def free_name(self, path: str, claimed: Collection[str] = ()) -> str:
        """A conflict name for the file at `path` that is neither taken nor in `claimed`. A file can get the
        name now: if a file or a link is in the place of a directory above `path`, the name is beside it."""
        when, blocker = self.now(), self.files.find_blocker(path)
        name = paths.conflict_name(path, when, self.device_id, blocker)
        while self.is_taken(name) or name in claimed:
            when += timedelta(seconds=1)
            name = paths.conflict_name(path, when, self.device_id, blocker)
        return name

    def is_taken(self, name: str) -> bool:
        """Whether the name is taken: a file has it, or the record has an entry with it."""
        return self.exists(name) or name in self.entries

    def digest_on_disk(self, path: str) -> bytes | None:
        """The digest of the regular file that is now at the path. None if there is none."""
        stat = self.stat_on_disk(path)
        return stat.digest if stat else None

    def stat_on_disk(self, path: str) -> Stat | None:
        """The stat, with digest, of the regular file that is now at the path. None if there is none. A file
        that is still as svc wrote it (`ours`) is not read."""
        return self.ours(path) or read_stat(self.files, path)

    # --- the seal

    def read_tree(self, seal: str, payload: SealPayload, answer: Tree | None = None) -> dict[str, SealedFile]:
        """The files of a seal that this account sees, verified. If it may only read, and does not see all of
        them, the record notes this: later it may see more of the same seal. `answer`: the seal's tree, if it
        was already requested."""
        visible = verify.read_part(self.transport, seal, payload, answer)
        if self.key is None and visible.opaque:
            self.db.put(PART_SEEN, seal)
        return visible.files

    @property
    def saw_part(self) -> bool:
        """Whether the folder has a part of its last seal only, because this account did not see the rest."""
        return self.last_seal is not None and self.db.text(PART_SEEN) == self.last_seal

    @property
    def lacks_part(self) -> bool:
        """Whether a pull brings more files of the folder's last seal: it has a part only, and this account
        may write now, and so sees all of it."""
        return self.saw_part and self.key is not None

    def record_seal(
        self,
        seal: str | None,
        changes: Mapping[str, SealedFile | None],
        whole: bool,
        tree: SealedTree | None = None,
    ) -> None:
        """Record the folder's last seal, then write `state.json`. `changes`: the files that differ from the
        previous seal, or all files if `whole` is set. `tree`: the directory objects of the seal's tree,
        None if unknown."""
        with self.db.step():
            if whole:
                self.db.change_sealed((path, None) for path in self.db.read_sealed() if path not in changes)
            self.db.change_sealed(changes.items())
            self.db.put_sealed_tree(tree)
            self.db.put("last", seal)
            self.db.put("prepared", None)
            if whole and self.key is not None:
                self.db.drop_value(PART_SEEN)  # whoever may write sees all files
            state = self.state.prepare(None if whole else changes)
        self.state.write(state)

    def record_clone(self, seal: str, files: Mapping[str, SealedFile], stats: Iterable[Stat]) -> None:
        """Record the first seal of a new working copy, whose files were just written."""
        with self.db.step():
            self.db.put_first_seal(files, stats)
            self.db.put("last", seal)
            state = self.state.prepare(None)
        self.state.write(state)

    def start_over(self) -> None:
        """Forget everything that is recorded about branch and replica. The files stay."""
        with self.db.step():
            self.db.forget_branch()
            self.db.put(RECORDED, 1)
        self.entries = Entries(self.db)

    def detach(self) -> None:
        """Forget branch and replica, because the folder gets another branch or key. The record still knows
        which bytes of the branch each file has.

        Paths with an update in flight are forgotten, because nobody knows whether the update was accepted.
        Other edits stay on the disk, as edits of the text that the relay confirmed last."""
        flying = self.db.flight_kinds()
        records = []
        for entry in self.entries.values():
            shadow = entry.shadow
            if entry.pending and not entry.settled:
                continue  # the disk shows an edit of a text that is no longer known
            if entry.pending:
                text = self.confirmed_lane(entry).text()
                shadow = blake3(text)
                self.objects.add([(shadow, text)])
            if shadow is not None and entry.path not in flying:
                records.append(known_by_bytes(entry.path, entry.kind, shadow, entry.size))
        self.replace_records(records)

    def fall_back_to_last_seal(self) -> None:
        """Return to the last seal after the branch was deleted: forget the branch, and the entries of paths
        that the seal does not have. Afterwards each difference between the disk and that seal counts as an
        edit."""
        sealed = self.db.read_sealed()
        self.replace_records([known_by_bytes(path, *sealed[path]) for path in self.entries if path in sealed])

    def replace_records(self, records: Iterable[PathRecord]) -> None:
        """Forget everything about the branch and all entries, then store these entries."""
        with self.db.step():
            self.db.forget_branch()
            self.db.put(RECORDED, 1)
            self.entries = Entries(self.db)
            for entry in records:
                self.save(entry)
