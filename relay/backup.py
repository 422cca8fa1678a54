"""Backups of a data folder: made beside a running relay, taken over into an empty folder.

    DIR/manifest.json       what belongs to the backup: every file with its size and BLAKE3
    DIR/<id>/relay.db       the database, as it was at one moment
    DIR/<id>/…              the signer's key and the secrets of `--dev`
    DIR/objects/NAME-SIZE.pack

The database comes first and the packs second, as they only grow while the collector rests. No file is ever
changed: renaming `manifest.json` into place makes the new backup, and only then files of the older one go.
Whenever it dies, DIR holds one whole backup, or none yet.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import msgspec
from blake3 import blake3

from localstore.core.errors import Invalid, Unavailable
from localstore.core.limits import MIB
from relay import edition
from relay.clock import now_ms
from relay.ids import new_id
from relay.objects.packs import FOLDER, SUFFIX

MANIFEST, LOCK, DATABASE = "manifest.json", "backup.lock", "relay.db"
PRIVATE = ("signer.keys", "secrets")
VERSION = 1
_PIECE = 4 * MIB
Say = Callable[[str], None]


class File(msgspec.Struct, frozen=True):
    """A file of a backup: where it lies in DIR, where it goes in a data folder, its length and BLAKE3."""

    path: str
    to: str
    size: int
    blake3: str


class Manifest(msgspec.Struct, frozen=True):
    v: int
    id: str
    made_at: int
    version: str
    files: list[File]


@dataclass(slots=True, frozen=True)
class Source:
    """What is backed up: a data folder whose database may lie elsewhere."""

    data: Path
    database: Path


def make(source: Source, target: Path, say: Say, stopped: Callable[[], bool] = lambda: False) -> Manifest:
    """Back `source` up into `target`, which is empty or holds an older backup of ours. Packs that are there
    already are kept. Unavailable when a file cannot be read or written, or when `stopped` says so."""
    try:
        with _owned(target):
            return _make(source, target, say, stopped)
    except OSError as error:
        raise Unavailable(f"the backup failed: {error.strerror or error} ({error.filename})") from None


def restore(backup: Path, data: Path, say: Say) -> Manifest:
    """Make the data folder `data`, which must not exist or be empty. It appears at the end, as a whole.
    Invalid for what is no whole backup, naming the file."""
    manifest = read_manifest(backup)
    if data.exists() and (not data.is_dir() or any(data.iterdir())):
        raise Invalid(f"{data} is not empty; a backup is restored into a folder of its own")
    making = data.parent / f".{data.name}.restoring"
    try:
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(mode=0o700, parents=True)
        (making / FOLDER).mkdir(mode=0o700)
        for file in manifest.files:
            _put_back(backup / file.path, making / _safe(file.to), file)
        _sync_folders(making)
        making.replace(data)
        _sync_folder(data.parent)
    except OSError as error:
        raise Unavailable(f"the restore failed: {error.strerror or error} ({error.filename})") from None
    say(f"{len(manifest.files)} files, {sum(file.size for file in manifest.files)} bytes are in {data}")
    return manifest


def read_manifest(backup: Path) -> Manifest:
    """What the backup in this folder consists of."""
    try:
        manifest = msgspec.json.decode((backup / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError:
        raise Invalid(f"{backup} holds no whole backup: there is no {MANIFEST}") from None
    except (OSError, msgspec.MsgspecError) as error:
        raise Invalid(f"{backup / MANIFEST} cannot be read: {error}") from None
    if manifest.v != VERSION:
        raise Invalid(f"{backup} is a backup of version {manifest.v}, this build reads {VERSION}")
    return manifest


def _make(source: Source, target: Path, say: Say, stopped: Callable[[], bool]) -> Manifest:
    older = read_manifest(target) if (target / MANIFEST).exists() else None
    known = {file.path: file for file in older.files} if older else {}
    made = new_id()
    (target / made).mkdir(mode=0o700)
    (target / FOLDER).mkdir(mode=0o700, exist_ok=True)
    _snapshot(source.database, target / made / DATABASE)
    files = [_described(target, f"{made}/{DATABASE}", DATABASE)]
    copied = 0
    for name, size in _packs(target / made / DATABASE):
        if stopped():
            raise Unavailable("the backup was stopped; the folder holds the one before it, if any")
        path, to = f"{FOLDER}/{name}-{size}{SUFFIX}", f"{FOLDER}/{name}{SUFFIX}"
        if path in known and _size(target / path) == size:
            files.append(known[path])
            continue
        digest = _copy(source.data / to, target / path, size)
        files.append(File(path, to, size, digest))
        copied += size
    files += _private(source.data, target, made)
    manifest = Manifest(VERSION, made, now_ms(), edition.VERSION, files)
    _sync_folders(target)
    _replace(target / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    _remove_others(target, manifest)
    whole = sum(file.size for file in files)
    say(f"{len(files)} files, {whole} bytes, {copied + files[0].size} of them new, are in {target}")
    return manifest


def _snapshot(database: Path, to: Path) -> None:
    """The database at one moment, in one file, while others write."""
    with (
        contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as here,
        contextlib.closing(sqlite3.connect(to)) as there,
    ):
        here.backup(there)
        there.execute("PRAGMA journal_mode=DELETE")
    to.chmod(0o600)
    _sync_file(to)


def _packs(database: Path) -> list[tuple[str, int]]:
    with contextlib.closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as snapshot:
        return [(str(name), int(size)) for name, size in snapshot.execute("SELECT name, size FROM pack")]


def _private(data: Path, target: Path, made: str) -> list[File]:
    files = []
    for name in PRIVATE:
        place = data / name
        found = sorted(place.rglob("*")) if place.is_dir() else [place]
        for path in found:
            if path.is_file():
                to = path.relative_to(data).as_posix()
                (target / made / to).parent.mkdir(mode=0o700, exist_ok=True)
                _copy(path, target / made / to, path.stat().st_size)
                files.append(_described(target, f"{made}/{to}", to))
    return files


def _described(target: Path, path: str, to: str) -> File:
    hasher = blake3()
    with (target / path).open("rb") as file:
        while piece := file.read(_PIECE):
            hasher.update(piece)
    return File(path, to, _size(target / path), hasher.hexdigest())


def _copy(source: Path, to: Path, size: int) -> str:
    """The first `size` bytes of a file, durable under its new name when it appears there; their BLAKE3."""
    hasher, left, writing = blake3(), size, to.with_name(to.name + ".new")
    with source.open("rb") as file, writing.open("wb") as copy:
        os.fchmod(copy.fileno(), 0o600)
        while left and (piece := file.read(min(_PIECE, left))):
            hasher.update(piece)
            copy.write(piece)
            left -= len(piece)
        copy.flush()
        os.fsync(copy.fileno())
    if left:
        raise Unavailable(f"{source} ends {left} bytes before what the database speaks of; run: relay audit")
    writing.replace(to)
    return hasher.hexdigest()


def _put_back(source: Path, to: Path, file: File) -> None:
    if _size(source) != file.size:
        raise Invalid(f"{source} is not the file of this backup: it should have {file.size} bytes")
    to.parent.mkdir(mode=0o700, exist_ok=True)
    if _copy(source, to, file.size) != file.blake3:
        raise Invalid(f"{source} is damaged: its BLAKE3 is not the one in {MANIFEST}")


def _safe(to: str) -> PurePosixPath:
    path = PurePosixPath(to)
    if path.is_absolute() or not path.parts or ".." in path.parts or len(path.parts) > 2:
        raise Invalid(f"{MANIFEST} names the path {to!r}, which lies outside of a data folder")
    return path


@contextlib.contextmanager
def _owned(target: Path) -> Iterator[None]:
    """Make the folder ours, for one backup at a time."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    if any(target.iterdir()) and not (target / LOCK).exists():
        raise Invalid(f"{target} holds something else than backups; name an empty folder")
    target.chmod(0o700)
    with (target / LOCK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Invalid(f"another backup into {target} is under way") from None
        yield


def _remove_others(target: Path, manifest: Manifest) -> None:
    kept = {target / file.path for file in manifest.files}
    for path in target.iterdir():
        if path.is_dir() and path.name not in (manifest.id, FOLDER):
            shutil.rmtree(path)
    for path in (target / FOLDER).iterdir():
        if path not in kept:
            path.unlink()


def _replace(path: Path, content: bytes) -> None:
    writing = path.with_name(path.name + ".new")
    writing.write_bytes(content)
    writing.chmod(0o600)
    _sync_file(writing)
    writing.replace(path)
    _sync_folder(path.parent)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folders(top: Path) -> None:
    for folder in (top, *(path for path in top.rglob("*") if path.is_dir())):
        _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
