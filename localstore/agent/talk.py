"""The messages on the agent's socket: one JSON object a line. A line from a client has at most LINE_BYTES.

A client sends a `Request`. The answer is a `Reply`; for `invoke` it is an `ApiResponse`. After a `follow`,
the agent sends `FolderEvent` lines until one side disconnects, and after a `look`, `BranchEvent` lines. After
an `edit` the client sends `TypedEdit` lines, or `SplicedEdit` lines if it named a `unit`, and receives
`SheetEvent` lines."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from localstore.agent.place import socket_path
from localstore.core.errors import ClientError
from localstore.core.lane.splice import Splice, Unit
from localstore.core.paths import terminal_safe

LINE_BYTES = 1 << 20
RESPONSE_BYTES = 16 << 20  # of an ApiResponse
ANSWER_SECONDS = 30.0  # for the agent to answer
Light = Literal["live", "polling", "offline"]
Do = Literal["about", "watch", "follow", "stop", "send", "invoke", "look", "here", "edit", "switched"]
T = TypeVar("T")


class Request(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A request to the agent. `do` says which:

    - `about`: describe the agent.
    - `watch` the `folder`; `stop` watching it, or all folders if none is named.
    - `follow` the events of the folder, or of all folders if none is named.
    - `send` the actions that wait in the outbox.
    - `switched`: the `folder` was switched to another branch, or shows a seal now.
    - `invoke` the `command` with `args`, in the `folder` and at the `server`.
    - `look` at the live state of a `branch` of the repository `repo` (an id) at the `server`; `here`: report
      that the user looks at a `path` and `line` of that branch.
    - `edit` the text at a `path` of the `folder`. The terminal app names a `session` for its typed edits; an
      editor plugin instead names the `unit` in which the offsets of its splices count.

    `detach`: keep watching the folder when no client follows it. `turn`: the name of the piece of work for
    which a program edits; it ends when the follower that named it disconnects."""

    do: Do
    folder: str | None = None
    detach: bool = False
    turn: str | None = None
    command: str = ""
    args: dict[str, Any] = msgspec.field(default_factory=dict)
    server: str | None = None
    repo: str = ""
    branch: str = ""
    path: str = ""
    line: int = 0
    session: str = ""
    unit: Unit | Literal[""] = ""


