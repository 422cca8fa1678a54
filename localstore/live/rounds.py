"""The steps of live sync in one working copy. Each step is part of a round, in which this process owns the
folder.

When nothing is left to do, the disk equals the frontier (the branch's files now). Then nothing is in flight,
every received path is written, and no save waits. Every file equals the branch's file, except the files that
cannot be sent (`Done.skipped`) and those that the relay refuses (`Rounds.barred`); the user is told of both.
To guarantee this, `bring` checks again each path whose update was lost or could not be made."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import msgspec

from localstore.core.lane.update import LiveUpdate
from localstore.core.model.live import UpdateAnswers
from localstore.core.paths import terminal_safe
from localstore.folder.files import BeingWritten
from localstore.folder.scan import scan as walk
from localstore.folder.scan_result import PartialWalk, Scan, Skipped, WatcherMistaken
from localstore.folder.stat_cache import ScanSinks, Stat, has_stat
from localstore.folder.walk_rules import is_utf8
from localstore.live.frames import Frames
from localstore.live.reads import Reads
from localstore.live.removals import HeldRemovals
from localstore.live.sheets import OpenSheet
from localstore.live.single import examine
from localstore.live.stale import Buffers, KeptLines
from localstore.record.entry import PathRecord
from localstore.sync.capture import capture
from localstore.sync.compose import Composed, compose, find_edited
from localstore.sync.conflicts import author_of
from localstore.sync.followed import Followed
from localstore.sync.live_renames import follow_save
from localstore.sync.reconcile import attach_lanes, follow_epochs, is_behind, reconcile_paths
from localstore.sync.remote import Connected, connect
from localstore.sync.settle import is_interrupted, recover, settle, write_hidden_edits
from localstore.sync.transfer.send import NEW_FILES, SendResult, batches, record_answers, upload_bytes
from localstore.sync.uncarried import with_kept
from localstore.sync.working_copy import WorkingCopy

WRITING_SECONDS = 2.0  # that svc waits for a program that has a file open for writing
REFUSALS = 3  # of one text because others changed it; then its edits are sent as typed ones


class Conflicting(msgspec.Struct, frozen=True):
    """A conflict at `path`. The branch's version stays there, and the local version is in the file `kept_as`.
    `by`: author of the branch's version. `deleted`: the branch has no file at the path."""

    path: str
    kept_as: str
    by: str | None
    deleted: bool = False


class Done(msgspec.Struct):
    """What a step did.

    - `written`: paths of files that were written or removed because of edits by others.
    - `merged`: texts into which edits of others were merged.
    - `kept`: lines that stay although saves of old buffers lacked them.
    - `skipped`: files that cannot be sent.
    - `moved`: (old path, new path) of renamed files to which an edit was moved.
    - `back`: (old path, new path) of renamed files that were restored at the old path, because an edit does
      not fit the new one."""

    written: list[str] = msgspec.field(default_factory=list)
    merged: list[str] = msgspec.field(default_factory=list)
    conflicts: list[Conflicting] = msgspec.field(default_factory=list)
    kept: list[KeptLines] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    moved: list[tuple[str, str]] = msgspec.field(default_factory=list)
    back: list[tuple[str, str]] = msgspec.field(default_factory=list)


