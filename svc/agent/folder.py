"""One folder that the agent watches. A thread locks the folder for short rounds of work."""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from localstore.agent.server import Follower
from localstore.agent.talk import Folder, FolderEvent, Light, PersonOnBranch
from localstore.core.errors import Cancelled, Forbidden, NotFound, ServerUnreachable, SvcError, Unauthorized
from localstore.core.model.protection import BranchProtected
from localstore.core.model.sync import Answers, Event, Gap, Hidden, Live, Opened, People, Refused
from localstore.core.paths import terminal_safe
from localstore.errors import CopyBusy
from svc.agent.editing import OpenTexts
from svc.agent.editor import Editor
from svc.agent.line import ChannelParameters, Heard, Line
from svc.agent.messages import (
    EditorJoined,
    EditorLeft,
    EditorTyped,
    EndTurn,
    FileSaved,
    FolderMessage,
    LightChanged,
    Pause,
    SetTurn,
    Stop,
    Switched,
    receive_messages,
)
from svc.agent.rounds import AGAIN, FolderRounds
from svc.agent.saves import SaveDetector, SaveKind
from svc.agent.state import ANSWER_SECONDS, FolderState
from svc.flows.place.folder import naming_link, rounds
from svc.flows.place.where import Where
from svc.http.bounds import Cancel, Deadline, within

PAUSED: tuple[Light, str] = ("offline", "paused")
REQUEST_SECONDS = 60.0  # for one round's requests
LOOK = 3.0  # seconds between two looks at whether a command wrote to the record
HEADS = ("seal.create", "ref.update", "ref.delete")


