"""One watched folder: a thread that owns it round after round."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from localstore.agent.talk import Folder, Light, Person, Said
from localstore.core.errors import Cancelled, Forbidden, NotFound, ServerUnreachable, SvcError, Unauthorized
from localstore.core.lane.update import LiveUpdate
from localstore.core.model.live import UpdateAnswers
from localstore.core.model.sync import Answers, Event, Gap, Live, Opened, People, Refused
from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy
from localstore.live.frames import Arrived
from localstore.live.rounds import Done, Rounds
from localstore.live.saves import Saves
from localstore.sync.owning import Rounds as Owning
from localstore.sync.transfer.send import batch_of
from localstore.sync.working_copy import WorkingCopy
from svc.agent.line import Heard, Line, Place
from svc.agent.saves import Ears
from svc.flows.executable import mark, marking
from svc.flows.place.folder import naming_link, rounds
from svc.flows.place.where import Where
from svc.flows.pull import pull
from svc.http.bounds import Cancel, Deadline, within

ROUND = 0.2  # seconds that one round takes, if what it does can be divided
AT_ONCE = 100  # saves of one step
REQUEST_SECONDS = 60.0  # for one round's requests
LOOK = 0.02  # seconds between two looks at a file that a program has open
AGAIN = 5.0  # seconds before a round that failed is tried again
ANSWER_SECONDS = 15.0  # for the answer to updates; then they go by request
HEADS = ("seal.create", "ref.update", "ref.delete")


class Watched:
    """A folder that the agent watches. `say` hears of events; `gone` is called once it is not watched any
    more, with the reason."""

    def __init__(
        self,
        root: Path,
        channel: int,
        line_of: Callable[[str], Line],
        say: Callable[[Said], None],
        gone: Callable[[Watched, str], None],
        log: Callable[[str], None],
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.root, self.channel = root, channel
        self.detached, self.followers = False, 0
        self.place: Place | None = None
        self._environment, self._line_of, self._say_to = environment, line_of, say
        self._gone, self._log = gone, log
        self._where = self._new_where()
        _, link = self._where.linked_folder()
        self.repo_id, self._link = link.repo_id, link
        self._owning: Owning = rounds(self._where)
        self._work = Rounds()
        self._line: Line | None = None
        self._ears: Ears | None = None
        self._inbox: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._saves = Saves()
        self._whole = True  # a pull and a walk are due
        self._behind = False  # a bootstrap is due
        self._light: Light = "offline"
        self._why, self._since = "connecting", int(time.time())
        self._last_seal: str | None = None
        self._pending_frames: list[Live] = []
        self._answers: list[tuple[list[LiveUpdate], UpdateAnswers]] = []
        self._came: dict[str, Arrived] = {}
        self._skipped: set[tuple[str, str]] = set()
        self._refusing = False  # the relay opens no channel for this folder
        self._waiting: set[str] = set()
        self._look_at = 0.0
        self._out: tuple[int, list[LiveUpdate], float] | None = None  # what was sent over the socket
        self._flying = 0
        self._not_before = 0.0  # of the next round, after one that failed
        self._walk_at = 0.0
        self._trouble = ""
        self._people: dict[str, Person] = {}
        self._turn: str | None = None
        self._here: tuple[str, int] | None = None
        self._cancel = Cancel()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"folder {root.name}")
        self._thread.start()

    # --- called from other threads

    def heard(self, message: Heard) -> None:
        self._inbox.put(("heard", message))

    def lit(self, light: Light, why: str) -> None:
        self._inbox.put(("lit", (light, why)))

    def turn(self, turn: str | None) -> None:
        """What an agent calls the turn in which this folder is edited from now on."""
        self._inbox.put(("turn", turn))

    def stop(self) -> None:
        """Watch this folder no more."""
        self._stopping = True
        self._cancel.cancel()
        self._inbox.put(("stop", "told to end"))

    def say_ended(self, why: str) -> None:
        self._say("ended", detail=why)

    def join(self, seconds: float) -> None:
        self._thread.join(seconds)

    def state(self) -> Folder:
        return Folder(
            folder=str(self.root),
            repo=self._link.repo,
            branch=self._link.branch,
            server=self._link.server,
            light=self._light,
            since=self._since,
            why=self._trouble or self._why,
            queued=self._flying,
            detached=self.detached,
            followers=self.followers,
            walks=self._ears.walks if self._ears else False,
            people=list(self._people.values()),
        )

    # --- the thread

    def _run(self) -> None:
        why = "told to end"
        try:
            record = self._where.home.record_of(self.root, self.repo_id)
            self._ears = Ears(self.root, record.resolve(), self._put, self._ended, self._log)
            self._walk_at = time.monotonic() + self._ears.walk_seconds
            self._line = self._line_of(self._link.server)
            self._line.join(self)
            why = self._loop()
        except Exception as error:  # a fault of ours ends this folder, not the others
            self._log(f"{self.root}: {type(error).__name__}: {error}")
            why = f"something broke inside svc ({type(error).__name__}: {error})"
        finally:
            if self._line is not None:
                self._line.leave(self)
            if self._ears is not None:
                self._ears.close()
            self._work.close()
            self._owning.close()
            self._gone(self, why)

    def _put(self, what: str, path: str) -> None:
        self._inbox.put((what, (path, time.monotonic())))

    def _ended(self, why: str) -> None:
        self._inbox.put(("stop", why))

    def _loop(self) -> str:
        while True:
            ended = self._listen(self._pause())
            if ended is not None:
                return ended
            if time.monotonic() < self._not_before or not self._due():
                continue
            try:
                with naming_link(self._link), within(self._cancel, Deadline(REQUEST_SECONDS)):
                    self._round()
                    self._post()
                self._mend()
            except Cancelled:
                continue
            except SvcError as error:
                self._failed(error)

    def _pause(self) -> float | None:
        """Seconds until something is due; None: until somebody says something."""
        now = time.monotonic()
        moments = [self._walk_at, *([self._look_at] if self._waiting else [])]
        due = self._saves.next_due()
        if due is not None:
            moments.append(due)
        if self._out is not None:
            moments.append(self._out[2])
        if self._due():
            moments.append(self._not_before)
        return max(0.0, min(moments) - now)

    def _listen(self, seconds: float | None) -> str | None:
        """Take in what others say, waiting for the first of it. Returns why the folder is to be left."""
        try:
            item = self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                what, value = item
                if what == "stop":
                    return str(value)
                getattr(self, f"_on_{what}")(value)
                item = self._inbox.get_nowait()
        except queue.Empty:
            pass
        now = time.monotonic()
        if now >= self._look_at:
            self._waiting = set()
        if now >= self._walk_at and self._ears is not None:
            self._walk_at = now + self._ears.walk_seconds
            self._saves.changed_below("", now - 1)
        if self._out is not None and now >= self._out[2]:
            self._out = None  # the socket swallowed them; the same bytes go again
            self._log(f"{self.root}: no answer to updates in {ANSWER_SECONDS:g} s")
        return None

    def _due(self) -> bool:
        """Whether a round has something to do."""
        due = self._saves.next_due()
        if due is not None and due <= time.monotonic():
            return True
        if self._light == "offline":
            return False
        if self._answers or self._pending_frames or self._whole or self._behind:
            return True
        return bool(self._work.frames.paths - self._waiting) or self._unsent()

    def _unsent(self) -> bool:
        return self._flying > 0 and self._out is None

    # --- what others say

    def _on_closed(self, value: tuple[str, float]) -> None:
        self._saves.closed(*value)

    def _on_written(self, value: tuple[str, float]) -> None:
        self._saves.written(*value)

    def _on_vanished(self, value: tuple[str, float]) -> None:
        self._saves.vanished(*value)

    def _on_below(self, value: tuple[str, float]) -> None:
        self._saves.changed_below(*value)

    def _on_turn(self, turn: str | None) -> None:
        self._turn = turn

    def _on_lit(self, value: tuple[Light, str]) -> None:
        light, why = value
        self._out = None  # what was sent over a socket that is gone goes again
        if light == self._light and why == self._why:
            return
        if light != self._light:
            self._since = int(time.time())
            self._not_before = 0.0
            if light == "offline":
                self._people.clear()
            else:
                self._behind = self._behind or self.place is None
        self._light, self._why = light, why
        self._say("light", state=light, detail=terminal_safe(why))

    def _on_heard(self, message: Heard) -> None:
        match message:
            case Live():
                self._pending_frames.append(message)
            case Gap():
                self._behind = True
            case Opened():
                self._people.clear()
                if message.head != self._last_seal:
                    self._whole = True
            case Answers():
                if self._out is not None and self._out[0] == message.id:
                    self._answers.append((self._out[1], message.answers))
                    self._out = None
            case Refused():
                self._refused(message)
            case People():
                self._met(message)
            case Event():
                self._whole = self._whole or self._concerns(message)
            case _:  # Resync, Hidden: see how it stands
                self._whole = True

    def _concerns(self, event: Event) -> bool:
        """Whether the branch has another head, or what this folder may do has changed."""
        if event.kind in HEADS:
            branch = event.data.get("branch", event.data.get("name"))
            return branch == self._link.branch and event.data.get("head") != self._last_seal
        return event.kind.startswith(("repo.", "access.", "protection."))

    def _refused(self, message: Refused) -> None:
        if message.id is None:
            self.place, self._refusing = None, True
            self._tell_trouble(terminal_safe(message.detail))
            self._whole = True
        elif self._out is not None and self._out[0] == message.id:
            self._out = None
            self._not_before = time.monotonic() + max(1.0, float(message.retry_after))
            self._tell_trouble(terminal_safe(message.detail))

    def _met(self, message: People) -> None:
        for one in message.here:
            known = self._people.get(one.conn)
            now = Person(
                terminal_safe(one.who),
                terminal_safe(one.device),
                one.kind,
                terminal_safe(one.path),
                one.line,
                one.state,
            )
            self._people[one.conn] = now
            if known is None or known.path != now.path:
                self._said_of(now, gone=False)
        for conn in message.gone:
            left = self._people.pop(conn, None)
            if left is not None:
                self._said_of(left, gone=True)

    def _said_of(self, one: Person, gone: bool) -> None:
        self._say(
            "person",
            by=one.who,
            device=one.device,
            agent=one.kind == "agent",
            path=one.path,
            line=one.line,
            gone=gone,
            state=one.state,
        )

    # --- rounds

    def _round(self) -> None:
        """Own the folder for a while, and do what is due."""
        until = time.monotonic() + ROUND
        with self._owning.round() as copy:
            self._link = copy.repo
            self._work.begin(copy, self._turn)
            while self._step(copy):
                if time.monotonic() >= until or self._owning.wanted():
                    break
            self._work.finish(copy)
            self._flying = len(copy.db.flight_numbers())
            self._waiting = set(self._work.frames.paths)  # for answers, and for programs that write
            self._look_at = time.monotonic() + (
                LOOK if self._waiting - copy.db.flight_kinds().keys() else AGAIN
            )
            self._place_now(copy)

    def _step(self, copy: WorkingCopy) -> bool:
        """Do one thing. Returns False once nothing is left to do."""
        if self._answers:
            self._record(copy, *self._answers.pop(0))
            return True
        if self._pending_frames:
            self._store(copy, self._pending_frames.pop(0))
            return True
        if self._whole and self._light != "offline":
            self._pull(copy)
            return True
        if self._behind and self._light != "offline":
            self._catch_up(copy)
            return True
        now = time.monotonic()
        paths, below = self._saves.take(now, lambda path: _emptied(copy, path), AT_ONCE)
        if paths or below:
            if below:
                self._tell(copy, self._work.saved_below(copy, below))
            if paths:
                self._tell(copy, self._work.saved(copy, paths))
                self._here = (paths[-1], 0)
            return True
        if self._work.frames.paths and self._light != "offline":
            return self._bring(copy)
        return False

    def _pull(self, copy: WorkingCopy) -> None:
        """A pull and a walk: at the beginning, and after a seal."""
        self._whole = False
        try:
            before = copy.last_seal
            done = pull(copy, "merge")
        except BaseException:
            self._whole = True
            raise
        self._work.frames.forget()
        self._last_seal = copy.last_seal
        for path in done.changed:
            who = (done.live.get(path) or [""])[0]
            self._say("came", path=terminal_safe(path), by=who, gone=path not in copy.entries)
        for path, by in done.merged.items():
            self._say("merged", path=terminal_safe(path), by=by or "")
        for one in done.conflicts:
            self._say(
                "conflict", path=terminal_safe(one.path), kept_as=terminal_safe(one.kept_as), by=one.by or ""
            )
        if done.seal != before and done.seal is not None:
            self._say("seal", seal=done.seal, by=", ".join(copy.sealed_by))
        copy.begin_report()
        self._behind = False
        self._tell(copy, self._work.saved_below(copy, [""]))

    def _catch_up(self, copy: WorkingCopy) -> None:
        self._behind = False
        if copy.key is None:
            self._whole = True
            return
        try:
            connected = self._work.bootstrap(copy)
        except BaseException:
            self._behind = True
            raise
        self._pending_frames.clear()
        if connected.head != copy.last_seal:
            self._whole = True

    def _store(self, copy: WorkingCopy, frame: Live) -> None:
        came = self._work.frames.store(copy, frame)
        if came is None:
            self._behind = True
            return
        for one in came:
            self._came[one.path] = one
            self._work.buffers.authors[one.path] = one.who

    def _bring(self, copy: WorkingCopy) -> bool:
        """Write what came. Returns whether anything was done."""
        before = len(self._work.frames.paths)
        with marking(copy, needed=False):
            done = self._work.bring(copy)
            mark(copy, done.written)
        for path in done.written:
            one = self._came.pop(path, None)
            gone = path not in copy.entries
            if one is None:
                self._say("came", path=terminal_safe(path), gone=gone)
            else:
                agent = one.turn is not None
                self._say("came", path=terminal_safe(path), by=one.who, agent=agent, gone=gone)
        done.written = []
        self._tell(copy, done)
        return len(self._work.frames.paths) < before

    def _record(self, copy: WorkingCopy, updates: list[LiveUpdate], answers: UpdateAnswers) -> None:
        flying = copy.db.flight_numbers()
        sent = self._work.answered(copy, updates, answers)
        kinds = {update.path: update.kind for update in updates if update.n in flying}
        for path in sent.accepted:
            self._say("sent", path=terminal_safe(path), gone=kinds.get(path) == "delete")
        for path, why in sent.refused.items():
            self._say("refused", path=terminal_safe(path), detail=terminal_safe(why))
        self._tell(copy, self._work.again(copy, [*sent.accepted, *sent.costly]))

    def _place_now(self, copy: WorkingCopy) -> None:
        """What the channel is opened with, as the record has it now."""
        if copy.key is None or not copy.replica or copy.repo.shown_seal:
            self.place = None
            return
        since = copy.db.number("since")
        if (
            self.place is not None
            and self.place.replica == copy.replica
            and self.place.branch == copy.repo.branch
        ):
            self.place.since = since
            return
        if self._whole or self._refusing:
            return
        self.place = Place(copy.repo.repo_id, copy.repo.branch, copy.replica, copy.device_id, since)
        if self._line is not None:
            self._line.join(self)

    def _post(self) -> None:
        """Send what is in flight, without owning the folder."""
        if self._light == "offline" or not self._unsent() or self._line is None:
            return
        with self._owning.round() as copy:
            self._work.begin(copy, self._turn)
            updates = self._work.outgoing(copy)
            batch = batch_of(copy, updates)
            transport = copy.transport
        if not updates:
            self._flying = 0
            return
        if self._here is not None and self._light == "live":
            path, line = self._here
            self._here = None
            self._line.here(self.channel, path, line, self._turn)
        number = self._line.send(self.channel, batch) if self._light == "live" else None
        if number is not None:
            self._out = (number, updates, time.monotonic() + ANSWER_SECONDS)
            return
        self._answers.append((updates, transport.updates(batch)))
        self._inbox.put(("nothing", None))

    # --- what happened

    def _on_nothing(self, _: None) -> None:
        """Something is to be done that nobody else says."""

    def _tell(self, copy: WorkingCopy, done: Done) -> None:
        for path in done.merged:
            by = self._work.buffers.authors.get(path, "")
            self._say("merged", path=terminal_safe(path), by=by)
        for clash in done.conflicts:
            kept_as = terminal_safe(clash.kept_as)
            self._say("conflict", path=terminal_safe(clash.path), kept_as=kept_as, by=clash.by or "")
        for kept in done.kept:
            self._say("kept", path=terminal_safe(kept.path), lines=kept.lines, by=", ".join(kept.by))
        for one in done.skipped:
            if (one.path, one.reason) not in self._skipped:
                self._skipped.add((one.path, one.reason))
                self._say("skipped", path=one.path, detail=one.reason)

    def _failed(self, error: SvcError) -> None:
        """A round failed; it is tried again."""
        wait = AGAIN
        if isinstance(error, ServerUnreachable):
            if self._line is not None:
                self._line.retry()
            self._out = None
        elif isinstance(error, Unauthorized):
            self._new_place()
        elif isinstance(error, NotFound | Forbidden):
            wait = 30.0
        elif isinstance(error, CopyBusy):
            wait = 0.0
        self._not_before = time.monotonic() + wait
        self._tell_trouble(error.detail or error.title)

    def _new_place(self) -> None:
        """Read session and link anew."""
        self._owning.close()
        self._where = self._new_where()
        self._owning = rounds(self._where)

    def _new_where(self) -> Where:
        return Where(self._environment, self.root, self._log, command="svc watch")

    def _tell_trouble(self, detail: str) -> None:
        if detail != self._trouble:
            self._trouble = detail
            self._say("trouble", detail=detail)

    def _mend(self) -> None:
        self._trouble = ""

    def _say(self, event: str, **members: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._say_to(msgspec.convert({"event": event, "folder": str(self.root), "at": at, **members}, Said))


def _emptied(copy: WorkingCopy, path: str) -> bool:
    """Whether the file is empty now, and svc knows it with content; or a program is writing it."""
    info, entry = copy.files.stat(path), copy.entries.get(path)
    if info is None or entry is None:
        return False
    return (info.st_size == 0 and entry.size > 0) or copy.files.being_written(path)
