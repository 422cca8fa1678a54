"""Opens a working copy: owned (locked) for one command, owned in rounds, or only for reading.

A command owns its folder from beginning to end. A longer-lived process (`RoundOwner`) keeps the working copy
open and owns it for one round at a time. If another process wrote in between, which SQLite's `data_version`
shows, cached values are dropped. Reading (`looked_at`) needs no ownership."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path

import msgspec

from localstore.core.identity.keys import DeviceKey
from localstore.disk_errors import translated_disk_errors
from localstore.errors import CopyBusy
from localstore.folder import link, lock
from localstore.folder.identity import Identity, identify
from localstore.folder.link import RepoLink
from localstore.home import Home
from localstore.progress import Progress, silent
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import WorkingCopy, utc_now

LOOK_SECONDS = 1.0  # that a look waits for the folder, before it takes a copy of its record
LOOK = "look-"
LEFT_SECONDS = 3600  # after which the copy of a look is one that was killed


class Turn(msgspec.Struct, frozen=True):
    """How a command waits until it can own a folder. `command`: its name, shown to others that wait.
    `seconds`: how long it waits at most. `waiting`: called if the wait takes a while. `link`: the link
    that the command expects the folder to have, None for any."""

    command: str = ""
    seconds: float = lock.PATIENCE
    waiting: lock.Waiting = lambda _: None
    link: RepoLink | None = None

    def owning(self, record: Path, folder: Path) -> AbstractContextManager[None]:
        """A context that holds the folder's lock. Raises CopyBusy."""
        return lock.own_working_copy(record / "lock", folder, self.command, self.seconds, self.waiting)


Bound = tuple[Transport | None, DeviceKey | None]
"""The relay, and the key to sign with, for what a link leads to."""


@contextmanager
def open_copy(
    folder: Path,
    home: Home,
    transport: Transport | None = None,
    key: DeviceKey | None = None,
    now: Callable[[], datetime] = utc_now,
    progress: Progress = silent,
    turn: Turn = Turn(),  # noqa: B008 - frozen
) -> Iterator[WorkingCopy]:
    """A context with the working copy linked at `folder`, locked by this process.

    Raises NotLinked, LinkDamaged, CopyBusy or FolderTurned. Inside the context, DiskError is raised for
    errors of the disk."""
    before = turn.link or link.read_repo(folder)
    record = _record(folder, home, before)
    with translated_disk_errors(folder, record), turn.owning(record, folder):
        same = link.require_same(folder, before)
        copy = WorkingCopy(folder, same, home, record, transport, key, now, progress)
        try:
            yield copy
        finally:
            copy.close()


@contextmanager
def looked_at(
    folder: Path,
    home: Home,
    transport: Transport,
    progress: Progress = silent,
    turn: Turn = Turn(),  # noqa: B008 - frozen
) -> Iterator[WorkingCopy]:
    """A context with the working copy for reading. If the lock is not free within LOOK_SECONDS,
    `turn.waiting` is called, and the working copy uses a snapshot of the record. Changes of the snapshot
    are discarded."""
    quick = msgspec.structs.replace(turn, seconds=min(turn.seconds, LOOK_SECONDS), waiting=lambda _: None)
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(open_copy(folder, home, transport, progress=progress, turn=quick))
        except CopyBusy as busy:
            turn.waiting(busy.owner)
            copy = stack.enter_context(_copy_record(folder, home, transport, progress, turn.link))
        yield copy


@contextmanager
def _copy_record(
    folder: Path, home: Home, transport: Transport, progress: Progress, before: RepoLink | None
) -> Iterator[WorkingCopy]:
    """A context with a working copy that uses a temporary copy of the record, without the lock. Its changes
    are discarded. `before`: the folder's link, if it was already read."""
    from localstore.sync.dry_run import scratch_copy  # few commands need it

    repo = before or link.read_repo(folder)
    record = _record(folder, home, repo)
    with translated_disk_errors(folder, record):
        _sweep(record)
        real = WorkingCopy(folder, repo, home, record, transport, progress=progress)
        try:
            with scratch_copy(real, LOOK) as copy:
                yield copy
        finally:
            real.close()


