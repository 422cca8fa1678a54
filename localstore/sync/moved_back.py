"""Handles a branch that moved back to an older state: the relay lacks updates that it had confirmed to this
folder. This happens, for example, after the relay was restored from a backup.

Each file on the relay may be older than the file here, or newer because somebody has sent it since. So the
folder starts again as another replica, and the files are merged. The base of a merge is a version that both
sides have: the relay's text, if this folder once had it, otherwise the file of the newest seal that both
have. What the folder has beyond the base is an edit; it is merged with newer changes of others and sent
again. No older version overwrites anything here."""

from __future__ import annotations

from collections.abc import Iterable

from localstore.core.diff.text_edits import keeps
from localstore.core.errors import NotFound
from localstore.core.model.live import Bootstrap
from localstore.record.database import FrontierRow, SealedFile
from localstore.record.entry import known_by_bytes
from localstore.sync import verify
from localstore.sync.recognise import SEALS_COMPARED, recognise
from localstore.sync.working_copy import SEALED_AT, WorkingCopy


def is_moved_back(copy: WorkingCopy, answer: Bootstrap) -> bool:
    """Whether the relay's branch moved back to an older state. `answer`: the relay's answer to a request for
    new rows. The branch moved back if the answer lacks updates, or the relay lacks a seal, that it had
    confirmed."""
    if not copy.replica or answer.branch_id != copy.branch_id:
        return False
    if answer.seq < copy.db.number("since"):
        return True
    return answer.sealed_head != copy.last_seal and not has_seal(copy, copy.last_seal)


def has_seal(copy: WorkingCopy, seal: str | None) -> bool:
    """Whether the relay has this seal. True if `seal` is None."""
    try:
        return seal is None or bool(copy.transport.seal(seal))
    except NotFound:
        return False


class Before:
    """The folder's record of the branch from the time before the branch moved back. Call `begin_anew`, read
    the frontier, then call `rebase`."""

    def __init__(self, copy: WorkingCopy) -> None:
        from localstore.sync.settle import write_hidden_edits  # which needs the module that calls this one

        write_hidden_edits(copy)
        self._copy = copy
        self._confirmed = {
            path: entry.want
            for path, entry in copy.entries.items()
            if entry.kind == "text" and not entry.pending and entry.want is not None
        }
        self._sealed: dict[str, SealedFile] = {}

    def begin_anew(self, head: str | None) -> None:
        """Forget the branch, and go back to the newest seal that relay and folder both have: it becomes the
        folder's last seal. `head`: the newest seal of the branch now. Without such a seal, the seals of the
        branch show from which versions the files were edited (`localstore.sync.recognise`)."""
        copy = self._copy
        common = self._common_seal(head)
        if common is None and head is not None:
            recognise(copy)
            self._confirmed = {}
            return
        left_out, sealed_at = copy.db.unwritable(), copy.db.text(SEALED_AT)
        seal, self._sealed = common or (None, {})
        with copy.db.step():
            copy.start_over()
            copy.save_all(
                known_by_bytes(path, *file) for path, file in self._sealed.items() if path not in left_out
            )
        copy.record_seal(seal, self._sealed, whole=True)
        copy.db.put(SEALED_AT, sealed_at)

    def _common_seal(self, head: str | None) -> tuple[str, dict[str, SealedFile]] | None:
        """The newest seal that relay and folder both have, as (id, files by path); None if there is none. If
        the relay still has the folder's last seal, it is that seal. Otherwise it is the newest seal of the
        branch that is not younger than the folder's last seal: younger ones were made after the branch moved
        back."""
        copy, last = self._copy, self._copy.last_seal
        if last is not None and has_seal(copy, last):
            return last, copy.db.read_sealed()
        sealed_at, seal_id = copy.db.text(SEALED_AT), head
        for _ in range(SEALS_COMPARED):
            if seal_id is None or sealed_at is None:
                return None
            payload = verify.seal(
                copy.transport.seal(seal_id), seal_id, copy.repo.repo_id, named=seal_id != head
            )
            if payload.created_at <= sealed_at:
                return seal_id, verify.files(copy.transport, seal_id, payload)
            seal_id = payload.parents[0] if payload.parents else None
        return None

    def rebase(self, rows: Iterable[FrontierRow]) -> None:
        """Record from which version each text in the folder was edited, if that is known and newer than the
        last seal's version. `rows`: the whole frontier."""
        copy = self._copy
        for row in rows:
            sealed = self._sealed.get(row.path)
            if row.kind != "text" or (sealed is not None and sealed.digest == row.digest):
                continue
            base = self._base(row, sealed)
            if base is not None:
                copy.save(known_by_bytes(row.path, "text", base, row.size))

    def _base(self, row: FrontierRow, sealed: SealedFile | None) -> bytes | None:
        """The digest of the text from which the folder's file was edited: the relay's text, or the text that
        the relay had confirmed last. None if this is the text of the last seal."""
        copy = self._copy
        if copy.objects.has(row.digest):
            return row.digest  # it was here once, so the file comes from it
        confirmed = self._confirmed.get(row.path)
        text = None if confirmed is None else copy.objects.get(confirmed)
        if text is None or confirmed is None:
            return None
        old = b"" if sealed is None or sealed.kind != "text" else copy.text(sealed.digest)
        return confirmed if keeps(old, text, copy.text(row.digest)) else None
