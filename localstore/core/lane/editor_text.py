"""The agent's copy of the text that an editor plugin shows.

A plugin sends its changes as splices and knows nothing of lanes (CRDT texts). Each change from the agent
names the plugin's last change that the agent had received. If the plugin has made another change since, it
drops the agent's change, and the agent sends it again for the new text. So a plugin never has to move
offsets; the agent does that with two lanes.

A plugin may send several changes as one splice, together with the unchanged text between them. What others
wrote in that text must stay in place. So each splice is replaced by the smallest edits that give the same
text."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from localstore.core.diff import text_edits
from localstore.core.encoding import digest
from localstore.core.errors import Invalid
from localstore.core.lane.crdt import Delta
from localstore.core.lane.lane import Lane
from localstore.core.lane.sheet import AGENT, APP, BRANCH
from localstore.core.lane.splice import Splice, Unit

SPLICES = 1000  # of one change
SHOWN_SECONDS = 3.0  # for which a text that the plugin showed may still be what it saves


class EditorChange(NamedTuple):
    """A change that the plugin is asked to apply. `number`: counts the agent's changes from 1. `after`:
    number of the plugin's last change that the agent has received."""

    number: int
    after: int
    splices: list[Splice]


class EditorText:
    """The text that one editor plugin shows. `unit`: what the plugin's offsets count. `made`: number of the
    plugin's last change. `now`: returns the seconds of a monotonic clock."""

    def __init__(self, text: bytes, unit: Unit, now: Callable[[], float] = time.monotonic) -> None:
        self.made = 0
        self._unit, self._now = unit, now
        self._text, self._lane = text, Lane.genesis(BRANCH, 1, 0, text, APP)
        self._ahead: Lane | None = None  # the lane with what is on its way; None: to be copied
        self._waiting: list[bytes] = []  # updates of the agent that were not sent
        self._flying: list[bytes] = []  # those of the change that is on its way
        self._arriving = text  # the text once it was made
        self._seen = 0
        self._former: deque[tuple[float, bytes]] = (
            deque()
        )  # texts that it showed: until when (monotonic seconds), BLAKE3
        self._digest: bytes | None = None

    @property
    def text(self) -> bytes:
        """The text that the plugin shows, after the last splice that it sent."""
        return self._text

    def shows(self, name: bytes) -> bool:
        """Whether the plugin shows the text with the BLAKE3 digest `name`, or has shown it in the last
        SHOWN_SECONDS."""
        self._forget()
        return name == self._name() or any(name == former for _, former in self._former)

    def see(self, number: int) -> None:
        """Record that the plugin has applied the agent's change `number`. Raises Invalid unless that change
        was sent."""
        if number == self._seen + 1 and self._flying:
            self._lane.replay(self._flying)
            self._flying, self._seen = [], number
            self._become(self._arriving)
        elif number != self._seen:
            raise Invalid(f"the change {number} is not on its way; the last one seen is {self._seen}")

    def change(self, number: int, splices: Sequence[Splice]) -> bytes:
        """Apply the plugin's change with this number to the text. Returns the update for the agent's side of
        the text (its sheet), b"" if the text is unchanged. Raises Invalid for a change that cannot be
        applied; then nothing is changed."""
        if number != self.made + 1:
            raise Invalid(f"the next change is number {self.made + 1}, not {number}")
        if len(splices) > SPLICES:
            raise Invalid(f"a change has at most {SPLICES} splices")
        deltas, text = [], self._text
        for splice in splices:
            delta, text = self._apply_splice(text, splice, SPLICES // len(splices))
            deltas.append(delta)
        if not any(deleted or inserted for _, deleted, inserted in splices):
            raise Invalid("the change changes nothing")
        update = self._lane.repeat(APP, deltas) or b""
        self.made = number
        self._become(text)
        if self._flying:  # it drops that one
            self._waiting, self._flying = [*self._flying, *self._waiting], []
            self._ahead = None
        elif self._ahead is not None and update:
            self._ahead.replay([update])
        return update

    def hear(self, update: bytes) -> None:
        """Record an update of the agent's sheet, to be sent to the plugin."""
        self._waiting.append(update)

    def next(self) -> EditorChange | None:
        """The change to send to the plugin now. None if there is no change, or if the plugin has not
        confirmed the last one."""
        if self._flying or not self._waiting:
            return None
        if self._ahead is None:
            self._ahead = self._lane.copy()
        ahead = self._ahead
        deltas = [delta for update in self._waiting for delta in ahead.follow(update, AGENT)]
        splices, text = self._to_splices(deltas)
        self._flying, self._waiting = self._waiting, []
        self._arriving = text
        if not splices:
            self._lane.replay(self._flying)
            self._flying = []
            return None
        return EditorChange(self._seen + 1, self.made, splices)

    def _name(self) -> bytes:
        if self._digest is None:
            self._digest = digest(self._text)
        return self._digest

    def _forget(self) -> None:
        """Drop former texts that the plugin has not shown for SHOWN_SECONDS."""
        since = self._now() - SHOWN_SECONDS
        while self._former and self._former[0][0] < since:
            self._former.popleft()

    def _become(self, text: bytes) -> None:
        self._forget()
        self._former.append((self._now(), self._name()))
        self._text, self._digest = text, None

    def _apply_splice(self, text: bytes, splice: Splice, most: int) -> tuple[Delta, bytes]:
        """Applies a splice to `text`. Returns (delta, the text after it). `delta`: the same change in the
        form of the CRDT library, with at most `most` edits."""
        offset, deleted, inserted = splice
        if offset < 0 or deleted < 0:
            raise Invalid("a splice has an offset and a number of what is deleted, none below 0")
        if "\0" in inserted:
            raise Invalid("a text has no NUL character")
        start, end = (_bytes_to(text, self._unit, place) for place in (offset, offset + deleted))
        old, new = text[start:end], inserted.encode()
        delta: Delta = []
        reached = -start
        for edit in text_edits.coarser(old, text_edits.edits(old, new), most):
            delta += [{"retain": edit.offset - reached}] if edit.offset > reached else []
            delta += [{"delete": edit.deleted}] if edit.deleted else []
            delta += [{"insert": edit.inserted.decode()}] if edit.inserted else []
            reached = edit.offset + edit.deleted
        return delta, text[:start] + new + text[end:]

    def _to_splices(self, deltas: Sequence[Delta]) -> tuple[list[Splice], bytes]:
        """Converts changes of the plugin's text to splices. `deltas`: the changes in the form of the CRDT
        library. Returns (the splices, the text after them)."""
        text, splices = self._text, list[Splice]()
        for delta in deltas:
            at = 0
            for step in delta:
                if "retain" in step:
                    at += step["retain"]
                    continue
                deleted, inserted = step.get("delete", 0), str(step.get("insert", ""))
                start = _units_to(text, self._unit, at)
                gone = _units_to(text[at : at + deleted], self._unit, deleted)
                splices.append((start, gone, inserted))
                word = inserted.encode()
                text = text[:at] + word + text[at + deleted :]
                at += len(word)
        return splices, text


def _bytes_to(text: bytes, unit: Unit, offset: int) -> int:
    """The byte offset for an `offset` that counts in `unit`. Raises Invalid if it is beyond the end or inside
    a character."""
    if unit == "bytes" or text.isascii():
        if offset == len(text) or (offset < len(text) and text[offset] & 0xC0 != 0x80):
            return offset
    elif unit == "characters":
        characters = text.decode()
        if offset <= len(characters):
            return len(characters[:offset].encode())
    else:
        units = text.decode().encode("utf-16-le")
        if 2 * offset <= len(units):
            try:
                return len(units[: 2 * offset].decode("utf-16-le").encode())
            except UnicodeDecodeError:
                pass
    raise Invalid(f"the text has no character that begins at {offset} ({unit})")


def _units_to(text: bytes, unit: Unit, place: int) -> int:
    """Converts the byte offset `place` to an offset that counts in `unit`. The byte offset must be at the
    start of a character."""
    before = text[:place]
    if unit == "bytes" or before.isascii():
        return place
    return len(before.decode()) if unit == "characters" else len(before.decode().encode("utf-16-le")) // 2
