"""`svc repo clone`: a new folder with the sealed head of a branch."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from localstore import link
from localstore.core.errors import FolderNotEmpty, NotLinked, ServerMisbehaved, SvcError
from localstore.core.keys import DeviceKey
from localstore.core.paths import case_key, terminal_safe
from localstore.db import Row, SealedFile
from localstore.entry import Entry, known_by_bytes
from localstore.files import Blocked, Content, Fetched
from localstore.found import Skipped
from localstore.home import Home
from localstore.link import RepoLink
from localstore.progress import Progress, silent
from localstore.stats import Stat
from localstore.sync import verify
from localstore.sync.chunked_download import clear, download
from localstore.sync.device import Device, opened
from localstore.sync.reconcile import attach, entry_of
from localstore.sync.remote import Remote, connect
from localstore.sync.transport import Transport

BATCH = 1000
DIRECTORIES = 256  # kept open while the files are written


class Cloned(msgspec.Struct):
    """`seal` None: the branch has none yet. `bytes` are those of the files."""

    folder: Path
    seal: str | None
    files: int
    bytes: int
    skipped: list[Skipped]


class _Made(NamedTuple):
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
) -> Cloned:
    """Verify the head, then write its files. With a key that may write, the folder is also ready to push.

    FolderNotEmpty, unless an interrupted clone of the same repository and branch lies there: it goes on.
    """
    _claim(folder, repo)
    with opened(folder, home, transport, key, progress=progress) as device:
        now = transport.ref()
        head = now.head
        with device.db.step():
            device.db.put("read_branch", now.id)
        if head is None:
            device.sealed_as(None, {}, whole=True)
            return Cloned(folder, None, 0, 0, [])
        payload = verify.seal(transport.seal(head), head, repo.repo_id)
        files = verify.tree(transport.tree(head), payload)
        rows = {row.path: row for row in connect(device).rows} if key is not None else {}
        skipped, stats = _write(device, files, rows)
        device.files.sync()
        clear(device)
        device.cloned(head, files, stats)
        if key is not None:
            attach(device)
        return Cloned(folder, head, len(files) - len(skipped), sum(f.size for f in files.values()), skipped)


def _claim(folder: Path, repo: RepoLink) -> None:
    if folder.exists() and any(folder.iterdir()) and not _interrupted(folder, repo):
        raise FolderNotEmpty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    link.write_repo(folder, repo)


def _interrupted(folder: Path, repo: RepoLink) -> bool:
    """Whether the folder holds the beginning of this very clone: linked, and without a state yet."""
    try:
        if link.read_repo(folder) != repo:
            return False
        link.read_state(folder)
    except NotLinked:
        return (folder / link.FOLDER / link.REPO_FILE).exists()
    except SvcError:
        return False
    return False


def _write(
    device: Device, files: dict[str, SealedFile], rows: dict[str, Row]
) -> tuple[list[Skipped], list[Stat]]:
    """Create the files as their bytes arrive; what an earlier attempt wrote is kept."""
    skipped = _clashes(device, files)
    left_out = {one.path for one in skipped}
    wanted: dict[bytes, list[str]] = {}
    for path, file in files.items():
        entry = device.entries.get(path)
        if path not in left_out and (entry is None or entry.shadow != file.digest):
            wanted.setdefault(file.digest, []).append(path)
    batch: list[_Made] = []
    stats: list[Stat] = []
    done = moved = 0
    device.files.hold(DIRECTORIES)
    for digest, content in _contents(device, files, wanted):
        left = wanted.pop(digest, [])
        while left:
            path = left.pop()
            batch.append(_Made(path, files[path], _create(device, path, digest, content, last=not left)))
            done, moved = done + 1, moved + files[path].size
        device.progress("write", done, len(files), moved)
        if len(batch) >= BATCH or isinstance(content, Fetched):
            stats += _record(device, batch, rows)
            batch = []
    stats += _record(device, batch, rows)
    device.files.hold(1)
    device.files.forget()
    if wanted:
        raise ServerMisbehaved(f"the server did not send {len(wanted)} of the files; run the clone again")
    return skipped, stats


def _contents(
    device: Device, files: dict[str, SealedFile], wanted: dict[bytes, list[str]]
) -> Iterator[tuple[bytes, Content]]:
    """Texts first: they are also kept for reading offline. Large files last, one at a time."""
    sizes: dict[str, dict[bytes, int]] = {"text": {}, "blob": {}, "chunked": {}}
    for digest, paths in wanted.items():
        sizes[files[paths[0]].kind][digest] = files[paths[0]].size
    yield from device.fetch(sizes["text"], keep=True)
    yield from device.fetch(sizes["blob"], keep=False)
    for digest, size in sizes["chunked"].items():
        yield digest, download(device, digest, size)


def _create(device: Device, path: str, digest: bytes, content: Content, last: bool) -> os.stat_result | None:
    """Write a file; what it is then, None if it was there already."""
    try:
        return device.files.place(content, path, None, sync=False, last=last)
    except FileExistsError:
        if device.seen(path) == digest:
            return None
        if device.files.stat(path) is not None:
            device.move_aside(path)  # torn by an interrupted attempt, or somebody's: it keeps a name
        return device.files.place(content, path, None, sync=False, last=last)
    except Blocked as error:
        raise ServerMisbehaved(f"{terminal_safe(path)} cannot be written: {error}") from None


def _record(device: Device, batch: list[_Made], rows: dict[str, Row]) -> Iterator[Stat]:
    """Remember the files. Their bytes are known, and what they were right after the writing tells whether
    somebody changed them since."""
    now = time.time_ns()
    with device.db.step():
        device.save_all(_entry(made, rows.get(made.path)) for made in batch)
    for path, (kind, digest, size), info in batch:
        if info is not None:
            yield Stat(path, size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, kind, digest, now)


def _entry(made: _Made, row: Row | None) -> Entry:
    """With its lane, where the frontier still holds what was sealed."""
    path, (kind, digest, size) = made.path, made.file
    if row is None or row.live or (row.kind, row.digest) != (kind, digest):
        return known_by_bytes(path, kind, digest, size)
    return entry_of(Remote(row, digest), digest)


def _clashes(device: Device, files: dict[str, SealedFile]) -> list[Skipped]:
    """Files that a case-insensitive file system cannot hold beside another: left out and recorded."""
    if device.files.stat(link.FOLDER.upper()) is None:
        return []
    first: dict[str, str] = {}
    skipped = []
    for path, file in files.items():
        holder = first.setdefault(case_key(path), path)
        if holder != path:
            reason = f"this file system takes it for {holder}"
            device.db.put_unwritable(path, reason)
            skipped.append(Skipped(path, reason, file.size))
    return skipped
