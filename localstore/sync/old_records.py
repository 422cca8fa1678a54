"""Rescues temporary files that a killed process left in this folder while the folder had an earlier record.

The folder has a new record because `.svc` was deleted or the folder came from a backup. The journal that
explains the temporary files is in the older record. The edits in that record cannot be merged, because its
lanes belong to another replica. So a temporary file whose bytes are not known to exist elsewhere becomes a
conflict copy."""

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
from localstore.sync.aside import MOVING, claim_conflict_name, claim_name_for
from localstore.sync.working_copy import WorkingCopy


def rescue(copy: WorkingCopy) -> None:
    """Restore the files that are named in the journals of earlier records of this folder. Each record is
    handled once."""
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
    """An earlier record of the folder. It is only read, because it may now be the record of another folder.
    Only temporary files in this folder are changed."""

    def __init__(self, copy: WorkingCopy, record: Path) -> None:
        self._copy, self._record = copy, record
        self._db = Database(record / "state.db")
        self._entries = self._db.entries()
        self._objects = Objects(record / "objects", self._db)

    def restore_files(self) -> None:
        """Restore the temporary files that the journal names. Also restore edits that were captured but never
        written to a file."""
        try:
            for intent in self._db.intents():
                if intent.state == MOVING:
                    continue  # a file of the user, still where it was
                info = self._copy.files.stat(intent.temp)
                if info is not None:
                    self._restore_temporary(intent, stat.S_ISREG(info.st_mode))
            for path, entry in self._entries.items():
                if entry.pending and entry.want is not None and not entry.settled:
                    self._restore_edit(path, entry.shadow, entry.want)
        finally:
            self._objects.close()
            self._db.close()
            self._copy.files.forget()

    def _restore_temporary(self, intent: Intent, regular: bool) -> None:
        """Remove the temporary file of an interrupted write (`intent`), if it is incomplete or its bytes
        exist elsewhere. Otherwise move it to a name where the user finds it. `regular`: whether it is a
        regular file."""
        entry = self._entries.get(intent.path)
        digests = {intent.new} | ({entry.shadow, entry.want} if entry else set())
        digests.discard(None)
        torn = intent.state in ("writing", PARTIAL)
        on_disk = read_stat(self._copy.files, intent.temp) if regular else None
        if (
            torn
            or (on_disk is not None and on_disk.digest in digests)
            or (regular and intent.state == "done")
        ):
            self._copy.files.remove(intent.temp)
            return
        if intent.new is not None or not self._move(intent.temp, intent.path):
            self._move(intent.temp, claim_conflict_name(self._copy, intent.path, intent.temp))

    def _move(self, temp: str, name: str) -> bool:
        """Rename the temporary file `temp` to `name`. Returns False if the name is taken."""
        try:
            self._copy.files.move(temp, name)
        except (FileExistsError, Blocked):
            return False
        return True

    def _restore_edit(self, path: str, shadow: bytes | None, want: bytes) -> None:
        """Write the text of a captured edit (its digest is `want`) to a conflict copy. This is done only if
        the file still has the text from before the edit (its digest is `shadow`)."""
        on_disk = self._copy.digest_on_disk(path)
        data = self._objects.get(want)
        if data is None or on_disk is None or on_disk != shadow or blake3(data) == on_disk:
            return
        self._copy.files.create(claim_name_for(self._copy, path, want), [data], None, sync=True)
