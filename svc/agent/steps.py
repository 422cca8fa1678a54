"""The steps of a watched folder's rounds, and their reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from localstore.agent.talk import Light, Said
from localstore.core.lane.update import LiveUpdate
from localstore.core.model.collaboration.protection import BranchProtected
from localstore.core.model.live import UpdateAnswers
from localstore.core.model.sync import Live
from localstore.core.paths import terminal_safe
from localstore.folder.link import RepoLink
from localstore.folder.walk_rules import is_utf8
from localstore.live.frames import Arrived
from localstore.live.rounds import Done, Rounds
from localstore.live.saves import Saves
from localstore.sync.owning import Rounds as Owning
from localstore.sync.transfer.send import batch_of
from localstore.sync.withdraw import forget_flights, not_held, withdraw
from localstore.sync.working_copy import WorkingCopy
from svc.agent.line import Line, Place
from svc.flows.common import moved_back_words
from svc.flows.executable import mark, marking
from svc.flows.pull import pull

ROUND = 0.2  # seconds of a round, if its work can be divided
AT_ONCE = 100  # saves of one step
LOOK = 0.02  # seconds between two checks of a file that a program has open
TRY_SECONDS = 2.0  # between two tries to connect because of saves
AGAIN = 5.0  # seconds before a round that failed is tried again
BARRED_SECONDS = 60.0  # until a protected branch is tried again
LINED_BYTES = 1 << 20  # of a text of which is said in which line it was edited
ANSWER_SECONDS = 15.0  # for the answer to updates; then they are sent by request


class Steps:
    """The rounds of a watched folder; `svc.agent.folder.Watched` runs them in its thread."""

    def __init__(
        self, root: Path, channel: int, link: RepoLink, owning: Owning, say: Callable[[Said], None]
    ) -> None:
        self.repo_id, self._link, self._say_to = link.repo_id, link, say
        self.root, self.channel = root, channel
        self.place: Place | None = None
        self._owning: Owning = owning
        self._work = Rounds()
        self._line: Line | None = None
        self._saves = Saves()
        self._whole = True  # a pull is due, and a walk the first time
        self._hears = False  # the folder was walked, and what changes is heard of since
        self._behind = False  # a bootstrap is due
        self._returned = False  # the relay was away: what is in flight may not be in the folder any more
        self._light: Light = "offline"
        self._last_seal: str | None = None
        self._pending_frames: list[Live] = []
        self._answers: list[tuple[list[LiveUpdate], UpdateAnswers]] = []
        self._came: dict[str, Arrived] = {}
        self._skipped: set[tuple[str, str]] = set()
        self._held = ""  # what was said of removals that are not sent
        self._refusing = False  # the relay opens no channel for this folder
        self._waiting: set[str] = set()
        self._again: set[str] = set()  # paths whose state may not be in flight, because a round failed
        self._look_at = 0.0
        self._try_at = 0.0  # from when a save makes the line try to connect
        self._out: tuple[int, list[LiveUpdate], float] | None = None  # what was sent over the socket
        self._barred = 0.0  # until when nothing is sent, because the branch is protected; 0.0: it takes edits
        self._flying = 0
        self._turn: str | None = None
        self._here: tuple[str, int] | None = None

    @property
    def _complete(self) -> bool:
        """Whether the reports of changes below the folder are complete."""
        raise NotImplementedError

    @property
    def unsent(self) -> bool:
        """Whether updates are in flight that were not given to the socket yet."""
        return self._flying > 0 and self._out is None and time.monotonic() >= self._barred

    def _round(self) -> None:
        """Own the folder for a moment and do the work that is due."""
        until = time.monotonic() + ROUND
        with self._owning.round() as copy:
            self._link = copy.repo
            self._work.begin(copy, self._turn)
            while self._step(copy):
                if time.monotonic() >= until or self._owning.wanted():
                    break
            self._work.finish(copy)
            self._end_round(copy)
            self._flying = len(copy.db.flight_numbers())
            self._waiting = set(self._work.frames.paths)  # for answers, and for programs that write
            looked_at = self._waiting - copy.db.flight_kinds().keys() - self._work.followed.later.keys()
            self._look_at = time.monotonic() + (LOOK if looked_at else AGAIN)
            self._place_now(copy)

    def _step(self, copy: WorkingCopy) -> bool:
        """Do one piece of work. Returns False when nothing is left."""
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
        if self._returned and self._light != "offline":
            self._take_back(copy)
            return True
        if self._again and self._light != "offline":
            again, self._again = self._again, set()
            with self._sent_again(again):
                self._tell(copy, self._work.again(copy, sorted(again)))
            return True
        now = time.monotonic()
        paths, below = self._saves.pop_due(now, lambda path: _is_emptied(copy, path), AT_ONCE)
        if paths or below:
            with self._heard_again(paths, below):
                if below:
                    self._tell(copy, self._work.saved_below(copy, below))
                if paths:
                    before = _text_of(copy, paths[-1])
                    self._tell(copy, self._work.saved(copy, paths))
                    if is_utf8(paths[-1]):
                        self._here = (paths[-1], _line_changed(before, _text_of(copy, paths[-1])))
            self._try_line(now)
            return True
        if self._work.frames.paths and self._light != "offline":
            return self._bring(copy)
        return False

    @contextmanager
    def _heard_again(self, paths: Iterable[str], below: Iterable[str]) -> Iterator[None]:
        """A context for handling these saves, which may need the relay. If it fails, they are queued again as
        new saves, because nothing else would report them a second time."""
        try:
            yield
        except BaseException:
            now = time.monotonic()
            for path in paths:
                self._saves.closed(path, now)
            for prefix in below:
                self._saves.changed_below(prefix, now)
            raise

    @contextmanager
    def _sent_again(self, paths: Iterable[str]) -> Iterator[None]:
        """As `_heard_again`, for paths that were not saved."""
        held_paths = list(paths)
        try:
            yield
        except BaseException:
            self._again.update(held_paths)
            raise

    def _try_line(self, now: float) -> None:
        """Connect at once after a save, instead of at the next scheduled try."""
        if self._light == "offline" and self._line is not None and now >= self._try_at:
            self._try_at = now + TRY_SECONDS
            self._line.retry()

    def _pull(self, copy: WorkingCopy) -> None:
        """Pull, then walk the folder; due at the start and after a seal."""
        self._whole = False
        try:
            before = copy.last_seal
            done = pull(copy, "merge", heard=self._hears)
        except BaseException:
            self._whole = True
            raise
        self._work.frames.forget()
        if copy.moved_back is not None:
            self._say("trouble", detail=f"{moved_back_words(copy)}, and is sent again")
            copy.moved_back = None
        self._last_seal = copy.last_seal
        for path in done.changed:
            who = (done.live.get(path) or [""])[0]
            self._say("came", path=terminal_safe(path), by=who, gone=path not in copy.entries)
        for path, by in done.merged.items():
            self._say("merged", path=terminal_safe(path), by=by or "")
        for clash in done.conflicts:
            self._say(
                "conflict",
                path=terminal_safe(clash.path),
                kept_as=terminal_safe(clash.kept_as),
                by=clash.by or "",
                gone=clash.deleted,
            )
        if done.seal != before and done.seal is not None:
            self._say("seal", seal=done.seal, by=", ".join(copy.sealed_by))
        copy.begin_report()
        self._behind = False
        self._tell(copy, self._work.saved_below(copy, [""], heard=True))
        self._hears = self._complete

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
        if connected.head != copy.last_seal or connected.moved_back:
            self._whole = True

    def _take_back(self, copy: WorkingCopy) -> None:
        """Withdraw edits that were saved while the relay was unreachable and are no longer in the folder."""
        self._returned = False
        try:
            with self._sent_again(update.path for update in not_held(copy)):
                done = withdraw(copy)
                again = self._work.again(copy, [*done.taken, *done.arrived])
        except BranchProtected:
            forget_flights(copy)
            self._whole = True
            return
        except BaseException:
            self._returned = True
            raise
        self._tell(copy, again)

    def _store(self, copy: WorkingCopy, frame: Live) -> None:
        came = self._work.frames.store(copy, frame)
        if came is None:
            self._behind = True
            return
        for change in came:
            self._came[change.path] = change
            self._work.buffers.authors[change.path] = change.who

    def _bring(self, copy: WorkingCopy) -> bool:
        """Write received changes to the folder. Returns whether anything was done."""
        before = len(self._work.frames.paths)
        with marking(copy, needed=False):
            with self._sent_again(self._work.frames.paths):
                done = self._work.bring(copy)
            mark(copy, done.written)
        for path in done.written:
            change = self._came.pop(path, None)
            gone = path not in copy.entries
            if change is None:
                self._say("came", path=terminal_safe(path), gone=gone)
            else:
                agent = change.turn is not None
                self._say("came", path=terminal_safe(path), by=change.who, agent=agent, gone=gone)
        done.written = []
        self._tell(copy, done)
        return len(self._work.frames.paths) < before

    def _record(self, copy: WorkingCopy, updates: list[LiveUpdate], answers: UpdateAnswers) -> None:
        flying = copy.db.flight_numbers()
        with self._sent_again(update.path for update in updates):
            sent = self._work.answered(copy, updates, answers)
            again = self._work.again(copy, [*sent.accepted, *sent.costly])
        kinds = {update.path: update.kind for update in updates if update.n in flying}
        for path in sent.accepted:
            self._say("sent", path=terminal_safe(path), gone=kinds.get(path) == "delete")
        for path, why in sent.refused.items():
            self._say("refused", path=terminal_safe(path), detail=terminal_safe(why))
        self._tell(copy, again)

    def _place_now(self, copy: WorkingCopy) -> None:
        """The parameters for opening the channel, from the record."""
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
            self._joins(self._line)

    def _end_round(self, copy: WorkingCopy) -> None:
        """Called at the end of each round, while the folder is still owned."""

    def _joins(self, line: Line) -> None:
        """Register the folder with the line, with its current parameters."""
        raise NotImplementedError

    def _post(self) -> None:
        """Send the updates in flight by request, without owning the folder."""
        if self._light == "offline" or not self.unsent or self._line is None:
            return
        self._tell_here()  # first: a dead line shows on the socket
        with self._owning.round() as copy:
            self._work.begin(copy, self._turn)
            updates = self._work.outgoing(copy)
            batch = batch_of(copy, updates)
            transport = copy.transport
        if not updates:
            self._flying = 0
            return
        number = self._line.send(self.channel, batch) if self._light == "live" else None
        if number is not None:
            self._out = (number, updates, time.monotonic() + ANSWER_SECONDS)
            return
        self._answers.append((updates, transport.updates(batch)))
        self._barred = 0.0

    def _tell_here(self) -> None:
        """Tell others where the last save was, once the channel is open."""
        if self._here is not None and self._line is not None:
            path, line = self._here
            if self._line.here(self.channel, path, line, self._turn):
                self._here = None

    # --- what happened

    def _tell(self, copy: WorkingCopy, done: Done) -> None:
        for path in done.merged:
            by = self._work.buffers.authors.get(path, "")
            self._say("merged", path=terminal_safe(path), by=by)
        for clash in done.conflicts:
            kept_as = terminal_safe(clash.kept_as)
            path, by = terminal_safe(clash.path), clash.by or ""
            self._say("conflict", path=path, kept_as=kept_as, by=by, gone=clash.deleted)
        for old, new in done.moved:
            self._say("renamed", path=terminal_safe(old), to=terminal_safe(new))
        for old, new in done.back:
            self._say("renamed", path=terminal_safe(old), to=terminal_safe(new), back=True)
        for kept_text in done.kept:
            self._say(
                "kept", path=terminal_safe(kept_text.path), lines=kept_text.lines, by=", ".join(kept_text.by)
            )
        if self._work.removals.words != self._held:
            self._held = self._work.removals.words
            if self._held:
                self._say("held", detail=self._held)
        for skipped_file in done.skipped:
            if (skipped_file.path, skipped_file.reason) not in self._skipped:
                self._skipped.add((skipped_file.path, skipped_file.reason))
                self._say(
                    "skipped", path=skipped_file.path, detail=skipped_file.reason + skipped_file.kept_words
                )

    def _say(self, event: str, **members: Any) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._say_to(msgspec.convert({"event": event, "folder": str(self.root), "at": at, **members}, Said))


def _is_emptied(copy: WorkingCopy, path: str) -> bool:
    """Whether the file is empty now but was not before, or a program has it open for writing."""
    info, entry = copy.files.stat(path), copy.entries.get(path) if is_utf8(path) else None
    if info is None or entry is None:
        return False
    return (info.st_size == 0 and entry.size > 0) or copy.files.being_written(path)


def _text_of(copy: WorkingCopy, path: str) -> bytes | None:
    """The text that svc knows at the path; None for a large one, and for anything else."""
    entry = copy.entries.get(path) if is_utf8(path) else None
    if entry is None or entry.kind != "text" or entry.shadow is None or entry.size > LINED_BYTES:
        return None
    return copy.objects.get(entry.shadow)


def _line_changed(before: bytes | None, after: bytes | None) -> int:
    """The first line, from 1, in which the texts differ; 0 if it is unknown."""
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
