"""The messages from other threads of the agent to the thread of a folder, or of a look at a branch."""

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
    """End the thread."""

    why: str


class Lit(NamedTuple):
    """Reports the light of the server (live, polling or offline); it may be the same as before."""

    light: Light
    why: str


class Saved(NamedTuple):
    """A change below the folder."""

    kind: SaveKind
    path: str
    at: float  # monotonic seconds


class SetTurn(NamedTuple):
    """Sets the agent's turn for later edits of the folder."""

    turn: str | None


class EndTurn(NamedTuple):
    """End this turn, unless another one has begun meanwhile."""

    turn: str


class Pause(NamedTuple):
    """Stop exchanging edits with others (`paused`), or resume it."""

    paused: bool


class EditorJoined(NamedTuple):
    """A client wants to edit a text."""

    editor: Editor


class EditorTyped(NamedTuple):
    """A client has sent lines, which wait in its queue."""

    editor: Editor


class EditorLeft(NamedTuple):
    """A client has hung up."""

    follower: Follower


LookMessage: TypeAlias = Heard | Lit | Stop
FolderMessage: TypeAlias = (
    Heard | Lit | Stop | Saved | SetTurn | EndTurn | Pause | EditorJoined | EditorTyped | EditorLeft
)
T = TypeVar("T")


def received(inbox: queue.SimpleQueue[T], seconds: float | None) -> Iterator[T]:
    """The messages of the inbox, until it is empty. Waits `seconds` for the first one; None: without
    limit."""
    try:
        yield inbox.get_nowait() if seconds == 0 else inbox.get(timeout=seconds)
        while True:
            yield inbox.get_nowait()
    except queue.Empty:
        return