class Rounds:
    """The state of live sync of one working copy between rounds. Use it from one thread."""

    def __init__(self) -> None:
        self.frames, self.reads = Frames(), Reads()
        self._was_read: dict[str, bool] = {}  # path → of the file that another one has just replaced
        self.buffers = Buffers(self._is_read)
        self.removals = HeldRemovals()
        self.followed = Followed()
        self.barred: dict[str, str] = {}  # paths that the relay refused → why, until they are saved again
        self._costly: set[str] = set()
        self._left_out: set[str] = set()  # files over a size cap
        self._moved: Counter[str] = Counter()
        self._coming: dict[str, int] = {}  # path → inode of the file that is to come there
        self._placed: dict[str, int] = {}  # path → inode of the file that svc wrote
        self._unseen: set[str] = set()  # paths that were being written when they were to be looked at
        self._writing: dict[str, float] = {}  # path → until when to wait for its writer
        self._leaving: dict[str, float] = {}  # path → until when to wait for the look at what became of it
        self._copy: WorkingCopy | None = None

    def close(self) -> None:
        self.reads.close()

    def begin(self, copy: WorkingCopy, turn: str | None) -> None:
        """Start a round. First finishes the work of a killed process, because the steps rely on a disk that
        matches the record. `turn`: name of the piece of work that edits belong to, None without one."""
        is_new = self._copy is not copy
        if is_new:
            if self._copy is None:
                self.buffers.forget_reads(copy)
            self._copy = copy
            self.frames.forget()
        self.reads.look()
        copy.turn_id, copy.files.leases = turn, True
        copy.followed = self.followed
        self.buffers.attach(copy)
        self.removals.prune(copy)
        note = copy.placed

        def note_placed(path: str, before: bytes | None, new: bytes) -> None:
            note(path, before, new)
            self._was_read.pop(path, None)
            self.reads.came(path)
            self._placed[path] = self._coming.pop(path, 0)

        @contextmanager
        def placing(path: str, temp: str) -> Iterator[None]:
            self.reads.watch(copy.files, temp, path)
            info = copy.files.stat(temp)
            self._coming[path] = info.st_ino if info else 0
            yield
            self.reads.look()  # svc itself reads next what was there
            self._was_read[path] = self.reads.was_read(path)

        copy.placed, copy.placing = note_placed, placing
        copy.ours = lambda path: self._ours(copy, path)
        if is_new or is_interrupted(copy):
            recover(copy)
            self.frames.paths.update(write_hidden_edits(copy))  # to be sent

    def capture_saved(self, copy: WorkingCopy, paths: Collection[str]) -> Done:
        """Capture what was saved at these paths as edits, and put their updates in flight."""
        self.reads.look()
        paths = [path for path in paths if path in self._unseen or not self.is_ours(copy, path)]
        for path in paths:
            self.barred.pop(path, None)
        return self._send_off(copy, self._follow_moved(copy, self._with_left_out(copy, paths)), None)

    def _with_left_out(self, copy: WorkingCopy, paths: Sequence[str]) -> Sequence[str]:
        """The saved `paths`. If the file at one of them is missing, the result also has the paths of all
        files that cannot be sent. The missing file may have been renamed to such a path, and then its old
        name stays on the branch."""
        if not self._left_out or all(copy.exists(path) for path in paths):
            return paths
        return [*paths, *sorted(self._left_out.difference(paths))]

    def capture_typed(self, copy: WorkingCopy, sheet: OpenSheet, updates: list[bytes], last: int) -> Done:
        """Apply the updates that were typed into an open text (sheet). They become an edit of the text's
        lane, which is written to the file and put in flight. If the file itself was saved, that save is
        captured first. `last`: number of the last of `updates`. Raises the errors of `OpenSheet.take`,
        with nothing changed."""
        path = sheet.path
        self.barred.pop(path, None)
        self.buffers.authors.pop(path, None)
        with ExitStack() as held, copy.db.step():
            if _is_still(copy, path, held):
                scan = examine(copy, [path])
                capture(copy, find_edited(copy, [path], scan), scan)
            sheet.follow(copy)
            sheet.take(copy, updates, last)
            self.buffers.record_typed(copy, path)
        settle(copy, [path])
        return self._compose_again(copy, [path])

    def saved_below(self, copy: WorkingCopy, folders: Iterable[str], heard: bool = False) -> Done:
        """Capture everything that changed below these folders as edits, and put the updates in flight.
        `heard`: the folders were named by a watcher, which knows what changed."""
        self.reads.look()
        scan, paths = _walk_folders(copy, folders, heard)
        self.barred = {path: why for path, why in self.barred.items() if path not in paths}
        followed = self._follow_moved(copy, paths)
        return self._send_off(copy, followed, scan if followed == paths else None)

    def again(self, copy: WorkingCopy, paths: Collection[str]) -> Done:
        """Compose new updates from what the files at these paths contain now, and put the updates in
        flight."""
        return self._send_off(copy, [path for path in paths if path not in self.barred], None)

    def bring(self, copy: WorkingCopy) -> Done:
        """Write received changes to the folder. Results of merges with edits made here are put in flight."""
        self.reads.look()
        writing = {path for path in self.frames.paths if self._is_written(copy, path)}
        paths = sorted(path for path in self.frames.paths - writing if not self._is_leaving(copy, path))
        changed = reconcile_paths(copy, Scan(), paths, partial(self.frames.lane, copy))
        self._end_waits(copy)
        self.frames.done(copy, paths)
        for path, why in copy.unreadable.items():
            self.barred[path] = why
        done = self.again(copy, [*_pending(copy, paths), *self._edited_elsewhere(copy)])
        unwritable = copy.db.unwritable()
        done.skipped += [
            Skipped(terminal_safe(path), unwritable[path]) for path in paths if path in unwritable
        ]
        return self._report(copy, done, changed)

    def bootstrap(self, copy: WorkingCopy) -> Connected:
        """Read the new rows of the branch's frontier from the relay and store them. The files of these rows
        are written later, by `bring`."""
        self.frames.forget()
        connected = connect(copy)
        attach_lanes(copy)
        rows = follow_epochs(copy, connected.rows)
        self.frames.paths.update(row.path for row in rows)
        self.frames.paths.update(connected.gone)
        return connected

    def outgoing(self, copy: WorkingCopy) -> list[LiveUpdate]:
        """The next updates to send. Their bytes are uploaded first. Returns [] if all updates are
        answered."""
        for updates in batches(copy):
            if any(update.kind in NEW_FILES for update in updates):
                upload_bytes(copy, updates)
            return updates
        return []

    def record_answers(
        self, copy: WorkingCopy, updates: list[LiveUpdate], answers: UpdateAnswers
    ) -> SendResult:
        """Record the relay's answers to updates. If an edit has to be merged before it is sent again, the
        next `bring` does this."""
        sent = SendResult()
        record_answers(copy, updates, answers, sent)
        for path in sent.accepted:
            self._moved.pop(path, None)
            self._costly.discard(path)
        self._moved.update(sent.moved)
        self._costly.update(sent.costly)
        self.barred.update(sent.refused)
        self.frames.paths.update(sent.lost)
        return sent

    def finish(self, copy: WorkingCopy) -> None:
        """End the round: stop watching new files that have not arrived, and close the folder's
        directories."""
        self.reads.none_comes()
        self._was_read.clear()
        self._coming.clear()
        while len(self._placed) > 1000:
            self._placed.pop(next(iter(self._placed)))
        copy.files.forget()

    def _is_read(self, path: str) -> bool:
        """Whether a program may have read the file at this path, or the file that svc has just replaced
        there."""
        return self._was_read.get(path, self.reads.was_read(path))

    def _is_written(self, copy: WorkingCopy, path: str) -> bool:
        """Whether svc must wait, because a program has the file open for writing. After a wait of
        WRITING_SECONDS the result is False."""
        if not copy.files.being_written(path):
            self._writing.pop(path, None)
            return False
        return time.monotonic() < self._writing.setdefault(path, time.monotonic() + WRITING_SECONDS)

    def _is_leaving(self, copy: WorkingCopy, path: str) -> bool:
        """Whether the file disappeared less than WRITING_SECONDS ago. A program may then be renaming it, and
        its new name is not known yet."""
        if copy.files.stat(path) is not None or copy.db.seen_on_disk(path) is None:
            self._leaving.pop(path, None)
            return False
        return time.monotonic() < self._leaving.setdefault(path, time.monotonic() + WRITING_SECONDS)

    def _follow_moved(self, copy: WorkingCopy, paths: Collection[str]) -> list[str]:
        """Move each save at the old path of a file that others renamed into the renamed file. Returns the
        saved `paths`, and the files into which edits were moved."""
        for path in self.followed.removed.keys() & paths:
            follow_save(copy, path)
        return list(dict.fromkeys([*paths, *self._edited_elsewhere(copy)]))

    def _end_waits(self, copy: WorkingCopy) -> None:
        """End the waits for the new path of a renamed file where the folder has the branch's version by now:
        a command such as `svc pull --merge` may have moved the edit there."""
        for path in [*self.followed.later]:
            row = copy.db.row(path)
            if row is None or not is_behind(copy.entries.get(path), row):
                del self.followed.later[path]

    def _edited_elsewhere(self, copy: WorkingCopy) -> list[str]:
        """The paths of files that got an edit from elsewhere since the last call. Such an edit was saved at
        the old path of a renamed file, or made to an earlier version of the file. Files that do not show
        their edit yet, and edits that must wait, are left for the next `bring`."""
        edited, self.followed.edited = sorted(self.followed.edited), set()
        for path in edited:
            entry = copy.entries.get(path)
            if entry is not None and not entry.settled:
                self.frames.paths.add(path)
        self.frames.paths.update(self.followed.later)
        return edited

    def _may_capture(self, copy: WorkingCopy, path: str, held: ExitStack) -> bool:
        """Whether the file may be read now. If an editor plugin has the file open, a half-written save must
        not become an edit. So the file is read only while no program writes it, and no program can begin
        to write it until `held` is closed. Other files can always be read, because they are scanned only
        after a program has closed them."""
        if not self.buffers.editors.edits(path) or _is_still(copy, path, held):
            self._unseen.discard(path)
            return True
        self._unseen.add(path)
        return False

    def is_ours(self, copy: WorkingCopy, path: str) -> bool:
        """Whether the file is still the one that svc wrote. This is judged by its stat."""
        return self._ours(copy, path) is not None

    def _ours(self, copy: WorkingCopy, path: str) -> Stat | None:
        """The recorded stat of the file if it is still the file that svc wrote, else None. This is judged by
        its stat."""
        inode = self._placed.get(path)
        if not inode:
            return None
        info, recorded = copy.files.stat(path), copy.db.scan_record.single(path)
        if info is None or recorded is None or info.st_ino != inode:
            return None
        return recorded if has_stat(recorded, info) else None

    def _send_off(self, copy: WorkingCopy, paths: Collection[str], scan: Scan | None) -> Done:
        """Capture the saves of `paths` as edits and compose their updates. Then write the texts that were
        merged, and compose updates of those. `scan`: a scan of the paths, None to make one."""
        if not paths:
            return Done()
        with ExitStack() as held, copy.db.step():
            if scan is None:
                paths = [path for path in paths if self._may_capture(copy, path, held)]
            scan = scan or examine(copy, paths)
            named = filter(is_utf8, paths)  # what svc cannot name, the record cannot look up
            seen = [path for path in named if path in copy.entries or scan.find(path) is not None]
            capture(copy, find_edited(copy, seen, scan), scan)
            open_ = [path for path in seen if (entry := copy.entries.get(path)) and not entry.settled]
            missing = {path for path in open_ if copy.entries[path].shadow and not copy.exists(path)}
            self.frames.paths.update(missing)  # an edit that no file shows belongs to what it became
            open_ = [path for path in open_ if path not in missing]
            composed = self._compose(copy, [path for path in seen if path not in open_], scan)
        if not open_:
            return self._report(copy, _report_skipped(composed, scan), ())
        settle(copy, open_)  # may need the relay, for which the others do not wait
        done = self._compose_again(copy, open_)
        done.skipped += _report_skipped(composed, scan).skipped
        return done

    def _compose_again(self, copy: WorkingCopy, paths: Collection[str]) -> Done:
        """Compose updates of these paths after files were written."""
        with ExitStack() as held, copy.db.step():
            paths = [path for path in paths if self._may_capture(copy, path, held)]
            again = examine(copy, paths)
            composed = self._compose(copy, paths, again)
        return self._report(copy, _report_skipped(composed, again), ())

    def _compose(self, copy: WorkingCopy, paths: Collection[str], scan: Scan) -> Composed:
        if copy.key is None or not copy.replica:
            return Composed()  # read-only, or never connected to the relay
        typed = {path for path, times in self._moved.items() if times >= REFUSALS}
        released = self.removals.hold(copy, scan, paths)
        barred = {*self.barred, *self.frames.paths, *self.removals.held}
        composed = compose(copy, scan, True, barred, self._costly, typed, only={*paths, *released})
        self._left_out.difference_update(paths)
        self._left_out.update(composed.left_out)
        for path in composed.marked:
            self.barred[path] = "it still holds conflict markers"
        return composed

    def _report(self, copy: WorkingCopy, done: Done, changed: Iterable[str]) -> Done:
        """Adds the written paths `changed` to `done`. Also adds the merges and conflicts that the working
        copy has noted. Returns `done`."""
        done.written.extend(changed)
        for path, name in copy.conflicts:
            clash = copy.db.conflicts.get(name)
            by = clash.by if clash is not None else author_of(copy, path)
            by = by or self.buffers.authors.get(path)
            deleted = (copy.db.row(path) if clash is None else clash.theirs) is None
            deleted = deleted and not copy.exists(path)
            done.conflicts.append(Conflicting(path, name, by, deleted))
            entry = copy.entries.get(path)
            if clash is not None and clash.mine and entry is not None and entry.want is not None:
                with copy.db.step():
                    self.buffers.moved_aside(copy, path, clash.mine, entry.want)
        aside = {path for path, _ in copy.conflicts}
        done.merged.extend(sorted(copy.merged - aside))
        done.kept.extend(self.buffers.kept)
        done.moved.extend(self.followed.moved)
        done.back.extend(self.followed.back)
        self.followed.moved, self.followed.back = [], []
        copy.conflicts, copy.merged, self.buffers.kept = [], set(), []
        copy.unreadable = {}
        return done


