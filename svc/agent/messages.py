"""The messages that other threads of the agent send to the thread of a folder or of a `Look`."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, TypeVar

from localstore.agent.server import Follower
from localstore.agent.talk import Light
from svc.agent.editor import Editor
from svc.agent.line import Heard
from svc.agent.saves import SaveKind


class Stop(NamedTuple):
    """Tells the thread to end, for the reason `why`."""

    why: str


class LightChanged(NamedTuple):
    """Tells how the server is reached now: live, polling or offline. It is also sent when nothing has
    changed."""

    light: Light
    why: str


class FileSaved(NamedTuple):
    """Tells that a file below the folder was saved or removed."""

    kind: SaveKind
    path: str
    at: float  # monotonic seconds


class SetTurn(NamedTuple):
    """Sets the turn (the name of an AI agent's piece of work) for later edits of the folder. None ends the
    turn."""

    turn: str | None


class EndTurn(NamedTuple):
    """Ends `turn`, the piece of work that an AI agent has named. If another turn has begun meanwhile, the
    message has no effect."""

    turn: str


class Switched(NamedTuple):
    """Tells that the folder was switched to another branch, or shows a seal now."""


class Pause(NamedTuple):
    """Stops exchanging edits with others if `paused` is True, else resumes it."""

    paused: bool


class EditorJoined(NamedTuple):
    """Tells that a client wants to edit a text."""

    editor: Editor


class EditorTyped(NamedTuple):
    """Tells that a client has sent messages. They wait in `editor.lines`."""

    editor: Editor


class EditorLeft(NamedTuple):
    """Tells that a client has disconnected."""

    follower: Follower


LookMessage: TypeAlias = Heard | LightChanged | Stop
FolderMessage: TypeAlias = (
    Heard
    | LightChanged
    | Stop
    | FileSaved
    | SetTurn
    | EndTurn
    | Switched
    | Pause
    | EditorJoined
    | EditorTyped
    | EditorLeft
)
T = TypeVar("T")


def receive_messages(inbox: queue.SimpleQueue[T], seconds: float | None) -> Iterator[T]:
    """Yields the messages of the inbox until it is empty. Waits at most `seconds` for the first message; None
    means no limit."""
    try:
        yield inbox.get_nowait() if seconds == 0 else inbox.get(timeout=seconds)
        while True:
            yield inbox.get_nowait()
    except queue.Empty:
        return
