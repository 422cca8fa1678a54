"""File operations below one folder that never leave it.

Every path is relative, with `/` between names. Each directory on the way is opened without following links.
So a directory that was swapped for a symlink stops the operation (`Blocked`) and cannot lead out of the
folder."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from localstore.core.paths import parents
from localstore.record.entry import Kind

RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
READ_BYTES = 1 << 20
MORE_BYTES = (
    1 << 16
)  # read size after the expected end of a file; a larger buffer would cost more than the file
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


class Blocked(OSError):
    """A parent of the path is not a directory."""


class FetchedFile(msgspec.Struct, frozen=True):
    """A complete file at `path` in the folder, ready to be moved to its destination. `stays`: copy the file
    there instead of moving it."""

    path: str
    stays: bool = False


Content = bytes | FetchedFile


class BeingWritten(OSError):
    """A program has the file open for writing."""


class Files:
    """File operations below `root`, which must exist. `hold`: how many directories stay open between calls.
    Keeping more than one open is safe only if nobody moves directories, as in a new clone."""

    def __init__(self, root: Path, hold: int = 1) -> None:
        self.root, self._hold = root, hold
        self.leases = False  # the process must ignore SIGIO
        self._fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._near: OrderedDict[str, int] = OrderedDict()

    def close(self) -> None:
        self.forget()
        os.close(self._fd)

    def forget(self) -> None:
        """Close the directories that are kept open."""
        while self._near:
            os.close(self._near.popitem()[1])

    def hold(self, count: int) -> None:
        """Keep this many directories open from now on."""
        self._hold = count

    def stat(self, path: str) -> os.stat_result | None:
        """The stat of the entry at the path; a link is not followed. None if the path does not exist."""
        try:
            fd, name = self._parent(path)
            return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except OSError as error:
            if error.errno in _ABSENT:
                return None
            raise

    def is_file(self, path: str) -> bool:
        """Whether a regular file is at the path."""
        info = self.stat(path)
        return info is not None and stat.S_ISREG(info.st_mode)

    def is_folder(self, path: str) -> bool:
        """Whether a directory is at the path."""
        info = self.stat(path)
        return info is not None and stat.S_ISDIR(info.st_mode)

    def is_special(self, path: str) -> bool:
        """Whether something is at the path that is neither a regular file nor a directory, such as a link."""
        info = self.stat(path)
        return info is not None and not stat.S_ISREG(info.st_mode) and not stat.S_ISDIR(info.st_mode)

    def find_blocker(self, path: str) -> str | None:
        """The file, link or special file that is in the place of a directory above `path`, so that nothing
        can be at `path`. None if there is none."""
        for above in parents(path):
            info = self.stat(above)
            if info is None:
                return None
            if not stat.S_ISDIR(info.st_mode):
                return above
        return None

    def open(self, path: str) -> int:
        """A descriptor for reading a regular file. Raises OSError for anything else."""
        return self.open_with_stat(path)[0]

    def open_with_stat(self, path: str) -> tuple[int, os.stat_result]:
        """Open a regular file for reading. Returns (descriptor, stat). Raises OSError for anything else."""
        fd, name = self._parent(path)
        opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        info = os.fstat(opened)
        if not stat.S_ISREG(info.st_mode):
            os.close(opened)
            raise OSError(errno.EINVAL, "not a regular file", path)
        return opened, info

    @contextmanager
    def unwritten(self, path: str) -> Iterator[Callable[[], bool]]:
        """A context in which other programs must wait before they open the file for writing (a file lease of
        Linux). Yields a function that returns whether a program is waiting.

        Raises BeingWritten if a program already has the file open for writing. Has no effect if the attribute
        `leases` is False, or if the system or file system lacks leases."""
        if not self.leases:
            yield _nobody
            return
        try:
            opened = self.open(path)
        except OSError:
            yield _nobody
            return
        try:
            fcntl.fcntl(opened, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            os.close(opened)
            if error.errno == errno.EAGAIN:
                raise BeingWritten(errno.EBUSY, "being written", path) from None
            yield _nobody
            return
        try:
            yield lambda: fcntl.fcntl(opened, fcntl.F_GETLEASE) != fcntl.F_RDLCK
        finally:
            os.close(opened)

    def being_written(self, path: str) -> bool:
        """Whether a program has the file open for writing. Always False if the attribute `leases` is False,
        or if the system cannot tell."""
        try:
            with self.unwritten(path):
                return False
        except BeingWritten:
            return True

    def make_executable(self, path: str) -> None:
        """Set the executable bit of the file for everybody who may read it. Does nothing for anything but a
        regular file. Links are not followed, at the path and on the way to it."""
        try:
            fd, info = self.open_with_stat(path)
        except OSError:
            return
        try:
            mode = info.st_mode | (info.st_mode & 0o444) >> 2
            if mode != info.st_mode:
                os.fchmod(fd, stat.S_IMODE(mode))
        finally:
            os.close(fd)

    def find_known(self, path: str) -> tuple[Kind, int, bytes] | None:
        """(kind, size, digest) of a file, if they are known without reading its bytes; else None. Always None
        here, because files on the disk must be read. An overlay overrides this method."""
        return None

    def chunks(self, path: str) -> Iterator[bytes]:
        """The file's bytes in pieces of 1 MiB."""
        with os.fdopen(self.open(path), "rb", buffering=0) as file:
            while chunk := file.read(READ_BYTES):
                yield chunk

    def read(self, path: str) -> bytes:
        """The bytes of a file; only for files that the caller knows to be small."""
        with os.fdopen(self.open(path), "rb", buffering=0) as file:
            return file.readall()

    def read_up_to(self, path: str, most: int) -> bytes | None:
        """The bytes of a regular file; None if it cannot be read or has more than `most` bytes."""
        try:
            opened, info = self.open_with_stat(path)
        except OSError:
            return None
        try:
            data = b""
            room = min(info.st_size, most) + 1  # one byte more shows whether it grew
            while room and (piece := os.read(opened, room)):
                data = data + piece if data else piece
                room = min(most + 1 - len(data), max(len(data), MORE_BYTES))
            return data if len(data) <= most else None
        except OSError:
            return None
        finally:
            os.close(opened)

    def link_target(self, path: str) -> str:
        """The target of a symlink. Raises OSError for anything else."""
        fd, name = self._parent(path)
        return os.readlink(name, dir_fd=fd)

    def names(self, path: str) -> list[str]:
        """The names of the entries in the directory at `path`."""
        fd, name = self._parent(path)
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        try:
            return os.listdir(opened)  # noqa: PTH208 - a descriptor has no Path
        finally:
            os.close(opened)

    def create(self, path: str, parts: Iterable[bytes], mode: int | None, sync: bool) -> os.stat_result:
        """Write a new file with the bytes of `parts`, and create the missing directories above it. Returns
        its stat. `mode`: the mode of the file, None for the default of the umask. `sync`: wait until the
        file is on the disk.

        Raises FileExistsError if the name is taken. A failed write leaves no file."""
        fd, name = self._parent(path, make=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        opened = os.open(name, flags, 0o666, dir_fd=fd)
        try:
            for part in parts:
                _write_all(opened, part)
            if mode is not None:
                os.fchmod(opened, stat.S_IMODE(mode))
            if sync:
                os.fsync(opened)
            return os.fstat(opened)
        except OSError:
            os.unlink(name, dir_fd=fd)
            raise
        finally:
            os.close(opened)

    def resume(self, path: str) -> int:
        """Open the file for reading and writing, and return its descriptor. The file and the directories
        above it are created if missing."""
        fd, name = self._parent(path, make=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(name, flags, 0o666, dir_fd=fd)

    def place(
        self, content: Content, path: str, mode: int | None, sync: bool, last: bool = True
    ) -> os.stat_result:
        """Create a file at `path` with `content`, as `create` does (see there for `mode` and `sync`). Returns
        its stat. `last`: this is the only path that still needs the content. Then a `FetchedFile` is moved to
        the path; otherwise it is copied."""
        if isinstance(content, bytes):
            return self.create(path, [content], mode, sync)
        if content.stays or not last:
            return self.create(path, self.chunks(content.path), mode, sync)
        with os.fdopen(self.open(content.path), "rb", buffering=0) as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            if sync:
                os.fsync(file.fileno())
            try:
                self.move(content.path, path)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                status = self.create(path, self.chunks(content.path), mode, sync)  # a mount below the folder
                self.remove(content.path)
                return status
            return os.fstat(file.fileno())

    def exchange(self, path: str, other: str) -> None:
        """Swap the files at two paths in one step. Raises FileNotFoundError unless both exist."""
        fd, name = self._parent(path)
        with self._parent_again(other, path, fd) as (fd2, name2):
            if not _renameat2(fd, name, fd2, name2, RENAME_EXCHANGE):
                _swap_by_links(fd, name, fd2, name2)

    def move(self, path: str, new: str) -> None:
        """Rename `path` to the free path `new`, and create the directories above it. Raises FileExistsError
        if `new` is taken."""
        fd, name = self._parent(path)
        with self._parent_again(new, path, fd, make=True) as (fd2, name2):
            if not _renameat2(fd, name, fd2, name2, RENAME_NOREPLACE):
                os.link(name, name2, src_dir_fd=fd, dst_dir_fd=fd2, follow_symlinks=False)
                os.unlink(name, dir_fd=fd)

    def move_out(self, path: str, target: Path) -> bool:
        """Rename `path` to `target`, a free path outside of the folder. Returns False, with no effect, if
        `target` is on another file system."""
        fd, name = self._parent(path)
        try:
            os.rename(name, target, src_dir_fd=fd)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            return False
        return True

    def remove(self, path: str) -> None:
        """Unlink the file; does nothing if it does not exist."""
        with suppress(FileNotFoundError, Blocked):
            fd, name = self._parent(path)
            os.unlink(name, dir_fd=fd)

    def prune(self, path: str) -> None:
        """Remove the empty directories above `path`."""
        self.forget()
        folder = path.rpartition("/")[0]
        while folder:
            try:
                fd, name = self._parent(folder)
                os.rmdir(name, dir_fd=fd)
            except OSError:
                return
            self.forget()
            folder = folder.rpartition("/")[0]

    def sync(self) -> None:
        """Make everything written to this file system durable."""
        if not _syncfs(self._fd):
            os.sync()

    def _parent(self, path: str, make: bool = False) -> tuple[int, str]:
        """The directory above the path, as (its open descriptor, name of the entry in it). The descriptor is
        valid only until the next call. `make`: create missing directories."""
        folder, _, name = path.rpartition("/")
        if not folder:
            return self._fd, name
        fd = self._near.get(folder)
        if fd is not None and os.fstat(fd).st_nlink == 0:
            self.forget()
            fd = None
        if fd is None:
            while len(self._near) >= self._hold:
                os.close(self._near.popitem(last=False)[1])
            fd = self._near[folder] = self._walk(folder.split("/"), make)
        return fd, name

    @contextmanager
    def _parent_again(self, path: str, beside: str, fd: int, make: bool = False) -> Iterator[tuple[int, str]]:
        """A context with the directory above `path`, as (open descriptor, name of the entry in it). It is
        used while `fd` is needed, a descriptor that `_parent` returned for the path `beside`. A second call
        of `_parent` could close `fd`. `make`: create missing directories."""
        folder, _, name = path.rpartition("/")
        if folder == beside.rpartition("/")[0]:
            yield fd, name
            return
        opened = self._walk(folder.split("/"), make) if folder else os.dup(self._fd)
        try:
            yield opened, name
        finally:
            os.close(opened)

    def _walk(self, names: list[str], make: bool) -> int:
        fd = os.dup(self._fd)
        for name in names:
            try:
                below = _enter(fd, name, make)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise Blocked(errno.ENOTDIR, "not a directory", "/".join(names)) from None
                raise
            finally:
                os.close(fd)
            fd = below
        return fd


def _nobody() -> bool:
    return False


def _enter(fd: int, name: str, make: bool) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=fd)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=fd)
    return os.open(name, flags, dir_fd=fd)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@cache
def _libc_function(name: str) -> Callable[..., int] | None:
    import ctypes

    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def _renameat2(fd: int, name: str, fd2: int, name2: str, flags: int) -> bool:
    """Call the system's renameat2. Returns False if the system or the file system lacks it."""
    import ctypes

    call = _libc_function("renameat2")
    if call is None:
        return False
    if call(fd, os.fsencode(name), fd2, os.fsencode(name2), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), name)


def _syncfs(fd: int) -> bool:
    call = _libc_function("syncfs")
    return call is not None and call(fd) == 0


def _swap_by_links(fd: int, new: str, fd2: int, old: str) -> None:
    """Swap two files on systems without renameat2: link the file `old` under a third name, rename `new` over
    it, then rename the third name to `new`.

    Between the steps the name `old` always shows one of the two files."""
    spare = new + ".old"
    os.link(old, spare, src_dir_fd=fd2, dst_dir_fd=fd, follow_symlinks=False)
    os.rename(new, old, src_dir_fd=fd, dst_dir_fd=fd2)
    os.rename(spare, new, src_dir_fd=fd, dst_dir_fd=fd)
