"""Texts of a watched folder that are open in the app: what is typed comes in, what others write goes out."""

from __future__ import annotations

import binascii
import queue
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from localstore.agent.server import Follower
from localstore.agent.talk import Person, Request, Sheet, Typed
from localstore.core.errors import Invalid, SvcError, UsageError
from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy
from localstore.live.sheets import OpenSheet
from localstore.sync.working_copy import WorkingCopy
from svc.agent.steps import Steps

if TYPE_CHECKING:
    from svc.agent.folder import Watched

TYPED_EACH = 0.15  # seconds between two edits that are made of what is typed
HERE_EACH, HERE_AGAIN = 0.25, 20.0  # seconds between two reports of where the cursor is; of a still one
LARGER = 2 << 20  # bytes of a text for a second more between them: each costs as much as the text is long
AT_ONCE = 500  # updates of one edit
PEOPLE = 50  # that a client is told of
SESSION_LETTERS = 64
_typed = msgspec.json.Decoder(Typed)


def require_edit(request: Request) -> None:
    """Raise UsageError unless the request names a folder, a path and a session."""
    word = request.session
    if not (request.folder and request.path and word.isalnum() and len(word) <= SESSION_LETTERS):
        raise UsageError("an edit names a folder, a path in it, and a session of letters and digits")


def edit(found: Sequence[Watched], request: Request, follower: Follower) -> None:
    """Let the client of an `edit` write into the text, in the folder that was found."""
    for folder in found:
        folder.edit(request.path, request.session, follower)
    if not found:
        follower.say(Sheet("ended", detail="the folder is not watched any more"))
        follower.hang_up_later()


class _Editor:
    """One client that edits a text. `sheet`: None until it is open. `left`: it has hung up, and what it typed
    is still to be kept."""

    def __init__(self, path: str, session: str, follower: Follower) -> None:
        self.path, self.session, self.follower = path, session, follower
        self.sheet: OpenSheet | None = None
        self.typed: deque[Typed] = deque()
        self.told: tuple[Any, ...] = ()
        self.left = False

    def say(self, event: Sheet) -> None:
        if not self.left:
            self.follower.say(event)

    def pop(self) -> tuple[list[bytes], int]:
        """The next updates and the number of the last one. Raises Invalid if they are not updates."""
        updates: list[bytes] = []
        last = 0
        while self.typed and len(updates) < AT_ONCE:
            one = self.typed.popleft()
            try:
                updates.append(b64decode(one.update, validate=True))
            except (binascii.Error, ValueError):
                raise Invalid("what came from the app is not an edit") from None
            last = one.n
        return updates, last


