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
from svc.agent.state import FolderState, SentBatch
from svc.flows.common import hidden_words, moved_back_words, update_file_cap
from svc.flows.executable import mark, marking
from svc.flows.pull import pull

ROUND = 0.2  # seconds of a round, if its work can be divided
AT_ONCE = 100  # saves of one step
LOOK = 0.02  # seconds between two checks of a file that a program has open
AGAIN = 5.0  # seconds before a round that failed is tried again
BARRED_SECONDS = 60.0  # until a protected branch, or a channel that was refused, is tried again
LINED_BYTES = 1 << 20  # of a text of which is said in which line it was edited
ANSWER_SECONDS = 15.0  # for the answer to updates; then they are sent by request


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
                state.link, state.reopen_at = copy.repo, 0.0
            work.begin(copy, state.turn)
            self._follow_rights(copy)
            self._follow_file_cap(copy)
            while self._texts.step(copy) or self._step(copy):
                if time.monotonic() >= until or state.owning.is_wanted():
                    break
            work.finish(copy)
            self._texts.end_round(copy)
            state.flying = len(copy.db.flight_numbers())
            state.waiting = set(work.frames.paths)  # for answers, and for programs that write
            looked_at = state.waiting - copy.db.flight_kinds().keys() - work.followed.later.keys()
            state.look_at = time.monotonic() + (LOOK if looked_at else AGAIN)
            self._update_channel(copy)

    def _follow_rights(self, copy: WorkingCopy) -> None:
        """Tell the followers when nothing is sent, because the folder shows a seal or the user may no longer
        write. When that ends, pull, so that what was saved meanwhile is sent."""
        state, before = self._state, self._state.reads_only
        state.reads_only = ""
        if copy.repo.shown_seal:
            state.reads_only = (
                f"what you save waits here: this folder shows the seal {copy.repo.shown_seal[:12]}, which "
                f"never changes; svc switch {copy.repo.branch} returns to the branch"
            )
        elif copy.key is None:
            name = terminal_safe(copy.repo.repo)
            state.reads_only = f"what you save waits here: {name} is archived, or you may only read it"
            state.reopen_at = state.reopen_at or time.monotonic() + BARRED_SECONDS
        if state.reads_only and state.reads_only != before:
            state.say("trouble", detail=state.reads_only)
        elif before and not state.reads_only:
            state.whole = True

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
        state = self._state
        if state.answers:
            self._record(copy, *state.answers.pop(0))
            return True
        if state.pending_frames:
            self._store(copy, state.pending_frames.pop(0))
            return True
        if state.whole and state.light != "offline":
            self._pull(copy)
            return True
        if state.behind and state.light != "offline":
            self._catch_up(copy)
            return True
        if state.returned and state.light != "offline":
            self._withdraw(copy)
            return True
        if state.again and state.light != "offline":
            again, state.again = state.again, set()
            with self._resend_later(again):
                state.tell(copy, state.work.again(copy, sorted(again)))
            return True
        now = time.monotonic()
        paths, below = state.saves.pop_due(now, lambda path: _is_emptied(copy, path), AT_ONCE)
        if paths or below:
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
            state.try_line(now)
            return True
        if state.work.frames.paths and state.light != "offline":
            return self._write_received(copy)
        return False

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
            self._state.again.update(held_paths)
            raise

    def _pull(self, copy: WorkingCopy) -> None:
        """Pull, then scan the whole folder. Needed at the start and after a seal."""
        state = self._state
        state.whole = False
        try:
            before = copy.last_seal
            done = pull(copy, "merge", heard=state.hears)
        except BaseException:
            state.whole = True
            raise
        state.work.frames.forget()
        if copy.moved_back is not None:
            state.say("trouble", detail=f"{moved_back_words(copy)}, and is sent again")
            copy.moved_back = None
        state.last_seal = copy.last_seal
        if done.hidden:
            state.say("trouble", detail=hidden_words(done.hidden))
        for path in done.changed:
            who = (done.live.get(path) or [""])[0]
            state.say("came", path=terminal_safe(path), by=who, gone=path not in copy.entries)
        state.say_merged(done.merged, done.conflicts)
        if done.seal != before and done.seal is not None:
            state.say("seal", seal=done.seal, by=", ".join(copy.sealed_by))
        copy.begin_report()
        state.behind = False
        state.tell(copy, state.work.saved_below(copy, [""], heard=True))
        state.say_skipped(done.skipped)  # after the walk, which knows what the branch keeps because of a file
        state.hears = state.hears_all
        if state.unheard and state.line is not None:
            state.unheard = False
            self._join(state.line)
            state.whole = True  # what happened before it hears again is not reported

    def _catch_up(self, copy: WorkingCopy) -> None:
        state = self._state
        state.behind = False
        if copy.key is None:
            state.whole = True
            return
        try:
            connected = state.work.bootstrap(copy)
        except BaseException:
            state.behind = True
            raise
        state.pending_frames.clear()
        if connected.head != copy.last_seal or connected.moved_back:
            state.whole = True

    def _withdraw(self, copy: WorkingCopy) -> None:
        """Withdraw updates that were made while the relay was unreachable and whose change is no longer in
        the folder. If the folder has a newer change of the same path, that change is sent instead."""
        state = self._state
        state.returned = False
        try:
            with self._resend_later(update.path for update in not_held(copy)):
                done = withdraw(copy)
                again = state.work.again(copy, [*done.taken, *done.arrived])
        except BranchProtected:
            forget_flights(copy)
            state.whole = True
            return
        except BaseException:
            state.returned = True
            raise
        state.tell(copy, again)

    def _store(self, copy: WorkingCopy, frame: Live) -> None:
        came = self._state.work.frames.store(copy, frame)
        if came is None:
            self._state.behind = True
            return
        for change in came:
            self._state.came[change.path] = change
            self._state.work.buffers.authors[change.path] = change.who

    def _write_received(self, copy: WorkingCopy) -> bool:
        """Write the changes that others made to the files of the folder. A change that cannot be written yet
        stays queued. Returns whether fewer changes are queued than before."""
        state = self._state
        before = len(state.work.frames.paths)
        with marking(copy, needed=False):
            with self._resend_later(state.work.frames.paths):
                done = state.work.bring(copy)
            mark(copy, done.written)
        for path in done.written:
            change = state.came.pop(path, None)
            gone = path not in copy.entries
            if change is None:
                state.say("came", path=terminal_safe(path), gone=gone)
            else:
                agent = change.turn is not None
                state.say("came", path=terminal_safe(path), by=change.who, agent=agent, gone=gone)
        done.written = []
        state.tell(copy, done)
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
        the replica or the branch has changed, the channel is opened again."""
        state = self._state
        if copy.key is None or not copy.replica or copy.repo.shown_seal:
            state.channel_parameters = None
            return
        since = copy.db.number("since")
        if (
            state.channel_parameters is not None
            and state.channel_parameters.replica == copy.replica
            and state.channel_parameters.branch == copy.repo.branch
        ):
            state.channel_parameters.since = since
            return
        if state.whole or state.reopen_at:
            return
        state.channel_parameters = ChannelParameters(
            copy.repo.repo_id, copy.repo.branch, copy.replica, copy.device_id, since
        )
        if state.line is not None:
            self._join(state.line)

    def post(self) -> None:
        """Send the queued updates to the relay, over the socket if it is open, else by a request. The folder
        is not locked while a request runs."""
        state = self._state
        if state.light == "offline" or not state.unsent or state.line is None:
            return
        state.send_last_position()  # first: a dead line shows on the socket
        with state.owning.round() as copy:
            state.work.begin(copy, state.turn)
            updates = state.work.outgoing(copy)
            batch = batch_of(copy, updates)
            transport = copy.transport
        if not updates:
            state.flying = 0
            return
        number = state.line.send(state.channel, batch) if state.light == "live" else None
        if number is not None:
            state.out = SentBatch(number, updates, time.monotonic() + ANSWER_SECONDS)
            return
        state.answers.append((updates, transport.updates(batch)))
        state.barred = 0.0


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
