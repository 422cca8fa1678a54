"""Stats of files, taken when the files were hashed. Also the rules that say when a file with an equal stat
certainly still has the hashed content."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from localstore.core.model.limits import BLOB_FILE
from localstore.core.storage.file_kind import Classified, Classifier, classify
from localstore.folder.chunking import ChunkLists, cut_into_chunks
from localstore.folder.files import MORE_BYTES, READ_BYTES, Files
from localstore.record.entry import Kind

RACY = 20_000_000  # ns: a file changed this shortly before hashing may change again without a new time stamp
RACY_COARSE = 2_000_000_000  # ns, for file systems with time stamps in whole seconds
SECOND = 1_000_000_000
UNMARKED = b"?"  # mark of a folder whose files are not recorded together


class Stat(NamedTuple):
    """The stat of a file at the moment when it was hashed. Times are in nanoseconds. `checked`: when hashing
    began."""

    path: str
    size: int
    mtime: int
    ctime: int
    inode: int
    kind: Kind
    digest: bytes
    checked: int


class RecordedFolder:
    """The files of one folder as a scan recorded them. `mark`: digest of the folder's listing and rules, b""
    if some entry must be examined in each scan. `encoded`: the encoded stats of the files, or a function
    that reads them."""

    __slots__ = ("_encoded", "mark")

    def __init__(self, mark: bytes, encoded: bytes | Callable[[], bytes]) -> None:
        self.mark, self._encoded = mark, encoded

    @staticmethod
    def of(stats: list[Stat], mark: bytes) -> RecordedFolder:
        return RecordedFolder(mark, _ENCODE(stats))

    @property
    def encoded(self) -> bytes:
        if not isinstance(self._encoded, bytes):
            self._encoded = self._encoded()
        return self._encoded

    def stats(self) -> list[Stat]:
        return _DECODE(self.encoded)

    def same_as(self, other: RecordedFolder | None) -> bool:
        """Whether this folder and `other` have the same mark and the same files."""
        return other is not None and self.mark == other.mark and self.encoded == other.encoded


class ScanSinks(NamedTuple):
    """Receives data that a scan reads. Data for which there is no receiver (None) is discarded. `lists`: gets
    the chunks of large files. `text`: called with (BLAKE3, bytes) of each small text."""

    lists: ChunkLists | None = None
    text: Callable[[bytes, bytes], object] | None = None


NO_SINKS = ScanSinks()


def with_single_files(
    folders: Mapping[str, RecordedFolder], single: Iterable[Stat]
) -> dict[str, RecordedFolder]:
    """Puts the files `single` into the recorded `folders` (by path with a trailing slash). Returns only the
    folders that changed. These have no mark, so that the next scan examines their files."""
    added: dict[str, dict[str, Stat]] = {}
    for file in single:
        added.setdefault(file.path[: file.path.rfind("/") + 1], {})[file.path] = file
    updated = {}
    for folder, files in added.items():
        recorded = {file.path: file for file in folders[folder].stats()} if folder in folders else {}
        updated[folder] = RecordedFolder.of([*(recorded | files).values()], UNMARKED)
    return updated


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(list[Stat]).decode


def read_stat(files: Files, path: str, cached: Stat | None = None) -> Stat | None:
    """Stat and hash one file now. If its stat still equals `cached`, the file is not hashed again. None
    unless it is a readable, regular file."""
    info = files.stat(path)
    if info is None or not stat.S_ISREG(info.st_mode):
        return None
    if cached is not None and is_unchanged(cached, info):
        return cached
    try:
        return hash_file(files, path)
    except OSError:
        return None


def is_unchanged(cached: Stat, info: os.stat_result) -> bool:
    """Whether a file with the stat `info` certainly still has the content that was hashed when `cached` was
    recorded."""
    return has_stat(cached, info) and is_trusted(cached)


def has_stat(cached: Stat, info: os.stat_result) -> bool:
    """Whether the stat `info` of a file is the same as at the time when the file was hashed."""
    recorded = (cached.size, cached.mtime, cached.ctime, cached.inode)
    return recorded == (info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino)


def is_trusted(cached: Stat) -> bool:
    """Whether an equal stat proves that a file still has the hashed content. It does if the file had not
    changed for long enough when it was hashed."""
    newest = max(cached.mtime, cached.ctime)
    if newest + RACY_COARSE < cached.checked:
        return True
    whole_seconds = cached.mtime % SECOND == 0 and cached.ctime % SECOND == 0
    return newest + RACY < cached.checked and not whole_seconds


def hash_file(files: Files, path: str, sinks: ScanSinks = NO_SINKS) -> Stat:
    """Read and hash a file. The stat is taken before reading, so that the next scan detects a change that
    happens during the read."""
    checked = time.time_ns()
    content = files.find_known(path)
    if content is not None and (info := files.stat(path)) is not None:
        kind, size, digest = content
        return Stat(path, size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, kind, digest, checked)
    fd, info = files.open_with_stat(path)
    try:
        if sinks.lists is not None and info.st_size > BLOB_FILE:
            kind, size, digest = _cut(fd, sinks.lists)
        else:
            kind, size, digest = _read(fd, info.st_size, sinks.text)
    finally:
        os.close(fd)
    return Stat(path, size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino, kind, digest, checked)


def _cut(fd: int, lists: ChunkLists) -> Classified:
    classifier = Classifier()
    with os.fdopen(fd, "rb", buffering=0, closefd=False) as file:
        chunks = cut_into_chunks(file, classifier.feed)
    lists.keep(classifier.result().blake3, chunks)
    return classifier.result()


def _read(fd: int, size: int, keep: Callable[[bytes, bytes], object] | None) -> Classified:
    """Reads the open file. Returns its kind, size and digest. `size`: the expected size; `keep`: gets the
    digest and bytes of a small text."""
    data = os.read(fd, min(size, READ_BYTES) + 1)
    chunk = os.read(fd, MORE_BYTES)
    if not chunk:
        classification = classify(data)
        if keep is not None and classification.kind == "text":
            keep(classification.blake3, data)
        return classification
    classifier = Classifier()
    classifier.feed(data)
    while chunk:
        classifier.feed(chunk)
        chunk = os.read(fd, READ_BYTES)
    return classifier.result()
