"""The clients that edit a text. The app sends updates of a CRDT text; an editor plugin sends splices (offset,
deleted length, inserted text)."""

from __future__ import annotations

import binascii
import queue
from base64 import b64decode, b64encode
from collections import deque
from typing import Any, TypeVar

import msgspec

from localstore.agent.server import Follower
from localstore.agent.talk import Request, SheetEvent, SplicedEdit, TypedEdit
from localstore.core.errors import Invalid, UsageError
from localstore.core.lane.editor_text import EditorText
from localstore.core.lane.splice import Unit
from localstore.live.sheets import OpenSheet

AT_ONCE = 500  # updates of one edit
SESSION_LETTERS = 64
T = TypeVar("T")
_typed = msgspec.json.Decoder(TypedEdit)
_spliced = msgspec.json.Decoder(SplicedEdit)


def require_edit(request: Request) -> None:
    """Raise UsageError if a request to edit a text is incomplete. The request must name a folder and a path
    in it. The app must also name its editing session, a word of letters and digits. An editor plugin must
    instead name the unit in which its offsets count, such as bytes."""
    if not (request.folder and request.path):
        raise UsageError("an edit names a folder, and a path in it")
    word = request.session
    if request.unit == "" and not (word.isalnum() and len(word) <= SESSION_LETTERS):
        raise UsageError("an edit names a session of letters and digits, or the unit of its splices")


def editor_of(request: Request, follower: Follower) -> Editor:
    """A new `Editor` or `Plugin` for the client that sent this `edit` request."""
    if request.unit == "":
        return Editor(request.path, request.session, follower)
    return Plugin(request.path, request.unit, follower)


class Editor:
    """A client that edits one text of a folder by updates of its sheet, a CRDT text shared with the agent.

    `sheet` is None until the text is open. `lines` has the messages that are received but not read yet.
    `typed` has the client's changes that are not stored as edits yet, as (number, update); the client numbers
    its changes. `disconnected` is True if the client has disconnected and some of its changes are not stored
    yet."""

    def __init__(self, path: str, session: str, follower: Follower) -> None:
        self.path, self.session, self.follower = path, session, follower
        self.sheet: OpenSheet | None = None
        self.lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.typed: deque[tuple[int, bytes]] = deque()
        self.reported: tuple[Any, ...] = ()
        self.disconnected = False

    def say(self, event: SheetEvent) -> None:
        if not self.disconnected:
            self.follower.say(event)

    def open(self, sheet: OpenSheet) -> None:
        """Open the text for the client: store the sheet, and send its text to the client."""
        self.sheet = sheet
        self.say(SheetEvent("text", sheet.last, sheet.text.decode()))

    def hear(self, line: bytes) -> tuple[int, int]:
        """Read a message of the client, and queue the change in it. Returns the line and column of the
        client's cursor, each of which is 0 if it is not known. Raises Invalid for a malformed message."""
        typed = _decode(_typed, line)
        if typed.n > 0 and typed.update:
            try:
                self.typed.append((typed.n, b64decode(typed.update, validate=True)))
            except (binascii.Error, ValueError):
                raise Invalid("what came from the app is not an edit") from None
        return typed.line, typed.col

    def tell(self, update: bytes) -> None:
        """Send the client an update of its sheet."""
        self.say(SheetEvent("update", update=b64encode(update).decode()))

    def pop(self) -> tuple[list[bytes], int]:
        """Remove the next changes that the client has typed from `typed`, at most AT_ONCE. Returns (updates,
        number of the last update). The number is 0 if there are no updates."""
        updates: list[bytes] = []
        last = 0
        while self.typed and len(updates) < AT_ONCE:
            last, update = self.typed.popleft()
            updates.append(update)
        return updates, last


class Plugin(Editor):
    """An editor plugin: a client that edits by splices and may save the file itself. Offsets in its splices
    count in `unit`.

    `touched` is True if the file was written since the agent last examined it. `popped_text` is the text that
    the plugin showed after the last change that was taken from `typed` (by `pop`)."""

    def __init__(self, path: str, unit: Unit, follower: Follower) -> None:
        super().__init__(path, "", follower)
        self.touched = False
        self.popped_text = b""
        self._unit = unit
        self._text: EditorText | None = None
        self._after: deque[bytes] = deque()  # what it showed after each AT_ONCE-th change of `typed`

    def open(self, sheet: OpenSheet) -> None:
        """Open the text for the plugin: send it the text of `sheet`. From then on the agent keeps a copy of
        the text that the plugin shows."""
        self._text = EditorText(sheet.text, self._unit)
        self.popped_text = sheet.text
        super().open(sheet)

    def hear(self, line: bytes) -> tuple[int, int]:
        """Read a message of the plugin, and queue its splices as an update. Returns the line and column of
        the plugin's cursor, each of which is 0 if it is not known. Raises Invalid for a malformed message,
        and for a message that comes before the text was sent."""
        spliced = _decode(_spliced, line)
        if self._text is None:
            raise Invalid("the text was not sent yet; wait for it before you change it")
        self._text.see(spliced.seen)
        if spliced.n or spliced.splices:
            self.typed.append((spliced.n, self._text.change(spliced.n, spliced.splices)))
            if len(self.typed) % AT_ONCE == 0:
                self._after.append(self._text.text)
        self._say_next()
        return spliced.line, spliced.col

    def pop(self) -> tuple[list[bytes], int]:
        """Remove the next updates, at most AT_ONCE, from `typed`. Set `popped_text` to the plugin's text
        after these updates. Returns (updates, number of the last update). The number is 0 if there are no
        updates."""
        batch = super().pop()
        if self._after:
            self.popped_text = self._after.popleft()
        if not self.typed and self._text is not None:
            self.popped_text = self._text.text
        return batch

    def tell(self, update: bytes) -> None:
        """Send the plugin an update of its sheet, translated into splices of the text that the plugin
        shows."""
        if self._text is not None:
            self._text.hear(update)
            self._say_next()

    def shows(self, name: bytes) -> bool:
        """Return whether the editor shows the text with the BLAKE3 digest `name`, or showed it a moment
        ago."""
        return self._text is not None and self._text.shows(name)

    def _say_next(self) -> None:
        change = self._text.next() if self._text is not None else None
        if change is not None:
            self.say(SheetEvent("change", change.after, change=change.number, splices=change.splices))


def _decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T:
    try:
        return decoder.decode(line)
    except msgspec.MsgspecError as error:
        raise Invalid(f"this is not an edit: {str(error)[:200]}") from None
