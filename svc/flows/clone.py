"""`svc repo clone`: makes a new folder with the files of a branch's newest seal."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from localstore.core.errors import ServerMisbehaved, SvcError
from localstore.core.identity.keys import DeviceKey
from localstore.core.paths import case_collisions, terminal_safe
from localstore.errors import CloneIncomplete, FolderNotEmpty
from localstore.folder import link
from localstore.folder.files import Content, FetchedFile
from localstore.folder.identity import prepare_link
from localstore.folder.link import RepoLink
from localstore.folder.scan_result import Skipped
from localstore.folder.stat_cache import Stat
from localstore.home import Home
from localstore.progress import Progress, silent
from localstore.record.database import FrontierRow, SealedFile
from localstore.record.entry import PathRecord, known_by_bytes
from localstore.record.sql import value_of
from localstore.sync import verify
from localstore.sync.adopting import entry_of
from localstore.sync.aside import move_aside
from localstore.sync.interrupted_clone import CLONING, files_written
from localstore.sync.owning import Turn, open_copy
from localstore.sync.reconcile import attach_lanes
from localstore.sync.remote import Remote, connect
from localstore.sync.transfer.chunked_download import clear, download
from localstore.sync.transfer.fill import KnownFile
from localstore.sync.transfer.transport import Transport
from localstore.sync.working_copy import SEALED_AT, WorkingCopy
from svc.flows.common import ConflictCopy, conflict_copies
from svc.flows.executable import mark, marking
from svc.flows.pull import pull

BATCH = 1000
# What a file system answers for a name that it cannot hold, or not beside others.
UNHOLDABLE = (errno.EINVAL, errno.ENAMETOOLONG, errno.EILSEQ, errno.ENOTDIR, errno.EISDIR)
DIRECTORIES = 256  # kept open while the files are written


class CloneResult(msgspec.Struct):
    """The result of a clone. `seal` is the id of the cloned seal, or None if the branch has no seal. `bytes`
    is the size of all files. `reused` is the number of bytes that were copied from files on this machine
    instead of fetched. `conflicts` are conflict copies, made if an interrupted clone was continued."""

    folder: Path
    seal: str | None
    files: int
    bytes: int
    skipped: list[Skipped]
    conflicts: list[ConflictCopy] = msgspec.field(default_factory=list)
    reused: int = 0


class _WrittenFile(NamedTuple):
    """A file that was written. `info` is its stat after writing, or None if an earlier attempt wrote it."""

    path: str
    file: SealedFile
    info: os.stat_result | None


def clone(
    transport: Transport,
    home: Home,
    repo: RepoLink,
    folder: Path,
    key: DeviceKey | None = None,
    progress: Progress = silent,
    known_files: Callable[[int], Iterable[KnownFile]] = lambda size: (),
) -> CloneResult:
    """Make a folder with the files of the branch's newest seal, after verifying the seals and files. `key` is
    the device key of a user who may write; with it the folder can push at once. `known_files` is called with
    the size of a large file, and returns files on this machine that may contain parts of it.

    A folder that has an interrupted clone of the same branch is completed. Raises FolderNotEmpty for any
    other folder with files."""
    _claim(folder, repo, home)
    with open_copy(folder, home, transport, key, progress=progress, turn=Turn("svc repo clone")) as copy:
        copy.known_files = known_files
        now = transport.ref()
        head = now.head
        with copy.db.step():
            copy.db.put("read_branch", now.id)
        begun = copy.db.text(CLONING)
        if copy.last_seal is not None or (begun is not None and begun != head):
            return _finish_by_pull(copy)
        if head is None:
            copy.record_seal(None, {}, whole=True)
            return CloneResult(folder, None, 0, 0, [])
        with copy.db.step():
            copy.db.put(CLONING, head)
        payload = verify.seal(transport.seal(head), head, repo.repo_id)
        copy.db.put(SEALED_AT, payload.created_at)
        files = copy.read_tree(head, payload)
        rows = {row.path: row for row in connect(copy).rows} if key is not None else {}
        present = {} if begun is None else files_written(copy, files)
        with marking(copy):
            skipped, stats = _write(copy, files, rows, present)
            copy.files.sync()
            clear(copy)
            _require_written(copy, files, stats)
            copy.record_clone(head, files, stats)
            if key is not None:
                attach_lanes(copy)
            mark(copy, files)
        copy.db.put(CLONING, None)
        size = sum(file.size for file in files.values())
        written = len(files) - len(skipped)
        return CloneResult(folder, head, written, size, skipped, conflict_copies(copy), copy.reused)


def _require_written(copy: WorkingCopy, files: dict[str, SealedFile], stats: list[Stat]) -> None:
    """Raise CloneIncomplete if a file of the seal is missing in the folder. Otherwise a later push would
    remove the missing file for everybody. Files that the file system cannot store do not count. `stats` has
    the size and times of files right after writing. A file that still has these is not read again."""
    written = {stat.path: stat for stat in stats}
    left_out = copy.db.unwritable()
    wrong = []
    for path in sorted(files.keys() - left_out.keys()):
        info, now = written.get(path), copy.files.stat(path)
        if (
            info is not None
            and now is not None
            and (now.st_ino, now.st_size, now.st_mtime_ns) == (info.inode, info.size, info.mtime)
        ):
            continue
        if now is None or copy.digest_on_disk(path) != files[path].digest:
            wrong.append(path)
    copy.files.forget()
    if wrong:
        raise CloneIncomplete(copy.folder, wrong)


def _finish_by_pull(copy: WorkingCopy) -> CloneResult:
    """Finish an interrupted clone of an older seal by a pull. The files that were already written count as a
    working copy, which the pull updates."""
    done = pull(copy, "merge")
    copy.db.put(CLONING, None)
    files = copy.db.read_sealed()
    size = sum(file.size for file in files.values())
    return CloneResult(
        copy.folder,
        done.seal,
        len(files) - len(copy.db.unwritable()),
        size,
        done.skipped,
        done.conflicts,
        copy.reused,
    )


def _claim(folder: Path, repo: RepoLink, home: Home) -> None:
    if folder.exists() and any(folder.iterdir()) and not _is_interrupted(folder, repo, home):
        raise FolderNotEmpty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    prepare_link(folder)
    link.write_repo(folder, repo)


def _is_interrupted(folder: Path, repo: RepoLink, home: Home) -> bool:
    """Return whether the folder has an interrupted clone of this branch. That is so if its `.svc/` is
    unfinished, or if its record says that a clone is in progress."""
    if link.is_unfinished(folder):
        return True
    try:
        there = link.read_repo(folder)
        if (there.server, there.repo_id, there.branch) != (repo.server, repo.repo_id, repo.branch):
            return False
        if not (folder / link.FOLDER / link.STATE_FILE).exists():
            return True
    except SvcError:
        return False
    record = home.find_record(folder, repo.repo_id)
    return record is not None and value_of(record / "state.db", CLONING) is not None


def _write(
    copy: WorkingCopy, files: dict[str, SealedFile], rows: dict[str, FrontierRow], present: Mapping[str, Stat]
) -> tuple[list[Skipped], list[Stat]]:
    """Write the files in the order in which they arrive. Returns the skipped files, and the stats of the
    written ones. `rows` is the branch's current state of each path. `present` has the stats of files that an
    earlier attempt wrote."""
    skipped = _clashes(copy, files)
    left_out = copy.db.unwritable()
    paths_by_digest: dict[bytes, list[str]] = {}
    batch: list[_WrittenFile] = []
    for path, file in files.items():
        entry = copy.entries.get(path)
        if path in left_out or (entry is not None and entry.shadow == file.digest):
            continue
        if path in present:
            batch.append(_WrittenFile(path, file, None))
        else:
            paths_by_digest.setdefault(file.digest, []).append(path)
    stats: list[Stat] = []
    done = moved = 0
    copy.files.hold(DIRECTORIES)
    for digest, content in _contents(copy, files, paths_by_digest):
        paths = paths_by_digest.pop(digest, [])
        while paths:
            path = paths.pop()
            try:
                info = _create(copy, path, digest, content, last=not paths)
            except OSError as error:
                if error.errno not in UNHOLDABLE:
                    raise
                reason = f"it cannot be written here ({os.strerror(error.errno or 0)})"
                skipped.append(_left_out(copy, path, files[path], reason))
                continue
            batch.append(_WrittenFile(path, files[path], info))
            done, moved = done + 1, moved + files[path].size
        copy.progress("write", done, len(files), moved)
        if len(batch) >= BATCH or isinstance(content, FetchedFile):
            stats += _record(copy, batch, rows)
            batch = []
    stats += _record(copy, batch, rows)
    copy.files.hold(1)
    copy.files.forget()
    if paths_by_digest:
        raise ServerMisbehaved(
            f"the server did not send {len(paths_by_digest)} of the files; run the clone again"
        )
    return skipped, stats


def _contents(
    copy: WorkingCopy, files: dict[str, SealedFile], paths_by_digest: dict[bytes, list[str]]
) -> Iterator[tuple[bytes, Content]]:
    """Yields (digest, content) of each file. Texts come first and are also stored in the record. Then come
    binary files, then large files (stored in chunks), one at a time."""
    sizes: dict[str, dict[bytes, int]] = {"text": {}, "blob": {}, "chunked": {}}
    for digest, paths in paths_by_digest.items():
        sizes[files[paths[0]].kind][digest] = files[paths[0]].size
    yield from copy.fetch(sizes["text"], keep=True)
    yield from copy.fetch(sizes["blob"], keep=False)
    for digest, size in sizes["chunked"].items():
        yield digest, download(copy, digest, size)


def _create(
    copy: WorkingCopy, path: str, digest: bytes, content: Content, last: bool
) -> os.stat_result | None:
    """Write a file. Returns its stat, or None if a file with the same bytes already existed. `last` says that
    no other path needs this content."""
    try:
        return copy.files.place(content, path, None, sync=False, last=last)
    except FileExistsError:
        if copy.digest_on_disk(path) == digest:
            return None
        if copy.files.stat(path) is not None:
            # incomplete after an interrupted attempt, or the user's own: keep it under another name
            move_aside(copy, path)
        return copy.files.place(content, path, None, sync=False, last=last)


def _record(copy: WorkingCopy, batch: list[_WrittenFile], rows: dict[str, FrontierRow]) -> Iterator[Stat]:
    """Store entries for the written files in the folder's record. Yields, for each file, the stat (size,
    times and so on) that was taken right after writing."""
    now = time.time_ns()
    with copy.db.step():
        copy.save_all(_entry(item, rows.get(item.path)) for item in batch)
    for path, (kind, digest, size), info in batch:
        if info is not None:
            yield Stat(path, size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, kind, digest, now)


def _entry(item: _WrittenFile, row: FrontierRow | None) -> PathRecord:
    """Return the entry of the record for a written file. `row` is the state of its path on the branch, or
    None. If the branch has no newer edit of the file, the entry also names the file's lane (its CRDT text on
    the branch)."""
    path, (kind, digest, size) = item.path, item.file
    if row is None or row.live or (row.kind, row.digest) != (kind, digest):
        return known_by_bytes(path, kind, digest, size)
    return entry_of(Remote(row, digest), digest)


def _clashes(copy: WorkingCopy, files: dict[str, SealedFile]) -> list[Skipped]:
    """Return the files whose names differ from another file's only by case, if this file system ignores case.
    They are not written, and the record notes that they are left out."""
    if copy.files.stat(link.FOLDER.upper()) is None:
        return []
    return [
        _left_out(copy, path, files[path], f"this file system takes it for {terminal_safe(holder)}")
        for path, holder in case_collisions(sorted(files)).items()
    ]


def _left_out(copy: WorkingCopy, path: str, file: SealedFile, reason: str) -> Skipped:
    copy.db.put_unwritable(path, reason)
    return Skipped(terminal_safe(path), reason, file.size)
