"""Downloads of model files (blobs), shared by all processes of a user. One process downloads a blob, and the
others see its progress.

    models/pulls/<key>.lock, .part, .progress     key: b3-<BLAKE3> or sha256-<SHA-256>

The lock ends with the process that holds it. Then the next process that wants the blob continues the
download."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from localstore.folder.lock import AlreadyLocked, hold_lock, living_holder
from localstore.models.store import Models

LOOK = 0.1
REPORT = 0.2  # seconds between two writes of the progress


class PullProgress(msgspec.Struct):
    """Progress of a download: `completed` of `total` bytes. `name`: the model that is downloaded, "" if the
    downloading process does not report it. `known`: how many bytes need not be fetched, because this
    machine has them already."""

    completed: int = 0
    total: int = 0
    name: str = ""
    known: int = 0


class Download(NamedTuple):
    """A running download. `lock`: the lock that the downloading process holds. `pid`: the id of that process,
    0 if it has not written its id yet."""

    lock: Path
    pid: int
    progress: PullProgress


LEFT_SECONDS = 14 * 86400.0  # for which a download that was cut goes on where it was


class PullReport(Protocol):
    """A function that is called with the progress of a download: how many bytes have arrived, how many there
    are in all, and how many need not be fetched."""

    def __call__(self, completed: int, total: int, present: int = 0, /) -> None: ...


Work = Callable[[Path, PullReport], str]
"""Completes the file of a download, makes it a blob and returns its SHA-256."""


def pull_blob(
    models: Models, key: str, find: Callable[[], str | None], work: Work, report: PullReport, name: str = ""
) -> str:
    """Get a blob into the cache and return its SHA-256. Only one process downloads the blob, by calling
    `work`. Other processes that want it wait meanwhile and `report` the progress. `find`: returns the
    SHA-256 if the blob is in the cache. `name`: the model that the blob belongs to, shown to the others."""
    folder = models.root / "pulls"
    while True:
        digest = find()
        if digest is not None:
            return digest
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with ExitStack() as lock:
            try:
                lock.enter_context(hold_lock(folder / f"{key}.lock", "svc llm pull", may_be_nameless=True))
            except AlreadyLocked:
                _report_other(folder / f"{key}.progress", report)
                time.sleep(LOOK)
                continue
            digest = find()
            if digest is not None:
                return digest
            written = _Written(folder / f"{key}.progress", report, name)
            written.write(0, 0)
            sha256 = work(folder / f"{key}.part", written)
            (folder / f"{key}.progress").unlink(missing_ok=True)
            return sha256


def _report_other(progress: Path, report: PullReport) -> None:
    """Report the progress of the other process, which downloads the blob and writes its progress to the file
    `progress`."""
    with suppress(OSError, msgspec.MsgspecError):
        seen = msgspec.json.decode(progress.read_bytes(), type=PullProgress)
        report(seen.completed, seen.total, seen.known)


class _Written:
    """A `PullReport` that also writes the progress to a file, which the waiting processes read."""

    def __init__(self, file: Path, report: PullReport, name: str) -> None:
        self._file, self._report, self._name, self._at = file, report, name, 0.0

    def __call__(self, completed: int, total: int, present: int = 0, /) -> None:
        self._report(completed, total, present)
        now = time.monotonic()
        if now - self._at < REPORT and completed < total:
            return
        self._at = now
        self.write(completed, total, present)

    def write(self, completed: int, total: int, present: int = 0) -> None:
        with suppress(OSError):  # a full disk is found by who writes the blob
            self._file.write_bytes(msgspec.json.encode(PullProgress(completed, total, self._name, present)))


def under_way(models: Models) -> list[Download]:
    """The running downloads of all processes of the user."""
    folder = models.root / "pulls"
    downloads = []
    for lock in sorted(folder.glob("*.lock")) if folder.is_dir() else ():
        pid = living_holder(lock)
        if pid is None:
            continue
        progress = PullProgress()
        with suppress(OSError, msgspec.MsgspecError):  # being written, or removed, at the moment
            progress = msgspec.json.decode(lock.with_suffix(".progress").read_bytes(), type=PullProgress)
        downloads.append(Download(lock, pid, progress))
    return downloads


def parts_size(models: Models, key: str) -> int:
    """How many bytes of the blob an interrupted download has left on the disk."""
    try:
        return (models.root / "pulls" / f"{key}.part").stat().st_blocks * 512
    except OSError:
        return 0


def drop_old(models: Models, spared: Collection[str] = ()) -> None:
    """Remove parts of downloads that were interrupted more than two weeks ago, except those with the keys
    `spared`."""
    folder = models.root / "pulls"
    for lock in folder.glob("*.lock") if folder.is_dir() else ():
        if lock.stem in spared:
            continue
        files = [lock.with_suffix(end) for end in (".part", ".progress", ".lock")]
        with suppress(OSError, AlreadyLocked), hold_lock(lock, "svc llm"):
            times = [file.stat().st_ctime for file in files[:2] if file.exists()]
            if not times or time.time() - max(times) > LEFT_SECONDS:
                for file in files:
                    file.unlink(missing_ok=True)
