"""Texts that are open in the terminal app. Typed changes become edits of the files' lanes.

The agent's side of such a text (a sheet, see `localstore.core.lane.sheet`) always has the text of the file's
lane. Typed edits are applied to the lane at the same offsets. Other changes of the lane, by other people or
by a save of the file, are sent to the app as updates of the sheet."""

from __future__ import annotations

from localstore.core.encoding import digest
from localstore.core.errors import Conflict, Forbidden, NotFound, TooLarge
from localstore.core.lane.lane import Lane
from localstore.core.lane.sheet import AGENT, APP, of_agent
from localstore.core.model.limits import SHEET_TEXT, TEXT_FILE
from localstore.core.paths import terminal_safe
from localstore.record.entry import PathRecord
from localstore.record.typed import is_typed, put_typed
from localstore.sync.working_copy import WorkingCopy

SESSIONS = "sheets"  # the sheets that were typed into last, each with the number of its last update
KEPT = 8


class OpenSheet:
    """A text that is open in the app. `path`: its file. `text`: the text when it was opened. `last`: number
    of the app's newest update that was applied to the lane. `news`: updates to send to the app."""

    def __init__(self, copy: WorkingCopy, path: str, session: str) -> None:
        """Open the text of a path, in the app's session `session`. Raises Forbidden, NotFound, TooLarge or
        Conflict; each message says what to do."""
        self.path, self.session = path, session
        self._branch_id = copy.branch_id
        if copy.repo.shown_seal:
            raise Forbidden(
                f"this folder takes no live edits: it shows the seal {copy.repo.shown_seal[:12]}; svc switch "
                f"{terminal_safe(copy.repo.branch)} returns to the branch"
            )
        if copy.key is None or not copy.replica:
            raise Forbidden(
                f"this folder takes no live edits: {terminal_safe(copy.repo.repo)} is archived, you may only "
                "read it, or the folder was never online with a device key"
            )
        entry = self._entry(copy)
        if self.waits(copy):
            raise Conflict(f"{terminal_safe(path)} is not on the branch yet; try again when it was sent")
        if entry.size > SHEET_TEXT:
            raise TooLarge(
                f"{terminal_safe(path)} has more than {SHEET_TEXT >> 20} MiB; change it with your editor"
            )
        self.text = copy.text(entry.want or b"")
        self._shown_digest = entry.want
        self._lane = of_agent(self.text)
        self.news: list[bytes] = []
        self.last = _sessions(copy).get(session, 0)

    def waits(self, copy: WorkingCopy) -> bool:
        """Whether typing must wait, because the file itself is still being sent and has no lane on the branch
        yet."""
        entry, kind = copy.entries.get(self.path), copy.db.flight_kinds().get(self.path, "edit_text")
        return entry is not None and (not entry.gen or entry.foreign or kind != "edit_text")

    def follow(self, copy: WorkingCopy) -> None:
        """Bring the sheet to the current text of the lane, and add the resulting update for the app to
        `news`. Raises NotFound or Conflict if the lane is gone, or if the file is not text any more."""
        entry = self._entry(copy)
        if entry.want == self._shown_digest:
            return
        update = self._lane.edit(AGENT, copy.text(entry.want or b""))
        self._shown_digest = entry.want
        if update is not None:
            self.news.append(update)

    def take(self, copy: WorkingCopy, updates: list[bytes], last: int) -> None:
        """Turn updates of the app into an edit of the lane. Empty updates change nothing. `last`: number of
        the last update. The caller has begun a transaction, and the sheet must have the text of the lane.
        Raises UpdateInvalid; after that the sheet is unusable."""
        entry = self._entry(copy)
        lane = self._lane_of(copy, entry)
        deltas = [delta for update in updates if update for delta in self._lane.follow(update, APP)]
        edit = lane.repeat(copy.replica, deltas)
        if edit is not None:
            text = lane.text()
            if len(text) > TEXT_FILE:
                raise TooLarge(f"{terminal_safe(self.path)} would become too large for a text")
            typed = not entry.pending or is_typed(copy.db, entry)
            entry.want, entry.size = digest(text), len(text)
            entry.pending += 1
            copy.objects.add([(entry.want, text)])
            copy.db.add_pending(entry.path, edit)
            copy.edited_lanes.keep(entry, lane)
            copy.save(entry)
            if typed:
                put_typed(copy.db, entry)
            self._shown_digest = entry.want
        if self.session:
            _put_session(copy, self.session, last)
        self.last = last

    def _lane_of(self, copy: WorkingCopy, entry: PathRecord) -> Lane:
        held = copy.edited_lanes.pop(entry)
        return held if isinstance(held, Lane) else copy.lane_with_pending(entry)

    def _entry(self, copy: WorkingCopy) -> PathRecord:
        if copy.key is None:
            repo = terminal_safe(copy.repo.repo)
            raise Forbidden(f"{repo} is archived, or you may only read it: what this folder has waits there")
        if copy.branch_id != self._branch_id:
            raise Conflict(f"the folder is on the branch {terminal_safe(copy.repo.branch)} now")
        name, entry = terminal_safe(self.path), copy.entries.get(self.path)
        if entry is None:
            raise NotFound(f"{name} is not in the folder any more, or was never saved to the branch")
        if entry.kind != "text":
            raise Conflict(f"{name} is not a text")
        return entry


def _sessions(copy: WorkingCopy) -> dict[str, int]:
    words = (copy.db.text(SESSIONS) or "").split()
    return {name: int(number) for name, number in zip(words[::2], words[1::2], strict=True)}


def _put_session(copy: WorkingCopy, session: str, last: int) -> None:
    others = {name: number for name, number in _sessions(copy).items() if name != session}
    sessions = [*list(others.items())[1 - KEPT :], (session, last)]
    copy.db.put(SESSIONS, " ".join(f"{name} {number}" for name, number in sessions))
