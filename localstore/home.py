"""The client's data folder: `SVC_HOME`, by default the platform's data folder.

    copies/<id>/copy.json    the folder that this record belongs to
    copies/<id>/lock         held by the one process that works there
    copies/<id>/state.db     entries, journal, stat cache (`localstore.record.database`)
    copies/<id>/objects/     texts that the working copy has seen, in packs (`localstore.record.objects`)
    copies/<id>/watcher.*    lock, socket and log of the watcher process (`localstore.watch`)
    agent.*                  lock, socket, log and folders of the agent (`localstore.agent`)
    trash/<time>-<n>/        files that `pull --force`, `restore` and `switch --force` replaced

A record is found by device and inode of the folder's `.svc`. A renamed folder keeps its record; one that was
copied, restored or linked again gets a new one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from localstore.folder.link import FOLDER

VARIABLE = "SVC_HOME"
RECORD = "copy.json"


class CopyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The working copy of a record: the folder's canonical path, the repository, and device and inode of
    `.svc`."""

    folder: str
    repo_id: str
    device: int
    inode: int


class Home:
    """The client's data folder, created on first use, readable by its owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def default(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """SVC_HOME if set, else the platform's data folder."""
        chosen = environ.get(VARIABLE)
        if chosen:
            return cls(Path(chosen))
        from platformdirs import user_data_path

        return cls(user_data_path("svc", appauthor=False))

    def record_of(self, folder: Path, repo_id: str) -> Path:
        """The record of the linked `folder`, created if missing."""
        here = _identify(folder, repo_id)
        for record, known in self._matching(here):
            if known.folder != here.folder:
                _write_record(record, here)
            return record
        record = self.root / "copies" / os.urandom(8).hex()
        record.mkdir(parents=True, mode=0o700)
        _write_record(record, here)
        return record

    def find_record(self, folder: Path, repo_id: str) -> Path | None:
        """The record of the linked `folder`; None if it has none."""
        return next((record for record, _ in self._matching(_identify(folder, repo_id))), None)

    def _matching(self, here: CopyRecord) -> Iterator[tuple[Path, CopyRecord]]:
        wanted = (here.repo_id, here.device, here.inode)
        return (one for one in self.records() if (one[1].repo_id, one[1].device, one[1].inode) == wanted)

    def previous_records(self, folder: Path) -> list[Path]:
        """Records of this path from earlier links: the folder was unlinked and linked again."""
        here = _written(folder)
        current = (folder / FOLDER).stat()
        return [
            record
            for record, known in self.records()
            if known.folder == here and (known.device, known.inode) != (current.st_dev, current.st_ino)
        ]

    def new_trash(self, now: datetime) -> Path:
        """A new trash folder, named after the time `now`."""
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp = f"{now.astimezone(UTC):%Y%m%d-%H%M%S}"
        for number in range(1, 10_000):
            trash = self.root / "trash" / f"{stamp}-{number}"
            try:
                trash.mkdir(parents=True, mode=0o700)
            except FileExistsError:
                continue
            return trash
        raise FileExistsError(f"{self.root / 'trash'} is full of folders of {stamp}")

    def records(self) -> list[tuple[Path, CopyRecord]]:
        """Every readable record with the working copy it belongs to."""
        found = []
        for path in sorted((self.root / "copies").glob(f"*/{RECORD}")):
            try:
                found.append((path.parent, msgspec.json.decode(path.read_bytes(), type=CopyRecord)))
            except (OSError, msgspec.MsgspecError):
                continue  # a record cut short by a crash was never used
        return found


def _identify(folder: Path, repo_id: str) -> CopyRecord:
    link = (folder / FOLDER).stat()
    return CopyRecord(folder=_written(folder), repo_id=repo_id, device=link.st_dev, inode=link.st_ino)


def _written(folder: Path) -> str:
    """The canonical path as text for JSON; bytes that are not UTF-8 are escaped."""
    return os.fsencode(folder.resolve()).decode("utf-8", "backslashreplace")


def _write_record(record: Path, value: CopyRecord) -> None:
    temporary = record / (RECORD + ".new")
    temporary.write_bytes(msgspec.json.encode(value))
    temporary.replace(record / RECORD)
