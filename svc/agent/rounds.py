"""The rounds of a watched folder: short periods in which the agent has the folder locked and works on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from localstore.core.errors import SvcError
from localstore.core.lane.update import LiveUpdate
from localstore.core.model.live import UpdateAnswers
from localstore.core.model.protection import BranchProtected
from localstore.core.model.sync import Live
from localstore.core.names import MANIFEST
from localstore.core.paths import terminal_safe
from localstore.core.storage.chunks import file_cap
from localstore.folder.walk_rules import is_utf8
from localstore.sync.transfer.send import batch_of
from localstore.sync.withdraw import forget_flights, not_held, withdraw
from localstore.sync.working_copy import WorkingCopy
from svc.agent.editing import OpenTexts
from svc.agent.line import ChannelParameters, Line
from svc.agent.state import BARRED_SECONDS, FolderState
from svc.flows.common import hidden_words, moved_back_words, update_file_cap
from svc.flows.executable import mark, marking
from svc.flows.pull import pull

ROUND = 0.2  # seconds of a round, if its work can be divided
AT_ONCE = 100  # saves of one step
LOOK = 0.02  # seconds between two checks of a file that a program has open
AGAIN = 5.0  # seconds before a round that failed is tried again
LINED_BYTES = 1 << 20  # of a text of which is said in which line it was edited


class FolderRounds:
    """Does the work of a watched folder in rounds. In each round the agent has the folder locked, for at most
    ROUND seconds. `svc.agent.folder.WatchedFolder` starts the rounds."""

    def __init__(self, state: FolderState, texts: OpenTexts, join: Callable[[Line], None]) -> None:
        """`join` is called with the connection to the server when the folder's channel must be opened anew,
        because its parameters (`ChannelParameters`) have changed."""
        self._state, self._texts, self._join = state, texts, join
        self._cap_from: tuple[object, ...] = ()  # what the size cap of a file was computed from

    def run(self) -> None:
        """Do one round: lock the folder, then handle what is queued (answers and changes from the server, and
        saves). The round ends when nothing is left, when ROUND seconds have passed, or when another process
        wants the lock."""
        state = self._state
        until, work = time.monotonic() + ROUND, state.work
        with state.owning.round() as copy:
            if copy.repo != state.link:
                if copy.repo.branch != state.link.branch:
                    state.sending.note_unprotected()
                    state.trouble = ""
                state.link, state.connection.reopen_at = copy.repo, 0.0
            work.begin(copy, state.turn)
            if state.owning.pop_changed():
                # A command may have recorded what was saved or received, and have ended before it was sent or
                # written. The agent looks only at what it hears of itself, and would never do it.
                state.due.needs_pull = True
            self._follow_rights(copy)
            self._follow_file_cap(copy)
            while self._texts.step(copy) or self._step(copy):
                if time.monotonic() >= until or state.owning.is_wanted():
                    break
            work.finish(copy)
            self._texts.end_round(copy)
            state.sending.in_flight = len(copy.db.flight_numbers())
            waiting = set(work.frames.paths)  # for answers, and for programs that write
            looked_at = waiting - copy.db.flight_kinds().keys() - work.followed.later.keys()
            state.due.wait_for(waiting, LOOK if looked_at else AGAIN)
            self._update_channel(copy)

    def _follow_rights(self, copy: WorkingCopy) -> None:
        """Tell the followers when nothing is sent, because the folder shows a seal or the user may no longer
        write. When that ends, pull, so that what was saved meanwhile is sent."""
        state, connection = self._state, self._state.connection
        before = connection.reads_only
        connection.reads_only = ""
        if copy.repo.shown_seal:
            connection.reads_only = (
                f"what you save waits here: this folder shows the seal {copy.repo.shown_seal[:12]}, which "
                f"never changes; svc switch {copy.repo.branch} returns to the branch"
            )
        elif copy.key is None:
            name = terminal_safe(copy.repo.repo)
            connection.reads_only = f"what you save waits here: {name} is archived, or you may only read it"
            connection.reopen_at = connection.reopen_at or time.monotonic() + BARRED_SECONDS
        if connection.reads_only and connection.reads_only != before:
            state.say("trouble", detail=connection.reads_only)
        elif before and not connection.reads_only:
            state.due.needs_pull = True

    def _follow_file_cap(self, copy: WorkingCopy) -> None:
        """Compute the largest allowed size of a file again, if the repository's kind or `.svc.yaml` has
        changed. If the size grew, files that were left out are handled as if they had just been saved. A
        malformed `.svc.yaml` never raises the size."""
        info = copy.files.stat(MANIFEST)
        version = None if info is None else (info.st_ino, info.st_size, info.st_mtime_ns)
        now = (copy, copy.repo_kind, version)
        if now == self._cap_from:
            return
        before = copy.file_cap
        try:
            update_file_cap(copy)
        except SvcError:
            copy.file_cap = file_cap(copy.repo_kind)
        if self._cap_from and copy.file_cap > before:
            self._state.saves.record_changed_below("", time.monotonic())
        self._cap_from = now

    def _step(self, copy: WorkingCopy) -> bool:
        """Do the next piece of work of this round, such as storing an answer or sending saved files. Returns
        False if there is no work left."""
        state, due, is_online = self._state, self._state.due, not self._state.connection.is_offline
        if due.answers:
            self._record(copy, *due.answers.pop(0))
        elif due.pending_frames:
            self._store(copy, due.pending_frames.pop(0))
        elif due.needs_pull and is_online:
            self._pull(copy)
        elif due.needs_bootstrap and is_online:
            self._catch_up(copy)
        elif due.needs_withdrawal and is_online:
            self._withdraw(copy)
        elif due.paths_to_resend and is_online:
            paths = due.pop_paths_to_resend()
            with self._resend_later(paths):
                state.tell(copy, state.work.again(copy, paths))
        elif not self._capture_saves(copy):
            return is_online and bool(state.work.frames.paths) and self._write_received(copy)
        return True

    def _capture_saves(self, copy: WorkingCopy) -> bool:
        """Capture the saves that are due as edits. Returns False if none is due."""
        state = self._state
        now = time.monotonic()
        paths, below = state.saves.pop_due(now, lambda path: _is_emptied(copy, path), AT_ONCE)
        if not paths and not below:
            return False
        with self._requeue_saves(paths, below):
            if below:
                state.tell(copy, state.work.saved_below(copy, below))
            if paths:
                recorded = _last_file(copy, paths)
                before = None if recorded is None else _text_of(copy, recorded)
                state.tell(copy, state.work.capture_saved(copy, paths))
                saved = recorded or _last_file(copy, paths)
                if saved is not None:
                    state.last_save = (saved, _line_changed(before, _text_of(copy, saved)))
        state.connection.try_again(now)
        return True

    @contextmanager
    def _requeue_saves(self, paths: Iterable[str], below: Iterable[str]) -> Iterator[None]:
        """A context for handling saves of the files `paths`, and of everything below the folders `below`. If
        an error ends the context, for example because the relay cannot be reached, the saves are queued
        again. No later event would report them a second time."""
        try:
            yield
        except BaseException:
            now = time.monotonic()
            for path in paths:
                self._state.saves.record_closed(path, now)
            for prefix in below:
                self._state.saves.record_changed_below(prefix, now)
            raise

    @contextmanager
    def _resend_later(self, paths: Iterable[str]) -> Iterator[None]:
        """A context in which the files `paths` are sent to the server. If an error ends the context, the
        paths are noted, and the next round sends these files."""
        held_paths = list(paths)
        try:
            yield
        except BaseException:
            self._state.due.paths_to_resend.update(held_paths)
            raise

    def _pull(self, copy: WorkingCopy) -> None:
        """Pull, then scan the whole folder. Needed at the start and after a seal."""
        state = self._state
        state.due.needs_pull = False
        try:
            before = copy.last_seal
            pulled = pull(copy, "merge", heard=state.was_walked)
        except BaseException:
            if copy.hidden:
                state.say("trouble", detail=hidden_words(copy.hidden))
            state.due.needs_pull = True
            raise
        state.work.frames.forget()
        if copy.moved_back is not None:
            state.say("trouble", detail=f"{moved_back_words(copy)}, and is sent again")
            copy.moved_back = None
        state.last_seal = copy.last_seal
        if pulled.hidden:
            state.say("trouble", detail=hidden_words(pulled.hidden))
        for path in pulled.changed:
            who = (pulled.live.get(path) or [""])[0]
            state.say("came", path=terminal_safe(path), by=who, gone=path not in copy.entries)
        state.say_merged(pulled.merged, pulled.conflicts)
        if pulled.seal != before and pulled.seal is not None:
            state.say("seal", seal=pulled.seal, by=", ".join(copy.sealed_by))
        copy.begin_report()
        state.due.needs_bootstrap = False
        state.tell(copy, state.work.saved_below(copy, [""], heard=True))
        state.say_skipped(pulled.skipped)  # after the walk, which knows what the branch keeps for a file
        state.was_walked = state.hears_all
        if state.connection.events_stopped and state.connection.line is not None:
            state.connection.events_stopped = False
            self._join(state.connection.line)
            state.due.needs_pull = True  # what happened before it hears again is not reported

    def _catch_up(self, copy: WorkingCopy) -> None:
        state = self._state
        state.due.needs_bootstrap = False
        if copy.key is None:
            state.due.needs_pull = True
            return
        try:
            connected = state.work.bootstrap(copy)
        except BaseException:
            state.due.needs_bootstrap = True
            raise
        state.due.pending_frames.clear()
        if connected.head != copy.last_seal or connected.moved_back:
            state.due.needs_pull = True

    def _withdraw(self, copy: WorkingCopy) -> None:
        """Withdraw updates that were made while the relay was unreachable and whose change is no longer in
        the folder. If the folder has a newer change of the same path, that change is sent instead."""
        state = self._state
        state.due.needs_withdrawal = False
        try:
            with self._resend_later(update.path for update in not_held(copy)):
                withdrawn = withdraw(copy)
                again = state.work.again(copy, [*withdrawn.taken, *withdrawn.arrived])
        except BranchProtected:
            forget_flights(copy)
            state.due.needs_pull = True
            return
        except BaseException:
            state.due.needs_withdrawal = True
            raise
        state.tell(copy, again)

    def _store(self, copy: WorkingCopy, frame: Live) -> None:
        changes = self._state.work.frames.store(copy, frame)
        if changes is None:
            self._state.due.needs_bootstrap = True
            return
        for change in changes:
            self._state.arrived[change.path] = change
            self._state.work.buffers.authors[change.path] = change.who

    def _write_received(self, copy: WorkingCopy) -> bool:
        """Write the changes that others made to the files of the folder. A change that cannot be written yet
        stays queued. Returns whether fewer changes are queued than before."""
        state = self._state
        before = len(state.work.frames.paths)
        with marking(copy, needed=False):
            with self._resend_later(state.work.frames.paths):
                result = state.work.bring(copy)
            mark(copy, result.written)
        for path in result.written:
            change = state.arrived.pop(path, None)
            gone = path not in copy.entries
            if change is None:
                state.say("came", path=terminal_safe(path), gone=gone)
            else:
                agent = change.turn is not None
                state.say("came", path=terminal_safe(path), by=change.who, agent=agent, gone=gone)
        result.written = []
        state.tell(copy, result)
        return len(state.work.frames.paths) < before

    def _record(self, copy: WorkingCopy, updates: list[LiveUpdate], answers: UpdateAnswers) -> None:
        state = self._state
        flying = copy.db.flight_numbers()
        with self._resend_later(update.path for update in updates):
            sent = state.work.record_answers(copy, updates, answers)
            again = state.work.again(copy, [*sent.accepted, *sent.costly])
        kinds = {update.path: update.kind for update in updates if update.n in flying}
        for path in sent.accepted:
            state.say("sent", path=terminal_safe(path), gone=kinds.get(path) == "delete")
        for path, why in sent.refused.items():
            state.say("refused", path=terminal_safe(path), detail=terminal_safe(why))
        state.tell(copy, again)

    def _update_channel(self, copy: WorkingCopy) -> None:
        """Compute the parameters for opening the folder's channel, and store them as `channel_parameters`. If
        the replica or the branch has changed, the channel is opened again. While a pull is due, or the server
        has refused the channel, the old parameters stay."""
        connection = self._state.connection
        if copy.key is None or not copy.replica or copy.repo.shown_seal:
            connection.channel_parameters = None
            return
        since = copy.db.number("since")
        current = connection.channel_parameters
        if current is not None and current.replica == copy.replica and current.branch == copy.repo.branch:
            current.since = since
            return
        if self._state.due.needs_pull or connection.reopen_at:
            return
        connection.channel_parameters = ChannelParameters(
            copy.repo.repo_id, copy.repo.branch, copy.replica, copy.device_id, since
        )
        if connection.line is not None:
            self._join(connection.line)

    def post(self) -> None:
        """Send the queued updates to the relay, over the socket if it is open, else by a request. The folder
        is not locked while a request runs."""
        state, line = self._state, self._state.connection.line
        if state.connection.is_offline or not state.sending.is_due or line is None:
            return
        state.send_last_position()  # first: a dead line shows on the socket
        with state.owning.round() as copy:
            state.work.begin(copy, state.turn)
            updates = state.work.outgoing(copy)
            batch = batch_of(copy, updates)
            transport = copy.transport
        if not updates:
            state.sending.in_flight = 0
            return
        number = line.send(state.channel, batch) if state.connection.light == "live" else None
        if number is not None:
            state.sending.note_sent(number, updates)
            return
        state.due.answers.append((updates, transport.updates(batch)))
        state.sending.note_unprotected()


def _is_emptied(copy: WorkingCopy, path: str) -> bool:
    """Return whether the file may be in the middle of a save: it has become empty, or a program has it open
    for writing."""
    info, entry = copy.files.stat(path), copy.entries.get(path) if is_utf8(path) else None
    if info is None or entry is None:
        return False
    return (info.st_size == 0 and entry.size > 0) or copy.files.being_written(path)


def _last_file(copy: WorkingCopy, paths: Sequence[str]) -> str | None:
    """Return the last of these paths that is a file known to svc (in the record); None if there is none.
    Other paths, such as a program's temporary files, must not be shown to others as the user's position."""
    for path in reversed(paths):
        if is_utf8(path) and path in copy.entries and copy.files.is_file(path):
            return path
    return None


def _text_of(copy: WorkingCopy, path: str) -> bytes | None:
    """Return the text that the file at `path` had when svc last read or wrote it. Returns None if the file is
    not text, or has more than LINED_BYTES bytes."""
    entry = copy.entries.get(path) if is_utf8(path) else None
    if entry is None or entry.kind != "text" or entry.shadow is None or entry.size > LINED_BYTES:
        return None
    return copy.objects.get(entry.shadow)


def _line_changed(before: bytes | None, after: bytes | None) -> int:
    """Return the number, from 1, of the first line in which the texts differ; 0 if a text is missing or they
    are equal."""
    if before is None or after is None or before == after:
        return 0
    same, most = 0, min(len(before), len(after))
    while same < most:  # by halves, because comparing slices costs little
        middle = (same + most + 1) // 2
        if before[same:middle] == after[same:middle]:
            same = middle
        else:
            most = middle - 1
    return after.count(b"\n", 0, same) + 1
