"""What a killed process left under a former link of this folder: temporary files that may hold a save.

`.svc` was deleted, or the folder came from a backup; it has a new record, and the journal that explains
the temporary files lies in an older one. Nothing can be joined any more, since the lanes belonged to another
replica: whatever is not known to be svc's own work becomes a file of its own.
"""

from __future__ import annotations

import stat
from pathlib import Path

from localstore.core.encoding import digest as blake3
from localstore.errors import CopyBusy
from localstore.folder import lock
from localstore.folder.files import Blocked
from localstore.folder.stat_cache import read_stat
from localstore.record.database import PARTIAL, RESCUED, Database, Intent
from localstore.record.objects import Objects
from localstore.sync.working_copy import WorkingCopy


def rescue(copy: WorkingCopy) -> None:
    """Bring back, once for each former record of this folder, what its journal holds."""
    done = (copy.db.text(RESCUED) or "").split()
    for record in copy.home.previous_records(copy.folder):
        if record.name in done or not (record / "state.db").exists():
            continue
        try:
            with lock.own_working_copy(record / "lock", copy.folder, seconds=0):  # an owner waits for none
                _OldRecord(copy, record).restore_files()
        except CopyBusy:
            continue  # its folder was moved elsewhere and lives
        done.append(record.name)
        with copy.db.step():
            copy.db.put(RESCUED, " ".join(done))


class _OldRecord:
    """One former record. It is read, never changed: the folder it belonged to may live under another name.
    A temporary file is ours to judge only if it lies here; its random name says whose it is."""

    def __init__(self, copy: WorkingCopy, record: Path) -> None:
        self._copy, self._record = copy, record
        self._db = Database(record / "state.db")
        self._entries = self._db.entries()
        self._objects = Objects(record / "objects", self._db)

    def restore_files(self) -> None:
        try:
            for intent in self._db.intents():
                info = self._copy.files.stat(intent.temp)
                if info is not None:
                    self._one(intent, stat.S_ISREG(info.st_mode))
            for path, entry in self._entries.items():
                if entry.pending and entry.want is not None and not entry.settled:
                    self._unwritten(path, entry.shadow, entry.want)
        finally:
            self._objects.close()
            self._db.close()
            self._copy.files.forget()

    def _one(self, intent: Intent, regular: bool) -> None:
        """Remove the temporary file if its bytes are known to be elsewhere; else it becomes a file."""
        entry = self._entries.get(intent.path)
        known = {intent.new} | ({entry.shadow, entry.want} if entry else set())
        known.discard(None)
        torn = intent.state in ("writing", PARTIAL)
        found = read_stat(self._copy.files, intent.temp) if regular else None
        if torn or (found is not None and found.digest in known) or (regular and intent.state == "done"):
            self._copy.files.remove(intent.temp)
            return
        if intent.new is not None or not self._moved(intent.temp, intent.path):
            self._moved(intent.temp, self._copy.claim_conflict_name(intent.path, intent.temp))

    def _moved(self, temp: str, name: str) -> bool:
        """Whether the file could take this name."""
        try:
            self._copy.files.move(temp, name)
        except (FileExistsError, Blocked):
            return False
        return True

    def _unwritten(self, path: str, shadow: bytes | None, want: bytes) -> None:
        """A save was taken into the lane, and the lane never written: its text is kept beside the file."""
        here = self._copy.digest_on_disk(path)
        data = self._objects.get(want)
        if data is None or here is None or here != shadow or blake3(data) == here:
            return
        self._copy.files.create(self._copy.claim_conflict_name(path), [data], None, sync=True)