class TypedEdit(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A typed edit in the terminal app. `n`: its number in the session, 0 if only the cursor moved. `update`:
    the CRDT update of the edited text, in base64. The cursor's `line` and `col` count from 1."""

    n: int = 0
    update: str = ""
    line: int = 0
    col: int = 0


class SplicedEdit(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An edit of an editor plugin. `n`: number of the change, 0 if only the cursor moved. `splices`: what it
    replaces. `seen`: number of the agent's last change that the plugin has applied. The cursor's `line` and
    `col` count from 1."""

    n: int = 0
    seen: int = 0
    splices: list[Splice] = msgspec.field(default_factory=list)
    line: int = 0
    col: int = 0


class ApiError(msgspec.Struct):
    """The error of a command that was refused: its code, and a sentence for a person."""

    code: str
    message: str


class ApiResponse(msgspec.Struct, Generic[T]):
    """The answer of every command of `invoke`: `data` if it succeeded, else `error`."""

    success: bool
    data: T | None = None
    error: ApiError | None = None

    @classmethod
    def refuse(cls, code: str, message: str) -> ApiResponse[T]:
        return cls(False, None, ApiError(code, message))


class PersonOnBranch(msgspec.Struct, omit_defaults=True):
    """Somebody else on the branch, with their file and line (0: unknown). `kind`: person or agent. `conn`: id
    of their connection, the same while their working copy is connected; set only in the reports of a `look`,
    else ""."""

    who: str
    device: str
    kind: str = "person"
    path: str = ""
    line: int = 0
    state: str = "view"
    conn: str = ""
    col: int = 0


class Folder(msgspec.Struct, omit_defaults=True):
    """A watched folder and its state. `light`: how the folder is connected to the server (live, polling or
    offline), since the time `since` (Unix seconds), for the reason `why`. `queued`: how many edits the relay
    has not confirmed. `walks`: the folder is scanned repeatedly, because the system reports no changes here.
    `paused`: nothing is sent or fetched."""

    folder: str
    repo: str
    branch: str
    server: str
    light: Light
    since: int
    why: str = ""
    queued: int = 0
    detached: bool = False
    followers: int = 0
    walks: bool = False
    paused: bool = False
    people: list[PersonOnBranch] = msgspec.field(default_factory=list)


class Reply(msgspec.Struct, omit_defaults=True):
    """The answer to a request. `error`: why the request was refused, with the error's `code`; a refused
    request has no effect. `folders`: the folders that the request was about, in their current state."""

    pid: int = 0
    version: str = ""
    code: str = ""
    error: str = ""
    folders: list[Folder] = msgspec.field(default_factory=list)


class FolderEvent(msgspec.Struct, omit_defaults=True):
    """An event in a watched folder. `event` is one of:

    light     the connection is `state` now (live, polling, offline); `detail` if it is not live
    sent      an edit of this folder is on the branch
    came      an edit of `by` was written here (`gone`: the file was removed)
    merged    an edit of this folder was merged with an edit of `by`
    kept      a save from an old buffer lacked lines of `by` (`lines`: how many); they stay in the file until
              the same text is saved again
    conflict  the path keeps the version of `by` (`gone`: it has no file, because `by` removed it); the
              version of this folder is kept whole in the file `kept_as`
    renamed   `path` was renamed to `to`, and the edit that was made at `path` is in `to` now; `back`: the
              edit does not fit the file `to`, and both files stay
    refused   the relay refuses `path`, for the reason `detail`
    skipped   `path` cannot be sent, for the reason `detail`
    held      removals of most of the branch are not sent; `detail` has their number and the remedy
    person    `by` is in `path`, or left (`gone`)
    seal      the folder is at `seal` now
    trouble   `detail` describes a failure
    ended     the folder is no longer watched"""

    event: str
    folder: str
    at: str
    path: str = ""
    by: str = ""
    device: str = ""
    agent: bool = False
    line: int = 0
    lines: int = 0
    gone: bool = False
    kept_as: str = ""
    seal: str = ""
    state: str = ""
    detail: str = ""
    to: str = ""
    back: bool = False


class Unsealed(msgspec.Struct, omit_defaults=True):
    """A path whose live state differs from the last seal."""

    path: str
    kind: str  # text, blob, chunked or gone
    gen: int  # of its lane
    ver: int  # number of the last update
    digest: str = ""
    size: int = 0
    new: bool = False  # the seal lacks it
    by: list[str] = msgspec.field(default_factory=list)  # who edited it, as far as it is known


class BranchEvent(msgspec.Struct, omit_defaults=True):
    """An event about a branch that the client looks at. `event` is one of:

    light     the connection is `state` now (live, polling, offline); `detail` if it is not live
    frontier  the answer to `look`: `paths` differ from the seal `head` (None: nothing is sealed) of the
              branch `branch_id`; paths that do not fit into one line follow as `changed`
    changed   `paths` changed; the paths in `same` are as sealed again
    people    everybody else on the branch
    ended     the branch is no longer looked at, for the reason `detail`"""

    event: Literal["light", "frontier", "changed", "people", "ended"]
    state: str = ""
    detail: str = ""
    head: str | None = None
    branch_id: str = ""
    paths: list[Unsealed] = msgspec.field(default_factory=list)
    same: list[str] = msgspec.field(default_factory=list)
    people: list[PersonOnBranch] = msgspec.field(default_factory=list)


class SheetEvent(msgspec.Struct, omit_defaults=True):
    """An event about a text that the client edits. `event` is one of:

    text      the `text` at the beginning; it includes all updates of the session up to number `n`
    update    others changed the text: `update`, a CRDT update in base64
    change    others changed the text of an editor plugin: the agent's change number `change`, as
              `splices`; valid only if the client's last change is number `n`, otherwise the client drops
              it and gets it again
    kept      all updates up to `n` are in the file; `state`: how the folder is connected; `queued`: some
              edits of the file are not on the branch yet; `detail`: why the server refuses them
    people    others in the file
    notice    `detail` describes a failure of the folder
    ended     the text is no longer edited, for the reason `detail`"""

    event: Literal["text", "update", "change", "kept", "people", "notice", "ended"]
    n: int = 0
    text: str = ""
    update: str = ""
    change: int = 0
    splices: list[Splice] = msgspec.field(default_factory=list)
    state: str = ""
    queued: bool = False
    detail: str = ""
    people: list[PersonOnBranch] = msgspec.field(default_factory=list)


class AgentSilent(Exception):
    """No agent answers."""


encode = msgspec.json.Encoder().encode


def _encode_request(request: Request) -> bytes:
    """The request as a line of JSON. Raises ClientError for a folder whose path is not UTF-8."""
    try:
        return encode(request) + b"\n"
    except UnicodeEncodeError:
        name = terminal_safe(request.folder or "")
        raise ClientError(
            f"the path {name} is not UTF-8, and the agent knows folders by UTF-8 paths; rename that folder"
        ) from None


_replies = msgspec.json.Decoder(Reply)
_said = msgspec.json.Decoder(FolderEvent)
_seen = msgspec.json.Decoder(BranchEvent)
_sheets = msgspec.json.Decoder(SheetEvent)
_responses = msgspec.json.Decoder(ApiResponse[Any])


class Conversation:
    """One connection to the agent of a SVC_HOME. Creating it raises AgentSilent if no agent runs."""

    def __init__(self, root: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._received = bytearray()
        try:
            self._socket.settimeout(ANSWER_SECONDS)
            with socket_path(root) as path:
                self._socket.connect(path)
        except OSError:
            self._socket.close()
            raise AgentSilent from None

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. A thread that waits for a line wakes up."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def ask(self, request: Request) -> Reply:
        """Send a request and return the reply. Raises AgentSilent if the agent disconnects or does not answer
        in time."""
        try:
            self._socket.sendall(_encode_request(request))
            return _replies.decode(self._line())
        except (OSError, msgspec.MsgspecError):
            raise AgentSilent from None

    def invoke(
        self,
        command: str,
        args: dict[str, Any],
        folder: str | None = None,
        server: str | None = None,
        seconds: float | None = None,
    ) -> ApiResponse[Any]:
        """Run a command in the agent, in a `folder` and at a `server` if these are given. Returns its answer.
        Raises AgentSilent if the agent disconnects, or sends nothing for `seconds`."""
        request = Request("invoke", folder, command=command, args=args, server=server)
        try:
            self._socket.settimeout(seconds)
            self._socket.sendall(_encode_request(request))
            return _responses.decode(self._line(RESPONSE_BYTES))
        except (OSError, msgspec.MsgspecError):
            raise AgentSilent from None

    def events(self) -> Iterator[FolderEvent]:
        """Yields the events that follow a `follow` request, until the agent disconnects."""
        self._socket.settimeout(None)
        while True:
            try:
                yield _said.decode(self._line())
            except (OSError, msgspec.MsgspecError, AgentSilent):
                return

    def sights(self) -> Iterator[BranchEvent]:
        """Yields the events that follow a `look` request, until the agent disconnects."""
        self._socket.settimeout(None)
        while True:
            try:
                yield _seen.decode(self._line())
            except (OSError, msgspec.MsgspecError, AgentSilent):
                return

    def sheets(self) -> Iterator[SheetEvent]:
        """Yields the events that follow an `edit` request, until the agent disconnects."""
        self._socket.settimeout(None)
        while True:
            try:
                yield _sheets.decode(self._line(RESPONSE_BYTES))
            except (OSError, msgspec.MsgspecError, AgentSilent):
                return

    def type(self, typed: TypedEdit) -> None:
        """Send a typed edit, after an `edit` request. Raises AgentSilent if the agent is gone."""
        try:
            self._socket.sendall(encode(typed) + b"\n")
        except OSError:
            raise AgentSilent from None

    def _line(self, most: int = LINE_BYTES) -> bytes:
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            piece = self._socket.recv(1 << 16)
            if not piece or len(self._received) > most:
                raise AgentSilent
            self._received += piece
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line
