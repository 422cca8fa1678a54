"""Follows a branch for a client that has no folder of it. The client is told the unsealed changes, the people
on the branch, and each new change. Nothing is written to disk. Reports name only the changed paths, and the
client fetches the texts itself."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from localstore.agent.talk import BranchEvent, Light, PersonOnBranch, Unsealed
from localstore.core.errors import Cancelled, Forbidden, NotFound, ServerUnreachable, SvcError, Unauthorized
from localstore.core.model import history, live
from localstore.core.model.history import TreeQuery
from localstore.core.model.live import Bootstrap, BootstrapRequest, ReplicaUnknown, Row
from localstore.core.model.sync import Answers, Event, Gap, Live, Opened, People, Refused
from localstore.core.paths import terminal_safe
from localstore.live.frames import require_signed
from svc.agent.line import ChannelParameters, Heard, Line
from svc.agent.messages import LightChanged, LookMessage, Stop, receive_messages
from svc.api import Api
from svc.http.bounds import Cancel, Deadline, within

REQUEST_SECONDS = 60.0
AGAIN = 5.0  # seconds before a reading that failed is tried again
REPORT_EACH = 0.05  # seconds between two reports
AT_ONCE = 200  # paths of one report: a line has at most LINE_BYTES
HEADS = ("seal.create", "ref.update", "ref.delete")


class Look:
    """A branch that a thread follows for one client, which has no folder of the branch.

    `say` is called with each report on changes, `ended` after the last report. `replicas` maps (repository,
    branch) to the id by which the relay knows this process on that branch."""

    def __init__(
        self,
        repo_id: str,
        branch: str,
        channel: int,
        line: Line,
        reader: Callable[[], Api],
        device_key_id: str,
        replicas: dict[tuple[str, str], int],
        say: Callable[[BranchEvent], None],
        ended: Callable[[], None],
        log: Callable[[str], None],
    ) -> None:
        self.repo_id, self.branch, self.channel, self.line = repo_id, branch, channel, line
        self.channel_parameters: ChannelParameters | None = None
        self._reader, self._device, self._replicas = reader, device_key_id, replicas
        self._say, self._ended, self._log = say, ended, log
        self._inbox: queue.SimpleQueue[LookMessage] = queue.SimpleQueue()
        self._end = Cancel()
        self._light: tuple[Light, str] | None = None
        self._branch_id, self._seq = "", 0
        self._head: str | None = None
        self._sealed: dict[str, str] = {}  # path → digest
        self._unsealed: dict[str, Unsealed] = {}
        self._people: dict[str, PersonOnBranch] = {}
        self._whole = True  # the branch is read from its beginning
        self._behind = False  # what came since is read
        self._again = 0.0  # not before
        self._reported_at = 0.0
        self._news: set[str] | None = set()  # paths to report; None: all of them
        self._moved = False
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"look {branch}")
        self._thread.start()

    # --- called from other threads

    def queue_message(self, message: Heard) -> None:
        self._inbox.put(message)

    def queue_light(self, light: Light, why: str) -> None:
        self._inbox.put(LightChanged(light, why))

    def send_position(self, path: str, line: int) -> None:
        """Tell the others on the branch which line of which file the user looks at."""
        self.line.send_position(self.channel, path, line, None, "view")

    def close(self) -> None:
        self._end.cancel()
        self._inbox.put(Stop(""))
        self.line.leave(self)

    # --- the thread

    def _run(self) -> None:
        why = ""
        try:
            self.line.join(self)
            why = self._loop()
        except Exception as error:  # a bug ends this look, not the agent
            self._log(f"look at {self.branch}: {type(error).__name__}: {error}")
            why = f"something broke inside svc ({type(error).__name__}: {error})"
        finally:
            if not self._end.ended:
                self.line.leave(self)
            self._say(BranchEvent("ended", detail=terminal_safe(why)))
            self._ended()

    def _loop(self) -> str:
        """Handle messages and read the branch until the look ends. Returns the reason for the end."""
        while True:
            for message in receive_messages(self._inbox, self._pause()):
                if isinstance(message, Stop):
                    return message.why
                self._handle(message)
            if self._due() and time.monotonic() >= self._again:
                why = self._read()
                if why:
                    return why
            if time.monotonic() >= self._reported_at + REPORT_EACH:
                self._tell()

    def _pause(self) -> float | None:
        now, moments = time.monotonic(), []
        if self._due():
            moments.append(self._again)
        if self._news is None or self._news or self._moved:
            moments.append(self._reported_at + REPORT_EACH)
        return max(0.0, min(moments) - now) if moments else None

    def _due(self) -> bool:
        online = self._light is not None and self._light[0] != "offline"
        return online and (self._whole or self._behind)

    def _follow_light(self, light: Light, why: str) -> None:
        if (light, why) == self._light:
            return
        self._light = (light, why)
        self._again = 0.0
        if light == "offline":
            self._moved = self._moved or bool(self._people)
            self._people.clear()
        elif not self._whole:
            self._behind = True
        self._say(BranchEvent("light", state=light, detail=terminal_safe(why)))

    def _handle(self, message: LookMessage) -> None:
        match message:
            case LightChanged(light, why):
                self._follow_light(light, why)
            case Live():
                self._store(message)
            case Gap():
                self._behind = True
            case Opened():
                self._people.clear()
                self._moved = True
                self._whole = self._whole or message.head != self._head
            case People():
                self._meet(message)
            case Refused() if message.id is None:
                self.channel_parameters, self._whole = None, True
                self._again = time.monotonic() + AGAIN
            case Event():
                concerns = message.kind in HEADS and self.branch in (
                    message.data.get("branch"),
                    message.data.get("name"),
                )
                self._whole = self._whole or concerns or message.kind.startswith(("repo.", "access."))
            case Answers() | Refused():
                pass
            case _:  # Resync, Hidden: what may be read has changed
                self._whole = True

    def _meet(self, message: People) -> None:
        for person in message.here:
            self._people[person.conn] = PersonOnBranch(
                terminal_safe(person.who),
                terminal_safe(person.device),
                person.kind,
                person.path,
                person.line,
                person.state,
                person.conn,
                person.col,
            )
        for conn in message.gone:
            self._people.pop(conn, None)
        self._moved = True

    # --- reading

    def _read(self) -> str:
        """Read the whole state of the branch. Returns the reason if the user may not read it, else "". An
        attempt that fails for another reason is repeated later."""
        try:
            with within(self._end, Deadline(REQUEST_SECONDS)):
                self._bootstrap(self._reader())
        except (Forbidden, NotFound) as error:
            return error.detail or "there is no such branch, or your role may not look at it live"
        except (Cancelled, ServerUnreachable, Unauthorized):
            self._again = time.monotonic() + AGAIN
        except SvcError as error:
            self._log(f"look at {self.branch}: {error.detail or error.title}")
            self._again = time.monotonic() + AGAIN
        return ""

    def _bootstrap(self, api: Api) -> None:
        since = 0 if self._whole else self._seq
        bootstrap = self._fetch_bootstrap(api, since)
        if self._whole or bootstrap.sealed_head != self._head:
            if since:
                bootstrap = self._fetch_bootstrap(api, 0)
            self._head, self._sealed = bootstrap.sealed_head, self._tree(api, bootstrap.sealed_head)
            self._unsealed.clear()
            self._news = None
        self._branch_id, self._seq = bootstrap.branch_id, bootstrap.seq
        for row in bootstrap.rows:
            self._put(row, bootstrap.live_by.get(row.path, []))
        self._whole = self._behind = False
        parameters = ChannelParameters(
            self.repo_id, self.branch, bootstrap.replica, self._device, bootstrap.seq
        )
        opened = self.channel_parameters is not None and self.channel_parameters.replica == parameters.replica
        self.channel_parameters = parameters
        if not opened:
            self.line.join(self)  # opens the channel

    def _fetch_bootstrap(self, api: Api, since: int) -> Bootstrap:
        named = (self.repo_id, self.branch)
        path = {"id": self.repo_id, "branch": self.branch}
        replica = self._replicas.get(named)
        try:
            body = BootstrapRequest(device_key_id=self._device, replica=replica, since=since)
            bootstrap = api.send(live.BOOTSTRAP, body, **path)
        except ReplicaUnknown:  # the branch was made again
            self._replicas.pop(named, None)
            bootstrap = api.send(
                live.BOOTSTRAP, BootstrapRequest(device_key_id=self._device, since=0), **path
            )
        self._replicas[named] = bootstrap.replica
        return bootstrap

    def _tree(self, api: Api, head: str | None) -> dict[str, str]:
        if head is None:
            return {}
        tree = api.send(history.TREE, query=TreeQuery(recursive=True), id=self.repo_id, sha=head)
        return {entry.path: entry.blake3 for entry in tree.entries if entry.kind != "dir"}

    # --- what is not sealed

    def _store(self, frame: Live) -> None:
        if frame.seq <= self._seq and frame.after < self._seq:
            return  # known from a reading
        if frame.after != self._seq:
            self._behind = True
            return
        try:
            for signed in frame.updates:
                require_signed(self.repo_id, self._branch_id, signed)
        except SvcError as error:  # what is read instead says nothing of who wrote it
            self._log(f"look at {self.branch}: {error.detail}")
            self._behind = True
            return
        self._seq = frame.seq
        if self.channel_parameters is not None:
            self.channel_parameters.since = frame.seq
        for row in frame.rows:
            self._put(row, [signed.who for signed in frame.updates if signed.update.path == row.path])

    def _put(self, row: Row, by: list[str]) -> None:
        """Store the new state of one path of the branch. `by` has handles of people who edited the path. They
        are added to the handles that are already known."""
        sealed = self._sealed.get(row.path)
        before = self._unsealed.pop(row.path, None)
        differs = sealed is not None if row.kind == "gone" else row.digest != sealed
        if differs:
            names = [*(before.by if before else ()), *(terminal_safe(handle) for handle in by if handle)]
            self._unsealed[row.path] = Unsealed(
                row.path,
                row.kind,
                row.gen,
                row.ver,
                row.digest,
                row.size,
                sealed is None,
                list(dict.fromkeys(names)),
            )
        if self._news is not None and (differs or before is not None):
            self._news.add(row.path)

    def _tell(self) -> None:
        """Report to the client what has changed since the last report."""
        if self._news is None:
            paths = sorted(self._unsealed.values(), key=lambda row: row.path)
            self._say(
                BranchEvent("frontier", head=self._head, branch_id=self._branch_id, paths=paths[:AT_ONCE])
            )
            for start in range(AT_ONCE, len(paths), AT_ONCE):
                self._say(BranchEvent("changed", paths=paths[start : start + AT_ONCE]))
        elif self._news:
            named = sorted(self._news)
            for start in range(0, len(named), AT_ONCE):
                part = named[start : start + AT_ONCE]
                changed = [self._unsealed[path] for path in part if path in self._unsealed]
                same = [path for path in part if path not in self._unsealed]
                self._say(BranchEvent("changed", paths=changed, same=same))
        if self._moved:
            self._say(BranchEvent("people", people=list(self._people.values())[:AT_ONCE]))
        if self._news is None or self._news or self._moved:
            self._reported_at = time.monotonic()
        self._news, self._moved = set(), False
