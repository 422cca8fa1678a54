"""Texts of a watched folder that are open in the app or an editor: receives the client's typed changes and
sends it the changes of others.
"""

from __future__ import annotations

import time
from contextlib import suppress

from localstore.agent.server import Follower
from localstore.agent.talk import SheetEvent
from localstore.core.errors import SvcError
from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy
from localstore.live.sheets import OpenSheet
from localstore.sync.working_copy import WorkingCopy
from svc.agent.editor import Editor, Plugin
from svc.agent.state import FolderState

TYPED_EACH = 0.15  # seconds between two edits that are made of what is typed
HERE_EACH, HERE_AGAIN = 0.25, 20.0  # seconds between two reports of where the cursor is; of a still one
LARGER = 2 << 20  # bytes of a text for a second more between them: each costs as much as the text is long
PEOPLE = 50  # that a client is told of
ARRIVING, ARRIVED = 0.05, 0.005  # seconds that what a plugin sent before it saved may take; between looks


class OpenTexts:
    """The open texts of a watched folder, and the clients that edit them. Only the thread of the folder uses
    it."""

    def __init__(self, state: FolderState) -> None:
        self._state = state
        self._editors: dict[Follower, Editor] = {}
        self._typed_at = 0.0  # when an edit was made last
        self._cursor: tuple[str, int, int] | None = None  # where somebody edits in the app
        self._here_at = 0.0  # when the cursor was last reported to others
        self._cursor_reported = False  # where it is now
        state.work.buffers.editors = self

    def add(self, editor: Editor) -> None:
        """Add a client. The next round sends it the text of its file."""
        self._editors[editor.follower] = editor

    def drop_follower(self, follower: Follower) -> None:
        """Store the typed changes of a client that has disconnected, then forget the client."""
        editor = self._editors.get(follower)
        if editor is not None:
            editor.disconnected = True
            self._drop_disconnected(editor)

    def take_lines(self, editor: Editor) -> None:
        """Read the messages that a client has sent. The client's changes are queued for the next round, and
        the position of its cursor is noted. A client that sends a malformed message is disconnected."""
        while self._editors.get(editor.follower) is editor and not editor.lines.empty():
            try:
                at, col = editor.hear(editor.lines.get_nowait())
            except SvcError as error:
                self._end_edit(editor, error.detail or error.title)
                return
            if at > 0:
                self._cursor, self._cursor_reported = (editor.path, at, max(0, col)), False

    def note_written(self, path: str) -> None:
        """Note that the file `path` was written on the disk, by another program or by svc itself."""
        for plugin in self._plugins(path):
            plugin.touched = True

    def _plugins(self, path: str) -> list[Plugin]:
        return [
            editor for editor in self._editors.values() if isinstance(editor, Plugin) and editor.path == path
        ]

    def edits(self, path: str) -> bool:
        """Return whether an editor plugin has the text of this file open."""
        return bool(self._plugins(path))

    def shows(self, path: str, name: bytes) -> bool:
        """Return whether an editor plugin shows, for the file `path`, the text with the BLAKE3 digest `name`.
        Waits up to 50 ms for changes that the plugin sent before it saved the file."""
        until = time.monotonic() + ARRIVING
        while plugins := self._plugins(path):
            for plugin in plugins:
                self.take_lines(plugin)
            if any(plugin.shows(name) for plugin in plugins):
                return True
            if time.monotonic() > until:
                break
            time.sleep(ARRIVED)
        return False

    def plugin_texts(self, path: str) -> list[bytes]:
        """Return a text for each editor plugin that has this file open: the text that the plugin showed after
        the last of its changes that is stored as an edit."""
        return [plugin.popped_text for plugin in self._plugins(path) if plugin.sheet is not None]

    @property
    def _waits(self) -> bool:
        editors = self._editors.values()
        return bool(editors) and (
            self._state.connection.light_changed
            or any(editor.typed or editor.sheet is None for editor in editors)
        )

    @property
    def _typed_each(self) -> float:
        open_ = [len(editor.sheet.text) for editor in self._editors.values() if editor.sheet is not None]
        return TYPED_EACH + max(open_, default=0) / LARGER

    def moments(self) -> list[float]:
        """Return the times at which the thread next has to store typed edits, or to report the cursor to
        others. Times are seconds of the monotonic clock. The list is empty if there is nothing to do."""
        moments = []
        if self._waits:
            moments.append(self._typed_at + self._typed_each)
        if self._cursor is not None:
            moments.append(self._here_at + (HERE_AGAIN if self._cursor_reported else HERE_EACH))
        return moments

    def is_due(self) -> bool:
        """Return whether it is time to store the changes that clients have typed."""
        return self._waits and time.monotonic() >= self._typed_at + self._typed_each

    def tell_cursor(self) -> None:
        """Tell the other people on the branch the position of the cursor, as a client reported it last. This
        happens at most four times a second."""
        state = self._state
        now = time.monotonic()
        if self._cursor is None or now < self._here_at + (HERE_AGAIN if self._cursor_reported else HERE_EACH):
            return
        path, line, col = self._cursor
        self._here_at, self._cursor_reported = now, True
        connected = state.connection.line
        if connected is not None:
            connected.send_position(state.channel, path, line, state.turn, "edit", col)

    def run(self) -> None:
        """Lock the folder and store the typed edits, if they are due. Called while the folder waits to repeat
        a failed round."""
        state = self._state
        if not self.is_due():
            return
        self._typed_at = time.monotonic()
        with suppress(CopyBusy), state.owning.round() as copy:
            state.work.begin(copy, state.turn)
            self._typed_at = 0.0
            self.step(copy)
            state.work.finish(copy)
            self.end_round(copy)
            state.sending.in_flight = len(copy.db.flight_numbers())

    def step(self, copy: WorkingCopy) -> bool:
        """Do one piece of work: open the text of one client, or join the changes that one client typed into
        one edit and store it. Returns False if there was nothing to do."""
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
        """Return whether the client is an editor plugin that may have saved its file since the last call. If
        so, the caller stores the plugin's typed changes before it examines the saved file."""
        if not isinstance(editor, Plugin) or not editor.touched:
            return False
        editor.touched = False
        return not self._state.work.is_ours(copy, editor.path)

    def store_typed(self) -> None:
        """Store typed changes that are still queued. Called before the agent stops watching the folder."""
        state = self._state
        if not any(editor.typed for editor in self._editors.values()):
            return
        with state.owning.round() as copy:
            state.work.begin(copy, state.turn)
            for editor in list(self._editors.values()):
                while editor.typed and editor.sheet is not None and not editor.sheet.waits(copy):
                    self._take(copy, editor, editor.sheet)
            state.work.finish(copy)

    def _open(self, copy: WorkingCopy, editor: Editor) -> None:
        try:
            if editor.path in copy.entries:
                # Its last save may not have been heard of.
                self._state.tell(copy, self._state.work.capture_saved(copy, [editor.path]))
            editor.open(OpenSheet(copy, editor.path, editor.session))
        except SvcError as error:
            self._end_edit(editor, error.detail or error.title)
            return
        self.send_people()

    def _take(self, copy: WorkingCopy, editor: Editor, sheet: OpenSheet) -> None:
        try:
            updates, last = editor.pop()
            self._state.tell(copy, self._state.work.capture_typed(copy, sheet, updates, last))
        except SvcError as error:
            self._end_edit(editor, error.detail or error.title)
        self._typed_at = time.monotonic()
        self._state.connection.try_again(self._typed_at)
        self._drop_disconnected(editor)

    def end_round(self, copy: WorkingCopy) -> None:
        """Send each client the changes that others made to its text. Also tell the client whether its own
        changes are stored, and whether they are sent to the server."""
        state, light = self._state, self._state.connection.light
        state.connection.light_changed = False
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
            barred = state.work.barred.get(sheet.path, "")
            why = terminal_safe(barred or (state.refusal if queued else ""))
            fate = (sheet.last, light, queued, why)
            if editor.reported != fate:
                editor.reported = fate
                editor.say(SheetEvent("kept", sheet.last, state=light, queued=queued, detail=why))

    def send_people(self) -> None:
        """Send each client the list of the people who edit the same text as this client."""
        for editor in self._editors.values():
            name = terminal_safe(editor.path)
            people = [
                person
                for person in self._state.connection.people.values()
                if person.path == name and person.state == "edit"
            ]
            editor.say(SheetEvent("people", people=people[:PEOPLE]))

    def notice(self, detail: str) -> None:
        """Send all clients a message about a failure. `detail` is its text."""
        for editor in self._editors.values():
            editor.say(SheetEvent("notice", detail=detail))

    def tell_refusal(self) -> None:
        """Tell the clients whose edits are not on the branch why the server does not take them."""
        why = terminal_safe(self._state.refusal)
        for editor in self._editors.values():
            if not editor.reported or not why:
                continue
            last, light, queued, before = editor.reported
            if queued and not before:
                editor.reported = (last, light, queued, why)
                editor.say(SheetEvent("kept", last, state=light, queued=queued, detail=why))

    def _end_edit(self, editor: Editor, why: str) -> None:
        editor.say(SheetEvent("ended", detail=terminal_safe(why)))
        editor.follower.hang_up_later()
        self._drop(editor)

    def _drop_disconnected(self, editor: Editor) -> None:
        if editor.disconnected and not editor.typed:
            self._drop(editor)

    def _drop(self, editor: Editor) -> None:
        state = self._state
        self._editors.pop(editor.follower, None)
        if self._cursor is not None and self._cursor[0] == editor.path:
            connected = state.connection.line
            if connected is not None:
                connected.send_position(state.channel, editor.path, self._cursor[1], state.turn, "idle")
            self._cursor = None
