"""Somebody who types into a text through the agent of a device, without a screen."""

from __future__ import annotations

import queue
from pathlib import Path

from localstore.core.lane.crdt import Delta
from localstore.home import Home
from tests.patience import until
from tui.listening.writing import AgentEvent, Writing


def changed(text: bytes, deltas: list[Delta]) -> bytes:
    """The text after these changes."""
    for delta in deltas:
        at = 0
        for step in delta:
            if "retain" in step:
                at += step["retain"]
            elif "delete" in step:
                text = text[:at] + text[at + step["delete"] :]
            else:
                word = step["insert"].encode()
                text, at = text[:at] + word + text[at:], at + len(word)
    return text


class Typist:
    """`shown`: the text as a screen would show it. `said`: the events but changes of the text."""

    def __init__(self, home: Path, folder: Path, path: str) -> None:
        self._heard: queue.SimpleQueue[AgentEvent] = queue.SimpleQueue()
        self.said: list[str] = []
        self.people: list[tuple[str, int, int]] = []
        self.shown = b""
        self.writing = Writing(Home(home), folder, path, self._heard.put)

    def hear(self) -> None:
        """Take in what was heard so far."""
        while not self._heard.empty():
            heard = self._heard.get()
            self.shown = changed(self.shown, self.writing.take(heard))
            assert self.shown == self.writing.text
            if heard.event.event == "people":
                self.people = [(one.who, one.line, one.col) for one in heard.event.people]
            if heard.event.detail:
                self.said.append(f"{heard.event.event}: {heard.event.detail}")

    def opened(self) -> Typist:
        until(lambda: (self.hear(), self.writing.open)[1])
        return self

    def type(self, before: str, word: str) -> None:
        """Type a word before the first occurrence of `before`."""
        at = self.shown.index(before.encode())
        for letter in word:
            self.writing.splice(at, 0, letter.encode())
            self.shown = self.shown[:at] + letter.encode() + self.shown[at:]
            at += len(letter.encode())
            self.hear()
            at = self.shown.index(before.encode()) if before.encode() in self.shown else at

    def settled(self) -> bool:
        """Whether all that was typed is on the branch."""
        self.hear()
        return not self.writing.waits and not self.writing.queued