def _is_still(copy: WorkingCopy, path: str, held: ExitStack) -> bool:
    """Whether no program has the file open for writing. If the result is True, no program can open the file
    for writing until `held` is closed."""
    try:
        held.enter_context(copy.files.unwritten(path))
    except BeingWritten:
        return False
    return True


def _pending(copy: WorkingCopy, paths: Iterable[str]) -> list[str]:
    """Those of `paths` that need an update. They have captured edits, or their files differ from the record
    in a way that is never captured as an edit: the file is new, was removed, has changed bytes that are not
    text, or changed between text and binary."""
    flying = copy.db.flight_kinds()
    pending = []
    for path in paths:
        entry = copy.entries.get(path)
        if path not in flying and (entry is None or entry.pending or not _is_shown(copy, entry)):
            pending.append(path)
    return pending


def _is_shown(copy: WorkingCopy, entry: PathRecord) -> bool:
    """Whether the file on the disk has the content of its entry in the record. This is judged by its stat,
    because hashing would read each arriving file a second time."""
    info, recorded = copy.files.stat(entry.path), copy.db.scan_record.file(entry.path)
    if info is None or entry.shadow is None:
        return entry.settled and info is None and entry.shadow is None
    return (
        entry.settled
        and recorded is not None
        and recorded.digest == entry.shadow
        and has_stat(recorded, info)
    )