class WatchedFolder:
    """A folder that the agent watches. A thread locks the folder for short rounds of work.

    `say` is called with each event. `gone` is called with the reason when the folder is no longer watched.
    The agent's process sets two attributes. `followers` is the number of clients that want the folder
    watched. `detached` is True if the folder stays watched even when no client wants it."""

    def __init__(
        self,
        root: Path,
        channel: int,
        line_of: Callable[[str], Line],
        say: Callable[[FolderEvent], None],
        gone: Callable[[WatchedFolder, str], None],
        log: Callable[[str], None],
        paused: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.detached, self.followers, self.paused = False, 0, paused
        self.root, self.channel = root, channel
        self._log, self._environment = log, environment
        self._line_of, self._gone = line_of, gone
        self._where = self._new_where(root)
        link = self._where.linked_folder()[1]
        self.repo_id = link.repo_id
        self._state = FolderState(root, channel, link, rounds(self._where), say)
        self._texts = OpenTexts(self._state)
        self._rounds = FolderRounds(self._state, self._texts, self._join_line)
        self._inbox: queue.SimpleQueue[FolderMessage] = queue.SimpleQueue()
        self._walk_at = self._look_at = 0.0
        self._cancel, self._requests = Cancel(), Cancel()  # of the folder, of this round
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"folder {root.name}")
        self._thread.start()

    # --- called from other threads

    @property
    def channel_parameters(self) -> ChannelParameters | None:
        """The parameters for opening the folder's channel to the server. None if the user may only read,
        because then there is no channel."""
        return self._state.connection.channel_parameters

    def queue_message(self, message: Heard) -> None:
        """Queue a message from the server, which this folder's thread handles later."""
        self._inbox.put(message)

    def queue_light(self, light: Light, why: str) -> None:
        """Queue the connection's new light (live, polling or offline), which this folder's thread handles
        later. If it is offline, requests in progress are cancelled."""
        self._inbox.put(LightChanged(light, why))
        if light == "offline":
            self._requests.cancel()  # they wait for a line that is dead, and hold the folder

    def turn(self, turn: str | None) -> None:
        """Set the turn (the name of an AI agent's piece of work) with which later edits of this folder are
        recorded."""
        self._inbox.put(SetTurn(turn))

    def end_turn(self, turn: str) -> None:
        """End `turn`, the piece of work that a program such as an AI agent has named. If another turn has
        begun since, nothing happens."""
        self._inbox.put(EndTurn(turn))

    def follow_switch(self) -> None:
        """Read the folder's link again, and pull from the branch that the folder is on now."""
        self._inbox.put(Switched())

    def pause(self, paused: bool) -> None:
        """Stop exchanging edits with others if `paused` is True, else resume. Saves in the folder are
        captured as edits in either case."""
        if paused != self.paused:
            self.paused = paused
            self._inbox.put(Pause(paused))

    def edit(self, editor: Editor) -> None:
        """Open a text for a client. Messages that the client sends later are changes that it typed."""
        self._inbox.put(EditorJoined(editor))

        def hears(line: bytes) -> None:
            editor.lines.put(line)
            self._inbox.put(EditorTyped(editor))

        editor.follower.hears = hears

    def end_edit(self, follower: Follower) -> None:
        """Queue the message that a client which edited a text has disconnected."""
        self._inbox.put(EditorLeft(follower))

    def stop(self) -> None:
        """Stop watching this folder."""
        self._cancel.cancel()
        self._inbox.put(Stop("told to end"))

    def say_ended(self, why: str) -> None:
        """Tell the followers that the folder is no longer watched."""
        self._state.say("ended", detail=why)

    def join(self, seconds: float) -> None:
        """Wait until this folder's thread has ended, but at most `seconds`."""
        self._thread.join(seconds)

    def state(self) -> Folder:
        """Return the folder as the agent's clients see it."""
        return self._state.describe(self.detached, self.followers, self.paused)

    # --- the thread

    def _run(self) -> None:
        state, why = self._state, "told to end"
        try:
            record = self._where.home.record_of(self.root, self.repo_id)
            state.detector = SaveDetector(
                self.root, record.resolve(), self._put_save, self._stop_for, self._log
            )
            self._walk_at = time.monotonic() + state.detector.walk_seconds
            self._follow_pause(self.paused)
            why = self._loop()
            self._texts.store_typed()
        except Exception as error:  # a bug ends this folder, not the others
            at = traceback.extract_tb(error.__traceback__)[-1]
            self._log(f"{self.root}: {type(error).__name__}: {error} ({at.filename}, line {at.lineno})")
            why = f"something broke inside svc ({type(error).__name__}: {error})"
        finally:
            if state.connection.line is not None:
                state.connection.line.leave(self)
            if state.detector is not None:
                state.detector.close()
            state.work.close()
            state.owning.close()
            self._where.close()
            self._gone(self, why)

    def _join_line(self, line: Line) -> None:
        if not self.paused:
            line.join(self)

    def _put_save(self, kind: SaveKind, path: str) -> None:
        self._inbox.put(FileSaved(kind, path, time.monotonic()))

    def _stop_for(self, why: str) -> None:
        self._inbox.put(Stop(why))

    def _loop(self) -> str:
        """Handle messages and run rounds. Returns why the folder must no longer be watched."""
        while True:
            self._requests = Cancel()
            stop = self._take_messages(self._seconds_until_due())
            self._texts.tell_cursor()
            if stop is not None:
                return stop.why
            if not self._is_due():
                continue
            try:
                if time.monotonic() < self._state.due.not_before:
                    self._texts.run()
                    continue
                limits = within(self._cancel, self._requests, Deadline(REQUEST_SECONDS))
                with naming_link(self._state.link), limits:
                    self._rounds.run()
                    self._rounds.post()
                if not self._state.sending.in_flight:
                    self._state.sending.note_unprotected()  # what the branch did not take is sent, or gone
                if not self._state.sending.protected_until:
                    self._state.trouble = ""
            except Cancelled:
                continue
            except SvcError as error:
                self._handle_failure(error)

    def _seconds_until_due(self) -> float:
        """Return how many seconds the thread may wait for a message before the next scheduled work is due."""
        now, state = time.monotonic(), self._state
        moments = [self._walk_at, self._look_at, *self._texts.moments()]
        if state.due.waiting:
            moments.append(state.due.look_at)
        if state.connection.reopen_at:
            moments.append(state.connection.reopen_at)
        due = state.saves.next_due()
        if due is not None:
            moments.append(max(due, state.due.not_before))
        moments += state.sending.moments(now)
        if self._is_due():
            moments.append(state.due.not_before)
        return max(0.0, min(moments) - now)

    def _take_messages(self, seconds: float) -> Stop | None:
        """Handle queued messages, waiting at most `seconds` for the first. Afterwards schedule the work that
        is now due. Returns the message that ends the thread; None if there was no such message."""
        for message in receive_messages(self._inbox, seconds):
            if isinstance(message, Stop):
                return message
            self._handle(message)
        now, state = time.monotonic(), self._state
        if now >= state.due.look_at:
            state.due.waiting = set()
        if 0.0 < state.connection.reopen_at <= now:
            state.connection.reopen_at, state.due.needs_pull = 0.0, True
            state.owning.bind_again()
        if now >= self._walk_at and state.detector is not None:
            self._walk_at = now + state.detector.walk_seconds
            state.saves.record_changed_below("", now - 1)
        if now >= self._look_at:  # a killed command leaves updates that nobody else would send
            self._look_at = now + LOOK
            state.due.needs_pull = state.due.needs_pull or state.owning.is_changed()
        if state.sending.drop_overdue(now):  # lost by the socket
            self._log(f"{self.root}: no answer to updates in {ANSWER_SECONDS:g} s")
        return None

    def _is_due(self) -> bool:
        """Return whether a round has work to do."""
        state = self._state
        due = state.saves.next_due()
        if (due is not None and due <= time.monotonic()) or self._texts.is_due():
            return True
        if state.connection.is_offline:
            return False
        return (
            state.due.needs_server
            or bool(state.work.frames.paths - state.due.waiting)
            or state.sending.is_due
        )

    # --- messages from other threads

    def _handle(self, message: FolderMessage) -> None:
        match message:
            case FileSaved():
                self._handle_save(message)
            case LightChanged(light, why):
                self._follow_light(light, why)
            case Pause(paused):
                self._follow_pause(paused)
            case SetTurn(turn):
                self._state.turn = turn
            case EndTurn(turn):
                if self._state.turn == turn:
                    self._state.turn = None
            case Switched():
                self._state.due.needs_pull = True
            case EditorJoined(editor):
                self._texts.add(editor)
            case EditorTyped(editor):
                self._texts.take_lines(editor)
            case EditorLeft(follower):
                self._texts.drop_follower(follower)
            case _:
                self._handle_of_line(message)

    def _handle_save(self, save: FileSaved) -> None:
        saves = self._state.saves
        match save.kind:
            case "closed":
                self._texts.note_written(save.path)
                saves.record_closed(save.path, save.at)
            case "written":
                self._texts.note_written(save.path)
                saves.record_written(save.path, save.at)
            case "vanished":
                saves.record_vanished(save.path, save.at)
            case "below":
                saves.record_changed_below(save.path, save.at)

    def _follow_pause(self, paused: bool) -> None:
        if paused:
            if self._state.connection.line is not None:
                self._state.connection.line.leave(self)
            self._follow_light(*PAUSED)
        else:
            self._state.connection.line = self._line_of(self._state.link.server)
            self._state.connection.line.join(self)

    def _follow_light(self, light: Light, why: str) -> None:
        state = self._state
        if self.paused:
            light, why = PAUSED
        state.sending.forget_batch()  # sent over a socket that is closed
        before = state.connection.light
        if not state.connection.change_light(light, why):
            return
        if light != before:
            state.due.not_before = 0.0
            if before == "offline":
                state.due.note_server_back()
            elif light != "offline" and state.connection.channel_parameters is None:
                state.due.needs_bootstrap = True
        state.say("light", state=light, detail=terminal_safe(why))

    def _handle_of_line(self, message: Heard | Stop) -> None:
        state = self._state
        match message:
            case Live():
                state.due.pending_frames.append(message)
            case Gap():
                state.due.needs_bootstrap = True
            case Opened():
                state.connection.note_opened()
                state.send_last_position()
                if message.head != state.last_seal:
                    state.due.needs_pull = True
            case Answers():
                updates = state.sending.pop_answered(message.id)
                if updates is not None:
                    state.due.answers.append((updates, message.answers))
                    state.sending.note_unprotected()
            case Refused():
                self._take_refusal(message)
            case People():
                self._take_people(message)
            case Event():
                state.due.needs_pull = self._is_about_folder(message) or state.due.needs_pull
            case _:  # Resync, Hidden: pull
                if isinstance(message, Hidden):
                    state.connection.events_stopped = True
                state.due.needs_pull = True
                state.owning.bind_again()

    def _is_about_folder(self, event: Event) -> bool:
        """Return whether the event concerns this folder. It does if it gives the folder's branch a new newest
        seal. It also does if it changes the repository, who may access it, or the protection of a branch."""
        if event.kind in HEADS:
            branch = event.data.get("branch", event.data.get("name"))
            return branch == self._state.link.branch and event.data.get("head") != self._state.last_seal
        if event.kind.startswith("protection."):
            self._state.sending.try_protected()
        if not event.kind.startswith(("repo.", "access.", "protection.")):
            return False
        self._state.connection.reopen_at = self._state.due.not_before = 0.0  # the folder may have got rights
        self._state.owning.bind_again()
        return True

    def _take_refusal(self, message: Refused) -> None:
        connection, sending = self._state.connection, self._state.sending
        if message.id is None:
            connection.note_refused()
            self._state.due.needs_pull = True
            detail = terminal_safe(message.detail)
            if detail and detail != connection.refusal:  # without one the pull says why
                connection.refusal = detail
                self._say_trouble(detail)
        elif sending.pop_answered(message.id) is not None:
            self._state.due.postpone(max(1.0, float(message.retry_after)))
            if message.code == BranchProtected.code:
                sending.note_protected()
            self._say_trouble(terminal_safe(message.detail))

    def _take_people(self, message: People) -> None:
        for member in message.here:
            before = self._state.connection.people.get(member.conn)
            now = PersonOnBranch(
                terminal_safe(member.who),
                terminal_safe(member.device),
                member.kind,
                terminal_safe(member.path),
                member.line,
                member.state,
                col=member.col,
            )
            self._state.connection.people[member.conn] = now
            if before is None or before.path != now.path:
                self._state.say_person(now, gone=False)
        for conn in message.gone:
            person = self._state.connection.people.pop(conn, None)
            if person is not None:
                self._state.say_person(person, gone=True)
        self._texts.send_people()

    def _handle_failure(self, error: SvcError) -> None:
        """Note the error of a failed round, tell the followers, and set when the next round may begin."""
        wait = AGAIN
        if isinstance(error, ServerUnreachable):
            if self._state.connection.line is not None:
                self._state.connection.line.retry()
            self._state.sending.forget_batch()
        elif isinstance(error, BranchProtected):
            self._state.sending.note_protected()
        elif isinstance(error, Unauthorized):
            self._new_place()
        elif isinstance(error, Forbidden):
            self._state.connection.reopen_at = 0.0
            self._state.owning.bind_again()
        elif isinstance(error, NotFound):
            self._state.connection.reopen_at, wait = 0.0, 30.0
            self._state.owning.bind_again()
        elif isinstance(error, CopyBusy):
            wait = 0.0
        self._state.due.postpone(wait)
        self._say_trouble(error.detail or error.title)

    def _new_place(self) -> None:
        """Read the session and the folder's link to its repository (`.svc/`) again. Either may have
        changed."""
        self._state.owning.close()
        self._where.close()
        self._where = self._new_where(self.root)
        self._state.owning = rounds(self._where)

    def _new_where(self, root: Path) -> Where:
        return Where(self._environment, root, self._log, command="svc watch")

    def _say_trouble(self, detail: str) -> None:
        if detail != self._state.trouble:
            self._state.trouble = detail
            self._state.say("trouble", detail=detail)
            self._texts.notice(detail)
        self._texts.tell_refusal()
