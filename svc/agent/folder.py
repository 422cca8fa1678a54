"""One watched folder: a thread that owns it round after round."""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from localstore.agent.talk import Folder, Light, Person, Said
from localstore.core.errors import Cancelled, Forbidden, NotFound, ServerUnreachable, SvcError, Unauthorized
from localstore.core.model.collaboration.protection import BranchProtected
from localstore.core.model.sync import Answers, Event, Gap, Live, Opened, People, Refused
from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy
from svc.agent.editing import Editing
from svc.agent.line import Heard, Line
from svc.agent.saves import Ears
from svc.agent.steps import AGAIN, ANSWER_SECONDS, BARRED_SECONDS
from svc.flows.place.folder import naming_link, rounds
from svc.flows.place.where import Where
from svc.http.bounds import Cancel, Deadline, within

PAUSED: tuple[Light, str] = ("offline", "paused")
REQUEST_SECONDS = 60.0  # for one round's requests
HEADS = ("seal.create", "ref.update", "ref.delete")


class Watched(Editing):
    """A folder that the agent watches. `say` is called with events; `gone` once it is no longer watched, with
    the reason."""

    def __init__(
        self,
        root: Path,
        channel: int,
        line_of: Callable[[str], Line],
        say: Callable[[Said], None],
        gone: Callable[[Watched, str], None],
        log: Callable[[str], None],
        paused: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.detached, self.followers, self.paused = False, 0, paused
        self._log, self._environment = log, environment
        self._where = self._new_where(root)
        super().__init__(root, channel, self._where.linked_folder()[1], rounds(self._where), say)
        self._line_of, self._gone = line_of, gone
        self._ears: Ears | None = None
        self._why, self._since = "connecting", int(time.time())
        self._walk_at = 0.0
        self._trouble = ""
        self._cancel, self._requests = Cancel(), Cancel()  # of the folder, of this round
        self._stopping = False
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"folder {root.name}")
        self._thread.start()

    # --- called from other threads

    def heard(self, message: Heard) -> None:
        self._inbox.put(("heard", message))

    def lit(self, light: Light, why: str) -> None:
        self._inbox.put(("lit", (light, why)))
        if light == "offline":
            self._requests.cancel()  # they wait for a line that is dead, and hold the folder

    def turn(self, turn: str | None) -> None:
        """Set the name of the agent turn in which this folder is edited from now on."""
        self._inbox.put(("turn", turn))

    def end_turn(self, turn: str) -> None:
        """End this turn, unless another one has begun since."""
        self._inbox.put(("turn_end", turn))

    def pause(self, paused: bool) -> None:
        """Stop sending edits and fetching those of others, or resume. Saves are still captured."""
        if paused != self.paused:
            self.paused = paused
            self._inbox.put(("pause", paused))

    def stop(self) -> None:
        """Stop watching this folder."""
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
            why=self._trouble or self._work.removals.words or self._why,
            queued=self._flying + len(self._work.removals.held),
            detached=self.detached,
            followers=self.followers,
            walks=self._ears.walks if self._ears else False,
            paused=self.paused,
            people=list(self._people.values()),
        )

    # --- the thread

    def _run(self) -> None:
        why = "told to end"
        try:
            record = self._where.home.record_of(self.root, self.repo_id)
            self._ears = Ears(self.root, record.resolve(), self._put, self._stop_for, self._log)
            self._walk_at = time.monotonic() + self._ears.walk_seconds
            self._on_pause(self.paused)
            why = self._loop()
            self._keep_last()
        except Exception as error:  # a bug ends this folder, not the others
            at = traceback.extract_tb(error.__traceback__)[-1]
            self._log(f"{self.root}: {type(error).__name__}: {error} ({at.filename}, line {at.lineno})")
            why = f"something broke inside svc ({type(error).__name__}: {error})"
        finally:
            if self._line is not None:
                self._line.leave(self)
            if self._ears is not None:
                self._ears.close()
            self._work.close()
            self._owning.close()
            self._where.close()
            self._gone(self, why)

    @property
    def _complete(self) -> bool:
        return self._ears is not None and not self._ears.walks

    def _joins(self, line: Line) -> None:
        if not self.paused:
            line.join(self)

    def _put(self, what: str, path: str) -> None:
        self._inbox.put((what, (path, time.monotonic())))

    def _stop_for(self, why: str) -> None:
        self._inbox.put(("stop", why))

    def _loop(self) -> str:
        while True:
            self._requests = Cancel()
            ended = self._listen(self._pause())
            self._tell_where()
            if ended is not None:
                return ended
            if not self._due():
                continue
            try:
                if time.monotonic() < self._not_before:
                    self._edit_round()
                    continue
                with naming_link(self._link), within(self._cancel, self._requests, Deadline(REQUEST_SECONDS)):
                    self._round()
                    self._post()
                self._mend()
            except Cancelled:
                continue
            except SvcError as error:
                self._handle_failure(error)

    def _pause(self) -> float | None:
        """Seconds until there is work; None: wait for a message."""
        now = time.monotonic()
        moments = [self._walk_at, *([self._look_at] if self._waiting else []), *self._edit_moments()]
        due = self._saves.next_due()
        if due is not None:
            moments.append(due)
        if self._out is not None:
            moments.append(self._out[2])
        if self._barred > now and self._flying:
            moments.append(self._barred)
        if self._due():
            moments.append(self._not_before)
        return max(0.0, min(moments) - now)

    def _listen(self, seconds: float | None) -> str | None:
        """Handle queued messages, waiting for the first. Returns the reason if the folder must no longer be
        watched."""
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
            self._out = None  # lost by the socket: send the same bytes again
            self._log(f"{self.root}: no answer to updates in {ANSWER_SECONDS:g} s")
        return None

    def _due(self) -> bool:
        """Whether there is work for a round."""
        due = self._saves.next_due()
        if (due is not None and due <= time.monotonic()) or self._edit_due():
            return True
        if self._light == "offline":
            return False
        if self._answers or self._pending_frames or self._whole or self._behind or self._returned:
            return True
        return bool(self._again or self._work.frames.paths - self._waiting) or self.unsent

    # --- messages from other threads

    def _on_vanished(self, value: tuple[str, float]) -> None:
        self._saves.vanished(*value)

    def _on_below(self, value: tuple[str, float]) -> None:
        self._saves.changed_below(*value)

    def _on_turn(self, turn: str | None) -> None:
        self._turn = turn

    def _on_turn_end(self, turn: str) -> None:
        if self._turn == turn:
            self._turn = None

    def _on_pause(self, paused: bool) -> None:
        if paused:
            if self._line is not None:
                self._line.leave(self)
            self._on_lit(PAUSED)
        else:
            self._line = self._line_of(self._link.server)
            self._line.join(self)

    def _on_lit(self, value: tuple[Light, str]) -> None:
        light, why = PAUSED if self.paused else value
        self._out = None  # sent over a socket that is closed: send again
        if light == self._light and why == self._why:
            return
        self._relit = True
        if light != self._light:
            self._since = int(time.time())
            self._not_before = 0.0
            if light == "offline":
                self._people.clear()
            else:
                returned = self._light == "offline"  # the branch may have moved back meanwhile
                self._behind = self._behind or returned or self.place is None
                self._returned = self._returned or returned
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
                self._tell_here()
                if message.head != self._last_seal:
                    self._whole = True
            case Answers():
                if self._out is not None and self._out[0] == message.id:
                    self._answers.append((self._out[1], message.answers))
                    self._out, self._barred = None, 0.0
            case Refused():
                self._take_refusal(message)
            case People():
                self._take_people(message)
            case Event():
                self._whole = self._whole or self._is_about_folder(message)
            case _:  # Resync, Hidden: pull
                self._whole = True

    def _is_about_folder(self, event: Event) -> bool:
        """Whether the event changes the head of the branch or the rights of this folder."""
        if event.kind in HEADS:
            branch = event.data.get("branch", event.data.get("name"))
            return branch == self._link.branch and event.data.get("head") != self._last_seal
        if event.kind.startswith("protection."):
            self._barred = min(self._barred, time.monotonic())
        return event.kind.startswith(("repo.", "access.", "protection."))

    def _take_refusal(self, message: Refused) -> None:
        if message.id is None:
            self.place, self._refusing = None, True
            self._tell_trouble(terminal_safe(message.detail))
            self._whole = True
        elif self._out is not None and self._out[0] == message.id:
            self._out = None
            self._not_before = time.monotonic() + max(1.0, float(message.retry_after))
            if message.code == BranchProtected.code:
                self._barred = time.monotonic() + BARRED_SECONDS
            self._tell_trouble(terminal_safe(message.detail))

    def _take_people(self, message: People) -> None:
        for member in message.here:
            before = self._people.get(member.conn)
            now = Person(
                terminal_safe(member.who),
                terminal_safe(member.device),
                member.kind,
                terminal_safe(member.path),
                member.line,
                member.state,
                col=member.col,
            )
            self._people[member.conn] = now
            if before is None or before.path != now.path:
                self._said_of(now, gone=False)
        for conn in message.gone:
            person = self._people.pop(conn, None)
            if person is not None:
                self._said_of(person, gone=True)
        self._people_moved()

    def _said_of(self, person: Person, gone: bool) -> None:
        self._say(
            "person",
            by=person.who,
            device=person.device,
            agent=person.kind == "agent",
            path=person.path,
            line=person.line,
            gone=gone,
            state=person.state,
        )

    def _handle_failure(self, error: SvcError) -> None:
        """Handle the failure of a round, which is repeated."""
        wait = AGAIN
        if isinstance(error, ServerUnreachable):
            if self._line is not None:
                self._line.retry()
            self._out = None
        elif isinstance(error, BranchProtected):
            self._barred = time.monotonic() + BARRED_SECONDS
        elif isinstance(error, Unauthorized):
            self._new_place()
        elif isinstance(error, NotFound | Forbidden):
            wait = 30.0
        elif isinstance(error, CopyBusy):
            wait = 0.0
        self._not_before = time.monotonic() + wait
        self._tell_trouble(error.detail or error.title)

    def _new_place(self) -> None:
        """Read session and link again."""
        self._owning.close()
        self._where.close()
        self._where = self._new_where(self.root)
        self._owning = rounds(self._where)

    def _new_where(self, root: Path) -> Where:
        return Where(self._environment, root, self._log, command="svc watch")

    def _tell_trouble(self, detail: str) -> None:
        if detail != self._trouble:
            self._trouble = detail
            self._say("trouble", detail=detail)
            self._notice(detail)

    def _mend(self) -> None:
        if not self._barred:
            self._trouble = ""