def _report_skipped(composed: Composed, scan: Scan) -> Done:
    return Done(skipped=with_kept([*composed.skipped, *scan.skipped], composed.kept))


def _walk_folders(copy: WorkingCopy, folders: Iterable[str], heard: bool) -> tuple[Scan, list[str]]:
    """Scan everything below these folders. Returns (the scan, the paths that changed). `heard`: see
    `Rounds.saved_below`."""
    below = set(folders)
    sinks = ScanSinks(copy.chunk_lists, copy.objects.cache)
    if "" not in below:
        with suppress(WatcherMistaken):
            vanished = (folder for folder in below if copy.files.stat(folder[:-1]) is None)
            # The folders above may hold what a vanished one became.
            beside = {folder[: folder[:-1].rfind("/") + 1] for folder in vanished}
            part = PartialWalk({*copy.db.scan_record.single_folders(), *beside}, below)
            copy.git.refresh()
            scan, news = walk(copy.files, copy.db.scan_record.folders_in(part), copy.tracked, sinks, part)
            with copy.db.step():
                copy.db.put_folders(*news)
            scan.read_from_records(lambda: copy.db.folders().values(), copy.db.scan_record.file)
            return scan, [*(stat.path for stat in news.fresh), *news.gone]
    return copy.scan(heard=heard), copy.db.may_need_update()