class Editing(Steps):
    """The part of a watched folder that edits texts for the app."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._inbox: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._people: dict[str, Person] = {}
        self._not_before = 0.0  # of the next round, after one that failed
        self._editors: dict[Follower, _Editor] = {}
        self._typed_at = 0.0  # when an edit was made last
        self._cursor: tuple[str, int, int] | None = None  # where somebody edits in the app
        self._here_at, self._here_told = 0.0, False
        self._relit = False  # the light has changed

    # --- called from other threads

    def edit(self, path: str, session: str, follower: Follower) -> None:
        """Open a text for a client; what it sends from now on was typed."""
        editor = _Editor(path, session, follower)
        self._inbox.put(("edit", editor))
        follower.hears = lambda line: self._inbox.put(("typed", (editor, line)))

    def edit_left(self, follower: Follower) -> None:
        """The client has hung up."""
        self._inbox.put(("edit_left", follower))

    # --- messages

    def _on_edit(self, editor: _Editor) -> None:
        self._editors[editor.follower] = editor

    def _on_edit_left(self, follower: Follower) -> None:
        editor = self._editors.get(follower)
        if editor is not None:
            editor.left = True
            self._drop_left(editor)

    def _on_typed(self, value: tuple[_Editor, bytes]) -> None:
        editor, line = value
        if self._editors.get(editor.follower) is not editor:
            return
        try:
            typed = _typed.decode(line)
        except msgspec.MsgspecError:
            self._end_edit(editor, "what came from the app is not an edit")
            return
        if typed.n > 0 and typed.update:
            editor.typed.append(typed)
        if typed.line > 0:
            self._cursor, self._here_told = (editor.path, typed.line, max(0, typed.col)), False

    # --- in the thread

    @property
    def _edit_waits(self) -> bool:
        editors = self._editors.values()
        return bool(editors) and (self._relit or any(one.typed or one.sheet is None for one in editors))

    @property
    def _typed_each(self) -> float:
        open_ = [len(one.sheet.text) for one in self._editors.values() if one.sheet is not None]
        return TYPED_EACH + max(open_, default=0) / LARGER

    def _edit_moments(self) -> list[float]:
        """When there is something to do for a text that is edited."""
        moments = []
        if self._edit_waits:
            moments.append(self._typed_at + self._typed_each)
        if self._cursor is not None:
            moments.append(self._here_at + (HERE_AGAIN if self._here_told else HERE_EACH))
        return moments

    def _edit_due(self) -> bool:
        return self._edit_waits and time.monotonic() >= self._typed_at + self._typed_each

    def _tell_where(self) -> None:
        """Tell others where the cursor is, at most four times a second."""
        now = time.monotonic()
        if self._cursor is None or now < self._here_at + (HERE_AGAIN if self._here_told else HERE_EACH):
            return
        path, line, col = self._cursor
        self._here_at, self._here_told = now, True
        if self._line is not None:
            self._line.here(self.channel, path, line, self._turn, "edit", col)

    def _edit_round(self) -> None:
        """Own the folder and keep what was typed, while other work has to wait for its next try."""
        if not self._edit_due():
            return
        self._typed_at = time.monotonic()
        with suppress(CopyBusy), self._owning.round() as copy:
            self._work.begin(copy, self._turn)
            self._typed_at = 0.0
            self._edit_step(copy)
            self._work.finish(copy)
            self._end_round(copy)
            self._flying = len(copy.db.flight_numbers())

    def _step(self, copy: WorkingCopy) -> bool:
        return self._edit_step(copy) or super()._step(copy)

    def _edit_step(self, copy: WorkingCopy) -> bool:
        """Open a text, or make one edit of what was typed. Returns whether there was something to do."""
        now = time.monotonic()
        for editor in list(self._editors.values()):
            if editor.sheet is None:
                self._open(copy, editor)
                return True
            if editor.typed and now >= self._typed_at + self._typed_each and not editor.sheet.waits(copy):
                self._take(copy, editor, editor.sheet)
                return True
        return False

    def _keep_last(self) -> None:
        """Keep what was typed and not taken, before the folder is let go."""
        if not any(editor.typed for editor in self._editors.values()):
            return
        with self._owning.round() as copy:
            self._work.begin(copy, self._turn)
            for editor in list(self._editors.values()):
                while editor.typed and editor.sheet is not None and not editor.sheet.waits(copy):
                    self._take(copy, editor, editor.sheet)
            self._work.finish(copy)

    def _open(self, copy: WorkingCopy, editor: _Editor) -> None:
        try:
            editor.sheet = OpenSheet(copy, editor.path, editor.session)
        except SvcError as error:
            self._end_edit(editor, error.detail or error.title)
            return
        editor.say(Sheet("text", editor.sheet.last, editor.sheet.text.decode()))
        self._people_moved()

    def _take(self, copy: WorkingCopy, editor: _Editor, sheet: OpenSheet) -> None:
        try:
            updates, last = editor.pop()
            self._tell(copy, self._work.typed(copy, sheet, updates, last))
        except SvcError as error:
            self._end_edit(editor, error.detail or error.title)
        self._typed_at = time.monotonic()
        self._try_line(self._typed_at)
        self._drop_left(editor)

    def _end_round(self, copy: WorkingCopy) -> None:
        """Tell each client what its text has become."""
        self._relit = False
        flying = copy.db.flight_kinds() if self._editors else {}
        for editor in list(self._editors.values()):
            sheet = editor.sheet
            if sheet is None:
                continue
            try:
                sheet.follow(copy)
            except SvcError as error:
                self._end_edit(editor, error.detail or error.title)
                continue
            for update in sheet.news:
                editor.say(Sheet("update", update=b64encode(update).decode()))
            sheet.news.clear()
            entry = copy.entries.get(sheet.path)
            queued = sheet.path in flying or (entry is not None and entry.pending > 0)
            why = terminal_safe(self._work.barred.get(sheet.path, ""))
            told = (sheet.last, self._light, queued, why)
            if editor.told != told:
                editor.told = told
                editor.say(Sheet("kept", sheet.last, state=self._light, queued=queued, detail=why))

    def _people_moved(self) -> None:
        for editor in self._editors.values():
            name = terminal_safe(editor.path)
            here = [one for one in self._people.values() if one.path == name and one.state == "edit"]
            editor.say(Sheet("people", people=here[:PEOPLE]))

    def _notice(self, detail: str) -> None:
        """Tell all clients what is wrong."""
        for editor in self._editors.values():
            editor.say(Sheet("notice", detail=detail))

    def _end_edit(self, editor: _Editor, why: str) -> None:
        editor.say(Sheet("ended", detail=terminal_safe(why)))
        editor.follower.hang_up_later()
        self._drop(editor)

    def _drop_left(self, editor: _Editor) -> None:
        if editor.left and not editor.typed:
            self._drop(editor)

    def _drop(self, editor: _Editor) -> None:
        self._editors.pop(editor.follower, None)
        if self._cursor is not None and self._cursor[0] == editor.path:
            if self._line is not None:
                self._line.here(self.channel, editor.path, self._cursor[1], self._turn, "idle")
            self._cursor = None
