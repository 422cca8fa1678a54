"""Edits a text of a linked folder in the app, through the agent (svc's background process).

    writing = Writing(home, folder, path, heard)     # connects; `heard` is called on a thread of its own
    changes = writing.take(event)                    # on the app's thread, like all that follows
    writing.splice(offset, deleted, inserted)
    writing.close()

While no agent answers, typed changes wait here. They are then sent to the next agent, at the same places in
the text."""

from __future__ import annotations

import threading
import time
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from localstore.agent.talk import AgentSilent, Conversation, Request, TypedEdit
from localstore.agent.talk import SheetEvent as Event
from localstore.core.diff import text_edits
from localstore.core.errors import SvcError
from localstore.core.lane.crdt import Delta
from localstore.core.lane.sheet import AGENT, APP, Sheet, of_agent
from localstore.home import Home
from svc.agent.start import start
from tui.listening.backoff import Backoff

LEAVE_SECONDS = 5.0  # that what was typed may take to the server after its text was left


class AgentEvent(NamedTuple):
    """An event from the agent. `talk`: the connection on which it arrived."""

    event: Event
    talk: Conversation | None


class Writing:
    """A text that is edited through the agent. `made`: number of the last edit that the user made here.
    `kept`: number of the last edit that the file in the folder contains. `state`, `queued` and `refused`:
    what the agent reported last about saving and sending the text."""

    def __init__(self, home: Home, folder: Path, path: str, heard: Callable[[AgentEvent], None]) -> None:
        self.path, self.kept, self.made = path, 0, 0
        self.state, self.queued, self.refused = "", False, ""
        self._home, self._folder, self._tell = home, str(folder.resolve()), heard
        self._session = uuid4().hex
        self._sheet: Sheet | None = None
        self._first = b""
        self._log: list[tuple[int, bytes]] = []  # updates since; 0: of the agent, else the number of ours
        self._talk: Conversation | None = None
        self._newest: Conversation | None = None
        self._lock, self._ended = threading.Lock(), threading.Event()
        threading.Thread(target=self._run, name="writing", daemon=True).start()

    # --- on the app's thread

    @property
    def open(self) -> bool:
        """Whether the agent has sent the content of the text."""
        return self._sheet is not None

    @property
    def connected(self) -> bool:
        return self._talk is not None

    @property
    def text(self) -> bytes:
        return self._sheet.text() if self._sheet is not None else b""

    @property
    def waits(self) -> bool:
        """Whether there are edits that the file in the folder does not contain yet."""
        return self.kept < self.made

    def take(self, heard: AgentEvent) -> list[Delta]:
        """Apply an event of the agent. Returns the changes that it makes to the text."""
        event = heard.event
        if event.event == "text":
            self._talk = heard.talk
            return self._begin(event) if self._sheet is None else self._begin_again(event)
        if heard.talk is not self._talk:
            return []
        if event.event == "update" and self._sheet is not None:
            update = b64decode(event.update)
            self._log.append((0, update))
            return self._sheet.hear(update)
        if event.event == "kept":
            self.kept = max(self.kept, event.n)
            self.state, self.queued, self.refused = event.state, event.queued, event.detail
        elif event.event == "ended":
            self._talk = None
        return []

    def splice(self, offset: int, deleted: int, inserted: bytes) -> None:
        """Tell the agent an edit that the user has typed: at the byte `offset`, `deleted` bytes of the text
        are replaced by `inserted`. `deleted` may be 0, or `inserted` may be empty."""
        if self._sheet is not None:
            self._send([self._sheet.splice(offset, deleted, inserted)])

    def undo(self) -> list[Delta]:
        """Undo the last edit that the user made here. Returns the changes of the text."""
        return self._again(self._sheet.undo()) if self._sheet is not None else []

    def redo(self) -> list[Delta]:
        return self._again(self._sheet.redo()) if self._sheet is not None else []

    def here(self, line: int, col: int) -> None:
        """Tell the agent the cursor's line and column, which count from 1."""
        self._say(TypedEdit(line=line, col=col))

    def close(self) -> None:
        """Close the text. Returns at once. Edits that are not sent yet have LEAVE_SECONDS to reach the
        server."""
        self._ended.set()

    def _again(self, done: tuple[list[bytes], list[Delta]]) -> list[Delta]:
        self._send(done[0])
        return done[1]

    def _send(self, updates: list[bytes]) -> None:
        for update in updates:
            self.made += 1
            self._log.append((self.made, update))
            self._say(TypedEdit(self.made, b64encode(update).decode()))

    def _say(self, typed: TypedEdit) -> None:
        if self._talk is not None:
            try:
                self._talk.type(typed)
            except AgentSilent:
                self._talk = None  # another agent is being asked

    def _begin(self, event: Event) -> list[Delta]:
        self._first = event.text.encode()
        self._sheet, self._log = Sheet(self._first, _now), []
        return [[{"insert": event.text}]] if event.text else []

    def _begin_again(self, event: Event) -> list[Delta]:
        """Continue with another agent, whose text contains the user's edits up to number `event.n`. The later
        edits are applied to that text. Returns the changes between the shown text and the new one."""
        last = max(event.n, self.kept)
        before, waiting = self._known_to(last)
        lane, mine, text = of_agent(before), Sheet(before, _now), event.text.encode()
        lane.edit(AGENT, text)
        deltas = [
            followed
            for delta in waiting
            for update in _splice_delta(mine, delta)
            for followed in lane.follow(update, APP)
        ]
        before_text = self.text
        self._first, self._log, self._sheet = text, [], Sheet(text, _now)
        self.kept = self.made = last
        for delta in deltas:
            self._send(_splice_delta(self._sheet, delta))
        return _delta(before_text, self.text)

    def _known_to(self, last: int) -> tuple[bytes, list[Delta]]:
        """Returns the text as it was after number `last` of the user's edits, with the edits of others. Also
        returns the changes that the user's later edits make to that text."""
        lane = of_agent(self._first)
        for number, update in self._log:
            if number <= last:
                lane.replay([update])
        before = lane.text()
        return before, [
            followed for n, update in self._log if n > last for followed in lane.follow(update, APP)
        ]

    # --- on a thread

    def _run(self) -> None:
        backoff = Backoff()
        threading.Thread(target=self._leave, name="leaving", daemon=True).start()
        while not self._ended.is_set():
            try:
                if self._listen():
                    return
                backoff.reset()
            except AgentSilent:
                backoff.lengthen()
            except SvcError as error:
                self._tell(AgentEvent(Event("ended", detail=str(error.detail or error.title)), self._talk))
                return
            backoff.wait(self._ended)

    def _listen(self) -> bool:
        """Receive events until the agent ends. Returns True if the text cannot be edited any more."""
        talk = start(self._home)
        with self._lock:
            self._newest = talk
        with talk:
            reply = talk.ask(Request("edit", self._folder, path=self.path, session=self._session))
            if reply.error:
                self._tell(AgentEvent(Event("ended", detail=reply.error), self._talk))
                return True
            for event in talk.sheets():
                self._tell(AgentEvent(event, talk))
                if event.event == "ended":
                    return True
        return False

    @property
    def _is_on_its_way(self) -> bool:
        """Whether the server is about to take edits."""
        return self.queued and self.state != "offline" and not self.refused

    def _leave(self) -> None:
        """Wait until the text is closed and all edits are on the branch, at most LEAVE_SECONDS. Disconnect
        afterwards."""
        self._ended.wait()
        until = time.monotonic() + LEAVE_SECONDS
        while time.monotonic() < until and (self.waits or self._is_on_its_way):
            time.sleep(0.05)
        with self._lock:
            if self._newest is not None:
                self._newest.close()


def _now() -> int:
    return time.monotonic_ns() // 1_000_000


def _splice_delta(sheet: Sheet, delta: Delta) -> list[bytes]:
    """Apply a change to a sheet (the app's copy of the text). Returns the updates to send to the agent."""
    updates, at = [], 0
    for step in delta:
        if "retain" in step:
            at += step["retain"]
        elif "delete" in step:
            updates.append(sheet.splice(at, step["delete"], b""))
        else:
            word = step["insert"].encode()
            updates.append(sheet.splice(at, 0, word))
            at += len(word)
    return updates


def _delta(old: bytes, new: bytes) -> list[Delta]:
    """Returns the steps that change `old` into `new`, [] if they are equal."""
    delta: Delta = []
    at = 0
    for edit in text_edits.edits(old, new):
        delta += [{"retain": edit.offset - at}] if edit.offset > at else []
        delta += [{"delete": edit.deleted}] if edit.deleted else []
        delta += [{"insert": edit.inserted.decode()}] if edit.inserted else []
        at = edit.offset + edit.deleted
    return [delta] if delta else []