class RoundOwner:
    """A working copy that stays open. This process owns (locks) it only during rounds.

    `bind`: returns relay and key for a link. It is called before the first round, and after the folder was
    switched to another branch, seal or repository. Use this class from one thread. A round should last 200 ms
    at most; end it earlier if another process waits for the folder (`is_wanted`)."""

    def __init__(
        self,
        folder: Path,
        home: Home,
        bind: Callable[[RepoLink], Bound],
        turn: Turn = Turn(),  # noqa: B008 - frozen
        now: Callable[[], datetime] = utc_now,
        progress: Progress = silent,
    ) -> None:
        self.folder, self._home, self._bind, self._turn = folder, home, bind, turn
        self._now, self._progress = now, progress
        self._copy: WorkingCopy | None = None
        self._version: int | None = None  # of the database in the last round
        self._failed = False  # the last round: memory may be wrong
        self._written_elsewhere = False
        self._identity: Identity | None = None
        self._bound: tuple[RepoLink, Bound] | None = None

    @contextmanager
    def round(self) -> Iterator[WorkingCopy]:
        """A context with the working copy, owned by this process. Raises the errors of `open_copy`, except
        FolderTurned."""
        while True:
            repo = link.read_repo(self.folder)
            if self._bound is None or not link.same_target(self._bound[0], repo):
                self._bound = repo, self._bind(repo)
            record = self._find(repo)
            with translated_disk_errors(self.folder, record), self._turn.owning(record, self.folder):
                now = link.read_repo(self.folder)
                if not link.same_target(now, repo) or self._find(now) != record:
                    continue  # while this waited, the folder was switched to another branch or linked again
                copy = self._ready(record, now, self._bound[1])
                self._failed = True  # stays so if the block raises
                yield copy
                self._failed = False
                return

    def is_wanted(self) -> bool:
        """Whether another process waits for the folder."""
        return self._copy is not None and lock.is_wanted(self._copy.record / "lock")

    def is_changed(self) -> bool:
        """Whether another process has written to the record since the last round. Ask this between rounds; it
        takes microseconds."""
        return self._copy is not None and self._copy.db.version() != self._version

    def pop_changed(self) -> bool:
        """Whether another process has written to the record since this was asked last. Ask this in a
        round."""
        changed, self._written_elsewhere = self._written_elsewhere, False
        return changed

    def bind_again(self) -> None:
        """Call `bind` before the next round, because the user may have got or lost rights."""
        self._bound = None

    def close(self) -> None:
        """Close the working copy. Must not be called inside a round."""
        if self._copy is not None:
            self._copy.close()
        self._copy = self._version = None
        self._failed = False

    def _find(self, repo: RepoLink) -> Path:
        """The folder of the working copy's record."""
        copy = self._copy
        if copy and copy.repo.repo_id == repo.repo_id and identify(self.folder) == self._identity:
            return copy.record
        return _record(self.folder, self._home, repo)

    def _ready(self, record: Path, repo: RepoLink, bound: Bound) -> WorkingCopy:
        """The working copy, opened if it is not open yet. Cached values that another process may have changed
        are dropped."""
        if self._copy is None or self._copy.record != record:
            self.close()
            self._identity = identify(self.folder)
            self._copy = WorkingCopy(self.folder, repo, self._home, record, *bound, self._now, self._progress)
        copy = self._copy
        transport, copy.key = bound
        copy.repo = repo
        if transport is not None:
            copy.use_transport(transport)
        version = copy.db.version()
        if version != self._version:
            self._written_elsewhere = True
        if version != self._version or self._failed:
            copy.renew()
        self._version = version
        copy.begin_report()
        return copy


def _record(folder: Path, home: Home, repo: RepoLink) -> Path:
    with translated_disk_errors(home.root, home.root):
        return home.record_of(folder, repo.repo_id)


def _sweep(record: Path) -> None:
    """Remove old snapshots of a record that killed processes left."""
    for snapshot in record.glob(f"{LOOK}*"):
        with suppress(OSError):
            if time.time() - snapshot.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(snapshot, ignore_errors=True)
