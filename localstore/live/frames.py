"""Live frames of a branch (messages of the relay about changes) while its channel is open: verified, stored,
and ready to be written to the folder."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from localstore.core.encoding import unb64u
from localstore.core.errors import Invalid, ServerMisbehaved
from localstore.core.identity.keys import key_id, verify
from localstore.core.lane.update import check, decoded_ops, signing_bytes
from localstore.core.model.live import Row as WireRow
from localstore.core.model.sync import Live, Signed
from localstore.core.paths import terminal_safe
from localstore.record.database import STALE_EPOCH, FrontierRow
from localstore.sync.remote import Remote, store_rows
from localstore.sync.working_copy import WorkingCopy


class Arrived(msgspec.Struct, frozen=True):
    """An update of another device that arrived in a frame. `kind`: the kind of the update."""

    path: str
    kind: str
    who: str
    device_key_id: str
    turn: str | None


class Frames:
    """Frames that are stored in the record, but whose files are not written to the folder yet. `paths`: the
    paths of these files."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self._edits: dict[str, list[Signed] | None] = {}  # None: some edits since are unknown

    def store(self, copy: WorkingCopy, frame: Live) -> list[Arrived] | None:
        """Verify a frame and store its rows in the record, in one transaction. Returns the updates of other
        devices in it. None if the frame does not follow the last one; the caller then has to read the
        whole frontier (bootstrap). Raises ServerMisbehaved for an invalid signature, with nothing stored."""
        since = copy.db.number("since")
        if frame.seq <= since and frame.after < since:
            return []  # already known, for example from a bootstrap
        if frame.after != since:
            return None
        for signed in frame.updates:
            require_signed(copy.repo.repo_id, copy.branch_id, signed)
        ours = frame.replica == copy.replica
        others = [signed for signed in frame.updates if signed.replica != copy.replica]
        for row in frame.rows:
            self._expect(copy, row, [edit for edit in others if edit.update.path == row.path])
        rows = [row if ours else msgspec.structs.replace(row, other=row.ver) for row in frame.rows]
        with copy.db.step():
            store_rows(copy, rows, whole=False)
            copy.db.put("since", frame.seq)
        if not ours:
            self.paths.update(row.path for row in frame.rows)
        return [
            Arrived(
                edit.update.path, edit.update.kind, terminal_safe(edit.who), edit.device_key_id, edit.turn
            )
            for edit in others
        ]

    def forget(self) -> None:
        """Forget the received edits, so that every lane is read from the relay. Called when another process
        wrote in between, or when the whole frontier was read again."""
        self._edits.clear()

    def done(self, copy: WorkingCopy, paths: Iterable[str]) -> None:
        """Mark these files as written. Excluded are files with an update in flight (sent and not answered),
        and files that a program is writing."""
        flying = copy.db.flight_kinds()
        for path in paths:
            entry = copy.entries.get(path)
            if path in flying or path in copy.followed.later:
                self._edits[path] = None
            elif entry is None or entry.settled or path in copy.unreadable:
                self.paths.discard(path)
                self._edits.pop(path, None)

    def lane(self, copy: WorkingCopy, row: FrontierRow) -> Remote | None:
        """The text lane of a row of the frontier, built from the record and the received edits. None if some
        edits are missing, or if the resulting text is not the text of the row."""
        edits, entry = self._edits.get(row.path), copy.entries.get(row.path)
        if not edits or entry is None or entry.genesis is None:
            return None
        if (entry.gen, entry.epoch, entry.kind) != (row.gen, row.epoch, "text"):
            return None
        lane = copy.confirmed_lane(entry)
        try:
            for signed in edits:
                if signed.seq > entry.seen:
                    for op in decoded_ops(signed.update):
                        lane.apply(op, signed.replica)
        except Invalid:
            return None
        if lane.digest() != row.digest:
            return None
        copy.objects.add([(row.digest, lane.text())], durable=False)
        return Remote(row, entry.genesis, lane.state())

    def _expect(self, copy: WorkingCopy, row: WireRow, edits: list[Signed]) -> None:
        """Remember the received `edits` of a text that lead to its row of the frontier, so that its lane can
        be computed here. If an edit or the earlier state of the lane is unknown, nothing is remembered for
        the path, and the lane must be requested."""
        before, entry = copy.db.row(row.path), copy.entries.get(row.path)
        earlier = self._edits.get(row.path, [])
        whole = (
            before is not None
            and entry is not None
            and before.epoch not in (STALE_EPOCH,)
            and (before.gen, before.epoch) == (entry.gen, entry.epoch) == (row.gen, row.epoch)
            and (row.path in self._edits or entry.seen >= before.other)
            and earlier is not None
            and all(edit.update.kind == "edit_text" for edit in edits)
            and (not edits or edits[-1].seq == row.ver)
        )
        self._edits[row.path] = [*(earlier or []), *edits] if whole else None


def require_signed(repo_id: str, branch_id: str, signed: Signed) -> None:
    """Raise ServerMisbehaved unless the update is signed for this branch by the key that the relay names."""
    update = signed.update
    try:
        signature, public = check(update), unb64u(signed.public_key, 32)
        named = key_id(public) == signed.device_key_id
        message = signing_bytes(repo_id, branch_id, signed.replica, signed.device_key_id, update)
    except Invalid as error:
        raise ServerMisbehaved(
            f"the server sent an edit with an invalid signature ({error.detail})"
        ) from None
    if not named or not verify(public, message, signature):
        who = f"@{terminal_safe(signed.who)}" if signed.who else "somebody"
        raise ServerMisbehaved(
            f"the server sent an edit of {terminal_safe(update.path)} as one of {who} without that person's "
            "signature; it was not applied"
        )
