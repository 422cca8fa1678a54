"""Texts of a watched folder that are open in the app or an editor: what is typed comes in, what others write
goes out."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from localstore.agent.server import Follower
from localstore.agent.talk import Person, Request, Sheet
from localstore.core.errors import SvcError
from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy
from localstore.live.sheets import OpenSheet
from localstore.sync.working_copy import WorkingCopy
from svc.agent.editor import Editor, Plugin, editor_of
from svc.agent.steps import Steps

if TYPE_CHECKING:
    from svc.agent.folder import Watched

TYPED_EACH = 0.15  # seconds between two edits that are made of what is typed
HERE_EACH, HERE_AGAIN = 0.25, 20.0  # seconds between two reports of where the cursor is; of a still one
LARGER = 2 << 20  # bytes of a text for a second more between them: each costs as much as the text is long
PEOPLE = 50  # that a client is told of
ARRIVING, ARRIVED = 0.05, 0.005  # seconds that what a plugin sent before it saved may take; between looks


def edit(folders: Sequence[Watched], request: Request, follower: Follower) -> None:
    """Let the client of an `edit` write into the text, in the folder that was found."""
    for folder in folders:
        folder.edit(editor_of(request, follower))
    if not folders:
        follower.say(Sheet("ended", detail="the folder is not watched any more"))
        follower.hang_up_later()


class Editing(Steps):
    """The part of a watched folder that edits texts for the app."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._inbox: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._people: dict[str, Person] = {}
        self._not_before = 0.0  # of the next round, after one that failed
        self._editors: dict[Follower, Editor] = {}
        self._typed_at = 0.0  # when an edit was made last
        self._cursor: tuple[str, int, int] | None = None  # where somebody edits in the app
        self._here_at, self._here_told = 0.0, False
        self._relit = False  # the light has changed
        self._work.buffers.editors = self

    # --- called from other threads

    def edit(self, editor: Editor) -> None:
        """Open a text for a client. What the client sends from now on are edits."""
        self._inbox.put(("edit", editor))

        def hears(line: bytes) -> None:
            editor.lines.put(line)
            self._inbox.put(("typed", editor))

        editor.follower.hears = hears

    def edit_left(self, follower: Follower) -> None:
        """Note that the client has hung up."""
        self._inbox.put(("edit_left", follower))

    # --- messages

    def _on_edit(self, editor: Editor) -> None:
        self._editors[editor.follower] = editor

    def _on_edit_left(self, follower: Follower) -> None:
        editor = self._editors.get(follower)
        if editor is not None:
            editor.left = True
            self._drop_left(editor)

    def _on_typed(self, editor: Editor) -> None:
        while self._editors.get(editor.follower) is editor and not editor.lines.empty():
            try:
                at, col = editor.hear(editor.lines.get_nowait())
            except SvcError as error:
                self._end_edit(editor, error.detail or error.title)
                return
            if at > 0:
                self._cursor, self._here_told = (editor.path, at, max(0, col)), False

    def _on_closed(self, value: tuple[str, float]) -> None:
        self._note_written(value[0])
        self._saves.closed(*value)

    def _on_written(self, value: tuple[str, float]) -> None:
        self._note_written(value[0])
        self._saves.written(*value)

    def _note_written(self, path: str) -> None:
        """Note that a program, or svc itself, has written the file."""
        for plugin in self._plugins(path):
            plugin.touched = True

    def _plugins(self, path: str) -> list[Plugin]:
        return [one for one in self._editors.values() if isinstance(one, Plugin) and one.path == path]

    def edits(self, path: str) -> bool:
        """See `localstore.live.stale.Editors`."""
        return bool(self._plugins(path))

    def shows(self, path: str, name: bytes) -> bool:
        """See `localstore.live.stale.Editors`. What a plugin sent before it saved may still arrive."""
        until = time.monotonic() + ARRIVING
        while plugins := self._plugins(path):
            for plugin in plugins:
                self._on_typed(plugin)
            if any(plugin.shows(name) for plugin in plugins):
                return True
            if time.monotonic() > until:
                break
            time.sleep(ARRIVED)
        return False

    def told(self, path: str) -> list[bytes]:
        """See `localstore.live.stale.Editors`."""
        return [plugin.told_text for plugin in self._plugins(path) if plugin.sheet is not None]

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
        """The times (monotonic seconds) at which edited texts have work to do."""
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
        """Own the folder and store typed edits, while other work waits for its next try."""
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
        """Open a text, or apply typed updates as one edit. Returns whether there was something to do."""
        now = time.monotonic()
        for editor in list(self._editors.values()):
            if editor.sheet is None:
                self._open(copy, editor)
                return True
            due = now >= self._typed_at + self._typed_each or self._has_saved(copy, editor)
            if editor.typed and due and not editor.sheet.waits(copy):
                self._take(copy, editor, editor.sheet)
                return True
        return False

    def _has_saved(self, copy: WorkingCopy, editor: Editor) -> bool:
        """Whether the client is a plugin that may have saved the file since the last call. Its typed edits
        are stored before the save is read."""
        if not isinstance(editor, Plugin) or not editor.touched:
            return False
        editor.touched = False
        return not self._work.is_ours(copy, editor.path)

    def _keep_last(self) -> None:
        """Store typed updates that are still queued, before the folder is released."""
        if not any(editor.typed for editor in self._editors.values()):
            return
        with self._owning.round() as copy:
            self._work.begin(copy, self._turn)
            for editor in list(self._editors.values()):
                while editor.typed and editor.sheet is not None and not editor.sheet.waits(copy):
                    self._take(copy, editor, editor.sheet)
            self._work.finish(copy)

    def _open(self, copy: WorkingCopy, editor: Editor) -> None:
        try:
            if editor.path in copy.entries:
                self._tell(copy, self._work.saved(copy, [editor.path]))  # which may not have been heard of
            editor.open(OpenSheet(copy, editor.path, editor.session))
        except SvcError as error:
            self._end_edit(editor, error.detail or error.title)
            return
        self._people_moved()

    def _take(self, copy: WorkingCopy, editor: Editor, sheet: OpenSheet) -> None:
        try:
            updates, last = editor.pop()
            self._tell(copy, self._work.typed(copy, sheet, updates, last))
        except SvcError as error:
            self._end_edit(editor, error.detail or error.title)
        self._typed_at = time.monotonic()
        self._try_line(self._typed_at)
        self._drop_left(editor)

    def _end_round(self, copy: WorkingCopy) -> None:
        """Tell each client the state of its text."""
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
                editor.tell(update)
            sheet.news.clear()
            entry = copy.entries.get(sheet.path)
            queued = sheet.path in flying or (entry is not None and entry.pending > 0)
            why = terminal_safe(self._work.barred.get(sheet.path, ""))
            state = (sheet.last, self._light, queued, why)
            if editor.told != state:
                editor.told = state
                editor.say(Sheet("kept", sheet.last, state=self._light, queued=queued, detail=why))

    def _people_moved(self) -> None:
        for editor in self._editors.values():
            name = terminal_safe(editor.path)
            people = [one for one in self._people.values() if one.path == name and one.state == "edit"]
            editor.say(Sheet("people", people=people[:PEOPLE]))

    def _notice(self, detail: str) -> None:
        """Tell all clients about a problem."""
        for editor in self._editors.values():
            editor.say(Sheet("notice", detail=detail))

    def _end_edit(self, editor: Editor, why: str) -> None:
        editor.say(Sheet("ended", detail=terminal_safe(why)))
        editor.follower.hang_up_later()
        self._drop(editor)

    def _drop_left(self, editor: Editor) -> None:
        if editor.left and not editor.typed:
            self._drop(editor)

    def _drop(self, editor: Editor) -> None:
        self._editors.pop(editor.follower, None)
        if self._cursor is not None and self._cursor[0] == editor.path:
            if self._line is not None:
                self._line.here(self.channel, editor.path, self._cursor[1], self._turn, "idle")
            self._cursor = None
