"""A sheet: the text that a user edits in the terminal app. It is a lane (a CRDT text) that the app shares
with the background agent.

Both sides begin with the text as it was opened, and both may write at once: the app under the client id APP,
the agent, with the edits of other people, under the client id AGENT. The agent's side is a `Lane`; the app's
side is in this module. The cost of a change depends on its length, not on the length of the text. A sheet
belongs to one thread."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.lane.crdt import Delta, core
from localstore.core.lane.genesis import genesis, pieces
from localstore.core.lane.lane import Lane
from localstore.core.lane.update_format import ROOT

BRANCH = "sheet"  # stands for the branch in the genesis
APP, AGENT = 1, 2
AGENTS = 1  # origin of what the agent tells, which is not undone
TOGETHER = 500  # milliseconds: edits that follow so soon are undone together


def of_agent(text: bytes) -> Lane:
    """The agent's side of a sheet that begins with this text. Raises NotText unless the text is UTF-8,
    TooLarge if it is too long."""
    return Lane.genesis(BRANCH, 1, 0, text, AGENT)


class Sheet:
    """The app's side of a sheet. `now`: returns the milliseconds of a clock."""

    def __init__(self, text: bytes, now: Callable[[], int]) -> None:
        library = core()
        self._document = library.Doc(APP, None, None)
        opened = self._document.create_transaction()
        try:
            self._text = self._document.get_or_insert_text(opened, ROOT)
            if text:
                self._document.apply_update(opened, genesis(BRANCH, 1, 0, text).state())
            opened.commit()
        finally:
            opened.drop()
        self._undoing = library.UndoManager(TOGETHER, now, [], [])
        self._undoing.expand_scope_text(self._document, self._text)

    def text(self) -> bytes:
        """The text as UTF-8."""
        opened = self._document.create_transaction()
        try:
            return str(self._text.get_string(opened)).encode()
        finally:
            opened.drop()

    def splice(self, offset: int, deleted: int, inserted: bytes) -> bytes:
        """Replace `deleted` bytes at byte `offset` by `inserted`; one of the two is not empty. Returns the
        update for the agent."""

        def write() -> None:
            opened = self._document.create_transaction()
            try:
                if deleted:
                    self._text.remove_range(opened, offset, deleted)
                for piece in reversed(pieces(inserted)):
                    self._text.insert(opened, offset, piece)
                opened.commit()
            finally:
                opened.drop()

        return self._written(write)[0][0]

    def hear(self, update: bytes) -> list[Delta]:
        """Apply an update that the agent has sent. Returns the changes of the text."""

        def apply() -> None:
            opened = self._document.create_transaction_with_origin(AGENTS)
            try:
                self._document.apply_update(opened, update)
                opened.commit()
            finally:
                opened.drop()

        return self._written(apply)[1]

    def undo(self) -> tuple[list[bytes], list[Delta]]:
        """Undo the app's newest edit that is not undone yet. Edits of other people stay. Returns (updates for
        the agent, changes of the text), both empty if there is nothing to undo."""
        return self._written(self._undoing.undo)

    def redo(self) -> tuple[list[bytes], list[Delta]]:
        """Redo the edit that was undone last. Returns (updates for the agent, changes of the text), both
        empty if there is nothing to redo."""
        return self._written(self._undoing.redo)

    def _written(self, write: Callable[[], object]) -> tuple[list[bytes], list[Delta]]:
        updates: list[bytes] = []
        deltas: list[Delta] = []
        for_update = self._document.observe(lambda event: updates.append(bytes(event.update)))
        for_text = self._text.observe(lambda event: deltas.append([dict(step) for step in event.delta]))
        try:
            write()
        finally:
            for_text.drop()
            for_update.drop()
        return updates, deltas
