"""The client's data folder: `SVC_HOME`, by default the platform's data folder.

    copies/<id>/copy.json    which working copy this folder is the record of
    copies/<id>/lock         held by the one process that works there
    copies/<id>/state.db     entries, journal, stat cache (`localstore.record.database`)
    copies/<id>/objects/     texts that the working copy has seen, in packs (`localstore.record.objects`)
    copies/<id>/watcher.*    lock, socket and log of the watcher process (`localstore.watch`)
    .svc                     marks the folder (`localstore.folder.own_folder`): no working copy includes it
    agent.*                  lock, socket, log and lists of folders of the agent (`localstore.agent`)
    trash/<time>-<n>/        files that `pull --force`, `restore` and `switch --force` replaced

A working copy's record is found by the identity of its folder (`localstore.folder.identity`). A renamed
folder keeps its record; a folder that was copied, restored or linked again gets a new record."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from localstore.core.errors import ClientError
from localstore.folder.identity import Identity, birth_time, identify, new_id, write_id
from localstore.folder.own_folder import mark_own_folder

VARIABLE = "SVC_HOME"
RECORD = "copy.json"
LOCK = ".lock"  # in `copies`, held while a record is made or changed


class CopyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the working copy that a record belongs to. `folder`: its canonical path; `repo_id`: its
    repository. The other members are its identity (`localstore.folder.identity.Identity`)."""

    folder: str
    repo_id: str
    device: int
    inode: int
    id: str = ""
    changed: int = 0
    born: int = 0

    @property
    def identity(self) -> Identity:
        return Identity(self.id, self.device, self.inode, self.changed, self.born)


class Home:
    """The client's data folder, created on first use, readable by its owner only."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def default(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """The data folder: SVC_HOME if set, else the platform's. Raises ClientError if neither is known, as
        in a container whose user has no home."""
        chosen = environ.get(VARIABLE)
        if chosen:
            return cls(Path(chosen))
        from platformdirs import user_data_path

        try:
            folder = user_data_path("svc", appauthor=False)
        except RuntimeError:
            folder = Path()
        if not folder.is_absolute():
            raise ClientError(
                "this user has no home folder; set HOME, or SVC_HOME to a folder for svc's files"
            )
        return cls(folder)

    def record_of(self, folder: Path, repo_id: str) -> Path:
        """The folder of the record of the linked `folder`, created if missing. Raises ClientError for the
        data folder itself."""
        mark_own_folder(self.root)
        if folder.resolve() == self.root.resolve():
            raise ClientError(
                f"{folder} is SVC_HOME, which holds this machine's keys and is never pushed; link another "
                "folder, or set SVC_HOME to another one"
            )
        match = self._find(folder, repo_id)
        if match is not None and match[1] == _describe(folder, repo_id, match[1].born or None):
            return match[0]
        with self._hold_lock():
            match = self._find(folder, repo_id)
            description = _describe(folder, repo_id)
            if match is None:
                record = self.root / "copies" / os.urandom(8).hex()
                record.mkdir(parents=True, mode=0o700)
                copy_id = "" if self._is_of_another(description.identity, folder) else description.id
            else:
                record, copy_id = match[0], description.id or match[1].id
            description = msgspec.structs.replace(description, id=copy_id or new_id())
            _write_record(record, description)
            write_id(folder, description.id)
            written = _describe(folder, repo_id)
            if written != description:  # nothing can be written there
                _write_record(record, written)
            return record

    def find_record(self, folder: Path, repo_id: str) -> Path | None:
        """The folder of the record of the linked `folder`; None if it has none."""
        match = self._find(folder, repo_id)
        return match[0] if match is not None else None

    def _find(self, folder: Path, repo_id: str) -> tuple[Path, CopyRecord] | None:
        identity = identify(folder)
        matches = (
            pair
            for pair in self.records()
            if pair[1].repo_id == repo_id and identity.is_of(pair[1].identity, folder)
        )
        return next(matches, None)

    def _is_of_another(self, identity: Identity, folder: Path) -> bool:
        """Whether the id in the folder is also the id of another recorded folder. This is so if `folder` is a
        copy of that folder, or was restored from a backup."""
        return any(
            other.id == identity.id and not identity.is_of(other.identity, folder)
            for _, other in self.records()
        )

    @contextmanager
    def _hold_lock(self) -> Iterator[None]:
        """A context that holds the lock of all records. Without the lock, two processes could make two
        records of one folder."""
        copies = self.root / "copies"
        copies.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (copies / LOCK).open("wb") as file:
            with suppress(OSError):  # no locks here: working in the folder is refused by name
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def previous_records(self, folder: Path) -> list[Path]:
        """The records of earlier links at this path: of another folder that was at the path, or of this
        folder when it had another link."""
        written, identity = _recorded_path(folder), identify(folder)
        return [
            record
            for record, other in self.records()
            if other.folder == written and not identity.is_of(other.identity, folder)
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
        """(folder of the record, its working copy) for every readable record."""
        pairs = []
        for path in sorted((self.root / "copies").glob(f"*/{RECORD}")):
            try:
                pairs.append((path.parent, msgspec.json.decode(path.read_bytes(), type=CopyRecord)))
            except (OSError, msgspec.MsgspecError):
                continue  # a record cut short by a crash was never used
        return pairs


def _describe(folder: Path, repo_id: str, born: int | None = None) -> CopyRecord:
    """The description of the linked `folder` that is stored in its record. `born`: birth time of the folder,
    if known."""
    identity = identify(folder)
    return CopyRecord(
        folder=_recorded_path(folder),
        repo_id=repo_id,
        device=identity.device,
        inode=identity.inode,
        id=identity.id,
        changed=identity.changed,
        born=birth_time(folder) if born is None else born,
    )


def _recorded_path(folder: Path) -> str:
    """The canonical path of the folder as text for JSON. Bytes that are not UTF-8 are escaped."""
    return os.fsencode(folder.resolve()).decode("utf-8", "backslashreplace")


def _write_record(record: Path, value: CopyRecord) -> None:
    temporary = record / (RECORD + ".new")
    temporary.write_bytes(msgspec.json.encode(value))
    temporary.replace(record / RECORD)
