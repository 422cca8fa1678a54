"""Lets one process at a time own a working copy: a file lock that ends with its process, and a queue for the
lock.

A process that finds the lock taken puts a locked file into the folder `waiting` beside the lock. The names of
these files have an order. Only the first one whose process lives may try the lock. So nobody overtakes, not
even an owner that comes back for its next round. The files of killed processes are not locked and have no
effect; the next process that finds one removes it.

The locks are `flock`. On a network file system, the server keeps them (NFS) or refuses them; svc reports a
refusal."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy, DiskError

PATIENCE = 10.0  # seconds that a command waits for its folder
QUEUE = "waiting"
PAUSE = 0.005  # seconds between two looks at a lock that is taken
END_PAUSE = 0.03  # seconds between two looks at a process that ends
LOOKED_SECONDS = 1.0  # in which those that only look at a lock have let it go
NOTIFIED_AFTER = 1.0  # seconds of waiting, before somebody is told of it
WORDS_BYTES = 256
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock. `since`: when it took the lock, in Unix seconds. `command`: its command
    line. Before the process has written its id, `pid` and `since` are None and `command` is ""."""

    pid: int | None = None
    since: int | None = None
    command: str = ""

    def __str__(self) -> str:
        who = terminal_safe(self.command) or "another svc"
        if self.pid is None or self.since is None:
            return who
        return f"{who} (process {self.pid}, since {time.strftime('%H:%M:%S', time.localtime(self.since))})"


Waiting = Callable[[Holder], None]


class AlreadyLocked(Exception):
    """Another process, `holder`, holds the lock."""

    def __init__(self, holder: Holder) -> None:
        super().__init__(str(holder))
        self.holder = holder


@contextmanager
def hold_lock(
    lock: Path, command: str = "", seconds: float = 0.0, *, may_be_nameless: bool = False
) -> Iterator[None]:
    """A context that holds the lock, after waiting for at most `seconds`. Meanwhile the lock file names this
    process and `command`. `may_be_nameless`: hold the lock even if the file cannot name the process, because
    the disk is full.

    Raises AlreadyLocked. If `seconds` is 0, this can also happen because another process is just checking
    whether the lock is held."""
    fd = _open_locked(lock, seconds)
    try:
        with _sign_lock(fd, command, may_be_nameless):
            yield
    finally:
        os.close(fd)


def _open_locked(lock: Path, seconds: float) -> int:
    """Open and lock the lock's file, and return its descriptor. Raises AlreadyLocked. If the file was removed
    during the wait, the new file is opened instead, because a removed file locks nothing."""
    end = time.monotonic() + seconds
    while True:
        fd = _open(lock)
        try:
            is_mine = _try_lock(fd)
            if is_mine and os.fstat(fd).st_nlink:
                return fd
            if not is_mine and time.monotonic() >= end:
                raise AlreadyLocked(_read(fd))
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        if not is_mine:
            time.sleep(PAUSE)


@contextmanager
def own_working_copy(
    lock: Path,
    folder: Path,
    command: str = "",
    seconds: float = PATIENCE,
    waiting: Waiting = lambda _: None,
) -> Iterator[None]:
    """A context that holds the lock of a working copy, after waiting for at most `seconds`. `waiting`: called
    once, with the holder, if the wait takes longer than a second. Raises CopyBusy, which names the holder,
    and DiskError if the file system has no locks."""
    fd = _open(lock)
    try:
        if is_wanted(lock) or not _try_lock(fd):
            _wait(fd, lock.with_name(QUEUE), folder, seconds, waiting)
        with _sign_lock(fd, command, False):
            yield
    finally:
        os.close(fd)


def is_wanted(lock: Path) -> bool:
    """Whether another process waits for the lock of a working copy."""
    return _first(lock.with_name(QUEUE)) is not None


def holder(lock: Path) -> Holder:
    """The process that holds the lock, according to the lock file."""
    with suppress(OSError):
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read(fd)
        finally:
            os.close(fd)
    return Holder()


