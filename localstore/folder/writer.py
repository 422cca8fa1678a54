"""Writes files into a working copy while people work in it.

A file is replaced by an atomic exchange with a complete temporary file. The replaced file is examined
afterwards, so a save at the last moment is never lost. A journal in the client's record makes every step
resumable. Its entries (intents) have these states:

    writing  the temporary file may be incomplete; the exchange has not run
    ready    the exchange may have run; it has if another file (inode) has the temporary name now
    asked    as `ready`, but the user asked for the write (restore), so it is sent to the branch as an edit
    aside    the replaced file has bytes that are stored nowhere else, so it is kept under another name
    done     only the temporary file is left to remove
    partial  a large file is still arriving: `localstore.sync.transfer.chunked_download` finishes it
    moving   the user's file `temp` moves to a conflict name: `localstore.sync.aside` finishes this

A temporary file is removed only after its entry has the state `done`."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec

from localstore.core.errors import ServerMisbehaved, SvcError
from localstore.folder.files import BeingWritten, Blocked, Content, Files
from localstore.folder.stat_cache import Stat, read_stat
from localstore.record.database import Database, Intent

TRIES = 8  # attempts while another process creates and deletes the file
FSYNC_EACH = 16  # for more files, one sync of the file system is cheaper


class FileWrite(msgspec.Struct, frozen=True):
    """A change to make in the folder: write the bytes with the BLAKE3 `new` to `path`, or remove the file if
    `new` is None."""

    path: str
    new: bytes | None


class Outcome(msgspec.Struct, frozen=True):
    """A completed write. `temp`: path of the temporary file. `displaced`: the regular file that the write has
    replaced, which is at `temp` now; None if there was none. `not_a_file`: whether something that is not a
    file was at `path`."""

    path: str
    new: bytes | None
    temp: str
    displaced: Stat | None
    not_a_file: bool
    placed: os.stat_result | None = None


Placing = Callable[[str, str], AbstractContextManager[object]]
FreeName = Callable[[str, str], str]
Supply = Callable[[set[bytes]], Iterable[tuple[bytes, Content]]]
Finish = Callable[[Sequence[Outcome]], dict[str, str]]
"""Records the outcomes and returns the journal state of each temporary file: `done` or `aside`. It runs
inside the step that stores both."""


class Writer:
    """Writes batches of changes into the folder. `finish`: called with the outcomes of writes that come from
    the branch; `finish_asked`: with those of writes that the user asked for. `spare`: returns a free name for
    a replaced file that must be kept. `placing`: called with a path and the name of its temporary file; it
    returns a context, in which this file is moved to the path."""

    def __init__(
        self,
        files: Files,
        db: Database,
        finish: Finish,
        finish_asked: Finish,
        spare: FreeName,
        placing: Placing = lambda path, temp: nullcontext(),
    ) -> None:
        self._files, self._db, self._spare = files, db, spare
        self._finish = {"ready": finish, "asked": finish_asked}
        self._placing = placing
        self._placed: dict[str, os.stat_result] = {}  # by temporary name
        self.denied: dict[str, str] = {}  # path → why the system does not allow the write

    def apply(self, changes: Sequence[FileWrite], supply: Supply, mark: str = "ready") -> list[str]:
        """Make the changes. Returns the paths that could not be written because of a directory or a link.
        `supply`: yields (digest, content) for a set of digests. `mark`: the journal state of the writes:
        `ready` if they come from the branch, `asked` if the user asked for them.

        A path of the branch that the user may not write is returned as well, and noted in `denied`: one
        directory of root must not hold up the other files. For `asked`, PermissionError is raised."""
        intents = [
            Intent(temp_name(change.path), change.path, None, change.new, "writing") for change in changes
        ]
        with self._db.step():
            self._db.put_intents(intents)
        try:
            ready = [intent._replace(state=mark) for intent in self._prepare_all(intents, supply, mark)]
        except (OSError, SvcError):
            self._withdraw(intents)
            raise
        if sum(intent.new is not None for intent in ready) > FSYNC_EACH:
            self._files.sync()
        written = {intent.temp for intent in ready}
        blocked = [intent for intent in intents if intent.temp not in written]
        self._withdraw(blocked)
        with self._db.step():
            self._db.put_intents(ready)
        outcomes = []
        for intent in ready:
            outcome = self._exchange(intent)
            if outcome is None:
                blocked.append(intent)
            else:
                outcomes.append(outcome)
        self._withdraw([intent for intent in ready if intent in blocked])
        self._conclude(outcomes, mark)
        return [intent.path for intent in blocked]

    def recover(self) -> None:
        """Finish or undo the writes that an earlier process left in the journal."""
        outcomes: dict[str, list[Outcome]] = {mark: [] for mark in self._finish}
        undone = []
        for intent in self._db.intents():
            if intent.state == "writing":
                undone.append(intent)
            elif intent.state in outcomes:
                outcome = self._resume(intent)
                if outcome is None:
                    undone.append(intent)
                else:
                    outcomes[intent.state].append(outcome)
        self._withdraw(undone)
        for mark, result in outcomes.items():
            self._conclude(result, mark)

    def _prepare_all(self, intents: list[Intent], supply: Supply, mark: str) -> Iterator[Intent]:
        by_digest: dict[bytes, list[Intent]] = {}
        for intent in intents:
            if intent.new is None:
                yield intent._replace(state="ready")
            else:
                by_digest.setdefault(intent.new, []).append(intent)
        durable = sum(map(len, by_digest.values())) <= FSYNC_EACH
        for digest, content in supply(set(by_digest)):
            pending = by_digest.pop(digest, [])
            while pending:
                intent = pending.pop()
                try:
                    written = self._write_temporary(intent, content, durable, last=not pending)
                except PermissionError as error:
                    self._note_denied(intent, error, mark)
                    continue
                if written is not None:
                    yield written
        if by_digest:
            raise ServerMisbehaved(
                f"the server did not send {len(by_digest)} of the files it announced; try again"
            )

    def _write_temporary(self, intent: Intent, content: Content, durable: bool, last: bool) -> Intent | None:
        """Write the temporary file of an intent. Returns the intent in the state `ready`; None if the file's
        directory does not exist any more. `durable`: wait until the file is on the disk. `last`: no other
        intent needs this content, so a file that has it may be moved instead of copied."""
        before = self._files.stat(intent.path)
        mode = before.st_mode if before is not None and stat.S_ISREG(before.st_mode) else None
        try:
            placed = self._files.place(content, intent.temp, mode, durable, last)
        except (Blocked, FileNotFoundError):
            return None  # its directory was swapped or removed just now
        self._placed[intent.temp] = placed
        return intent._replace(inode=placed.st_ino, state="ready")

    def _exchange(self, intent: Intent) -> Outcome | None:
        """Exchange the temporary file with the file at the path. Returns the outcome. None if the path cannot
        have a file, or if a program is just writing the file there."""
        for _ in range(TRIES):
            info = self._files.stat(intent.path)
            if info is not None and stat.S_ISDIR(info.st_mode):
                return None
            try:
                with self._files.unwritten(intent.path) as awaited:
                    if intent.new is None:
                        self._swap(intent, info is not None)
                    else:
                        with self._placing(intent.path, intent.temp):
                            self._swap(intent, info is not None)
                    if awaited():  # whoever opened it has the file that is away now: put it back
                        self._swap_back(intent)
                        return None
            except (Blocked, BeingWritten):
                return None
            except PermissionError as error:
                self._note_denied(intent, error, intent.state)
                return None
            except (FileNotFoundError, FileExistsError):
                continue
            return self._outcome(intent)
        return None

    def _note_denied(self, intent: Intent, error: PermissionError, mark: str) -> None:
        """Note that the user may not write the path of the intent. For a write that the user asked for, raise
        the error, with the path."""
        if mark != "ready":
            raise PermissionError(error.errno, error.strerror, intent.path) from None
        self.denied[intent.path] = (error.strerror or "no permission").lower()

    def _swap(self, intent: Intent, occupied: bool) -> None:
        if intent.new is None:
            if occupied:
                self._files.move(intent.path, intent.temp)
        elif occupied:
            self._files.exchange(intent.temp, intent.path)
        else:
            self._files.move(intent.temp, intent.path)

    def _swap_back(self, intent: Intent) -> None:
        if intent.new is None:
            self._files.move(intent.temp, intent.path)
        else:
            self._files.exchange(intent.temp, intent.path)

    def _outcome(self, intent: Intent) -> Outcome:
        info = self._files.stat(intent.temp)
        out = read_stat(self._files, intent.temp)
        placed = self._placed.pop(intent.temp, None)
        odd = info is not None and out is None
        return Outcome(intent.path, intent.new, intent.temp, out, odd, placed)

    def _resume(self, intent: Intent) -> Outcome | None:
        """Finds out whether an interrupted write had already exchanged its temporary file with the file at
        the path. Returns the outcome of the exchange, None if it had not run."""
        held = self._files.stat(intent.temp)
        if intent.new is None:
            return None if held is None else self._outcome(intent)
        if held is not None:
            return None if held.st_ino == intent.inode else self._outcome(intent)
        placed = self._files.stat(intent.path)
        ran = placed is not None and placed.st_ino == intent.inode
        return self._outcome(intent) if ran else None

    def _withdraw(self, intents: Iterable[Intent]) -> None:
        temps = [intent.temp for intent in intents]
        for temp in temps:
            self._discard(temp)
        if temps:
            with self._db.step():
                self._db.drop_intents(temps)

    def _conclude(self, outcomes: list[Outcome], mark: str) -> None:
        if outcomes:
            with self._db.step():
                states = self._finish[mark](outcomes)
                self._db.put_intents(Intent(o.temp, o.path, None, o.new, states[o.temp]) for o in outcomes)
        self._sweep()

    def _sweep(self) -> None:
        """Move or remove the temporary files of those writes that are finished according to the journal."""
        finished = [intent for intent in self._db.intents() if intent.state in ("aside", "done")]
        for intent in finished:
            if intent.state == "aside":
                self._put_aside(intent)
            else:
                self._discard(intent.temp)
            if intent.new is None:
                self._files.prune(intent.path)
        if finished:
            with self._db.step():
                self._db.drop_intents(intent.temp for intent in finished)
        self._files.forget()

    def _put_aside(self, intent: Intent) -> None:
        """Keep the file that a write has replaced, which is at the temporary name now: rename it to a
        conflict name. If the write was a removal, rename it back to its old path instead, if that is free."""
        if self._files.stat(intent.temp) is None:
            return
        if intent.new is not None or not self._move(intent.temp, intent.path):
            name = self._spare(intent.path, intent.temp)
            if not self._move(intent.temp, name):
                self._files.move(intent.temp, self._spare(intent.path, intent.temp))

    def _move(self, temp: str, name: str) -> bool:
        """Rename the temporary file `temp` to `name`. Returns False if the name is taken."""
        try:
            self._files.move(temp, name)
        except (FileExistsError, Blocked):
            return False
        return True

    def _discard(self, temp: str) -> None:
        try:
            self._files.remove(temp)
        except Blocked:
            return  # its directory was replaced, so the file went with it
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise


def temp_name(path: str) -> str:
    """A new temporary path beside the file. It matches `localstore.core.paths.TEMPORARY`, so it is always
    ignored."""
    folder, slash, _ = path.rpartition("/")
    return f"{folder}{slash}.svc-{os.urandom(8).hex()}.tmp"


def replace_file(path: Path, content: bytes) -> None:
    """Replace the content of a file, or create the file, in a single step: no reader finds half of it. If
    that fails, nothing is left beside the file."""
    unfinished = path.with_name(temp_name(path.name))
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