def living_holder(lock: Path) -> int | None:
    """The id of the process that holds a lock. None if nobody holds it; 0 if its holder has not written an id
    yet. Checking writes nothing, so several processes may check at once."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return None if _try_lock(fd, fcntl.LOCK_SH) else _read(fd).pid or 0
    finally:
        os.close(fd)


def end_holder(lock: Path, number: int, seconds: float) -> bool:
    """Send the signal with this number to the process that holds a lock, and wait at most `seconds` until the
    lock is free. A process that takes the lock meanwhile gets the signal too. Returns whether the lock is
    free in the end."""
    signalled, end = 0, time.monotonic() + seconds
    while (pid := living_holder(lock)) is not None:
        if time.monotonic() > end:
            return False
        if pid not in (0, signalled):  # 0 is no process, but all of this one's group
            with suppress(ProcessLookupError):
                os.kill(pid, number)
            signalled = pid
        time.sleep(END_PAUSE)
    return True


def how_to_end(lock: Path) -> str:
    """The part of an error message that says how to end the process that holds a lock. It names no process id
    if the lock file has none, as just after the lock was taken, or on a full disk."""
    pid = living_holder(lock)
    return f"end it: kill -9 {pid}" if pid else f"end the process that holds {terminal_safe(str(lock))}"


def held_files(folder: Path) -> list[str]:
    """The names of those files in a folder that living processes have locked, sorted. The files of dead
    processes are removed."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return []
    return [name for name in names if _is_alive(folder / name)]


def _wait(fd: int, queue: Path, folder: Path, seconds: float, waiting: Waiting) -> None:
    began = time.monotonic()
    if seconds <= 0:
        raise CopyBusy(folder, _read(fd))
    notified = False
    with _place(queue) as mine:
        while _first(queue) != mine or not _try_lock(fd):
            waited = time.monotonic() - began
            if waited >= seconds:
                raise CopyBusy(folder, _read(fd))
            if waited >= NOTIFIED_AFTER and not notified:
                notified = True
                waiting(_read(fd))
            time.sleep(PAUSE)


@contextmanager
def _place(queue: Path) -> Iterator[str]:
    """A context that holds a place in the queue of waiting processes. Yields the name of its file."""
    queue.mkdir(exist_ok=True, mode=0o700)
    name, fd = _join_queue(queue)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            (queue / name).unlink()
        os.close(fd)


def _join_queue(queue: Path) -> tuple[str, int]:
    while True:
        name = f"{time.monotonic_ns():020d}-{os.getpid()}"
        try:
            fd = os.open(queue / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileExistsError:  # another thread of this process, on a coarse clock
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:  # who looked before it was locked may have removed it
                return name, fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _first(queue: Path) -> str | None:
    """The file name of the first process in the queue that lives. None if no process waits."""
    try:
        names = sorted(path.name for path in queue.iterdir())
    except FileNotFoundError:
        return None
    return next((name for name in names if _is_alive(queue / name)), None)


def _is_alive(place: Path) -> bool:
    """Whether the process that locked this file is still alive. The file of a dead process is removed."""
    try:
        fd = os.open(place, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, IsADirectoryError):  # a folder is of no svc, and stays
        return False
    try:
        if not _try_lock(fd, fcntl.LOCK_SH):
            return True
        with suppress(FileNotFoundError):
            place.unlink()
        return False
    finally:
        os.close(fd)


def _open(lock: Path) -> int:
    return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try_lock(fd: int, how: int = fcntl.LOCK_EX) -> bool:
    """Try to lock an open file without waiting. Returns whether it succeeded."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            raise DiskError(
                f"the file system of SVC_HOME keeps no locks ({os.strerror(error.errno or 0)}), so two "
                "commands could work in one folder at once; put SVC_HOME on a local disk"
            ) from None
        raise
    return True


@contextmanager
def _sign_lock(fd: int, command: str, may_be_nameless: bool) -> Iterator[None]:
    """A context in which the lock file names this process: its id, the time and `command`. `may_be_nameless`:
    go on if the disk is too full to write that."""
    words = f"{os.getpid()} {int(time.time())} {command}".encode("utf-8", "replace")[:WORDS_BYTES]
    os.ftruncate(fd, 0)
    try:
        os.pwrite(fd, words, 0)
    except OSError as error:
        if not may_be_nameless or error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
    try:
        yield
    finally:
        os.ftruncate(fd, 0)


def _read(fd: int) -> Holder:
    pid, _, rest = os.pread(fd, WORDS_BYTES, 0).decode("utf-8", "replace").partition(" ")
    since, _, command = rest.partition(" ")
    valid = pid.isdecimal() and since.isdecimal()
    return Holder(int(pid), int(since), command) if valid else Holder()
