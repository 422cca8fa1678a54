"""The state of a watched folder between its rounds, and the events that its followers are told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from localstore.agent.talk import Folder, FolderEvent, Light, PersonOnBranch
from localstore.core.lane.update import LiveUpdate
from localstore.core.model.live import UpdateAnswers
from localstore.core.model.sync import Live
from localstore.core.paths import terminal_safe
from localstore.core.seal import timestamp
from localstore.folder.link import RepoLink
from localstore.folder.scan_result import Skipped
from localstore.live.frames import Arrived
from localstore.live.rounds import Conflicting, Done, Rounds
from localstore.live.saves import Saves
from localstore.sync.owning import RoundOwner as Owning
from localstore.sync.working_copy import WorkingCopy
from svc.agent.line import ChannelParameters, Line
from svc.agent.saves import SaveDetector
from svc.flows.common import ConflictCopy

TRY_SECONDS = 2.0  # between two tries to connect because of saves
BARRED_SECONDS = 60.0  # until a protected branch, or a channel that was refused, is tried again
ANSWER_SECONDS = 15.0  # for the answer to updates; then they are sent by request


class SentBatch(NamedTuple):
    """Updates that were sent over the socket and are not answered yet."""

    number: int  # that their answer will have
    updates: list[LiveUpdate]
    until: float  # monotonic seconds: without an answer by then they are sent by request


class Connection:
    """What a watched folder knows of its server: how it is reached, and what the server allows the folder."""

    def __init__(self) -> None:
        self.line: Line | None = None
        # With which the line opens the folder's channel; None: it has none
        self.channel_parameters: ChannelParameters | None = None
        self.reopen_at = 0.0  # when a channel, or the right to write, is asked for again; 0.0: never
        self.refusal = ""  # why the server opens no channel
        self.reads_only = ""  # why nothing is sent: the user may not write, or the folder shows a seal
        self.events_stopped = False  # the server hid the repository, and reports none of its events since
        self.light: Light = "offline"
        self.why = "connecting"  # of the light
        self.since = int(time.time())  # of the light
        self.light_changed = False  # since the last round
        self.people: dict[str, PersonOnBranch] = {}  # who is on the branch, by connection
        self._try_at = 0.0  # from when a save makes the line try to connect

    @property
    def is_offline(self) -> bool:
        return self.light == "offline"

    def change_light(self, light: Light, why: str) -> bool:
        """Note the light of the line and its reason. Returns False if both are the same as before."""
        if (light, why) == (self.light, self.why):
            return False
        self.light_changed = True
        if light != self.light:
            self.since = int(time.time())
            if light == "offline":
                self.people.clear()
            else:
                self.reopen_at = 0.0
        self.light, self.why = light, why
        return True

    def note_opened(self) -> None:
        """Note that the server has opened the folder's channel. It will say who is on the branch."""
        self.refusal = ""
        self.people.clear()

    def note_refused(self) -> None:
        """Note that the server opens no channel for the folder. It is asked again after BARRED_SECONDS."""
        self.channel_parameters = None
        self.reopen_at = time.monotonic() + BARRED_SECONDS

    def try_again(self, now: float) -> None:
        """Ask the line to connect at once, instead of at the next scheduled time. Called after a save; does
        nothing unless the server is unreachable."""
        if self.is_offline and self.line is not None and now >= self._try_at:
            self._try_at = now + TRY_SECONDS
            self.line.retry()


class DueWork:
    """The work that the next rounds of a watched folder do."""

    def __init__(self) -> None:
        self.needs_pull = True  # and a walk, the first time
        self.needs_bootstrap = False  # changes of others were missed
        self.needs_withdrawal = False  # the server was away: updates in flight may no longer match the folder
        self.pending_frames: list[Live] = []  # received, not stored
        self.answers: list[tuple[list[LiveUpdate], UpdateAnswers]] = []  # received, not recorded
        self.paths_to_resend: set[str] = set()  # whose state may not be in flight, because a round failed
        self.waiting: set[str] = set()  # paths that wait for answers, or for a program that writes
        self.look_at = 0.0  # when they are looked at again
        self.not_before = 0.0  # of the next round, after one that failed

    @property
    def needs_server(self) -> bool:
        """Whether there is work that came from the server, or for which it must be reachable."""
        return bool(
            self.answers
            or self.pending_frames
            or self.needs_pull
            or self.needs_bootstrap
            or self.needs_withdrawal
            or self.paths_to_resend
        )

    def note_server_back(self) -> None:
        """Note that the server can be reached again. The branch may have moved back meanwhile."""
        self.needs_bootstrap = self.needs_withdrawal = True

    def pop_paths_to_resend(self) -> list[str]:
        paths, self.paths_to_resend = sorted(self.paths_to_resend), set()
        return paths

    def wait_for(self, paths: set[str], seconds: float) -> None:
        """Set the paths that wait, and look at them again in `seconds`."""
        self.waiting, self.look_at = paths, time.monotonic() + seconds

    def postpone(self, seconds: float) -> None:
        """Let the next round begin in `seconds`, because one has failed."""
        self.not_before = time.monotonic() + seconds


class OutgoingUpdates:
    """The updates of a watched folder that are on their way to the server."""

    def __init__(self) -> None:
        self.sent_batch: SentBatch | None = None  # over the socket, not answered
        self.in_flight = 0  # how many updates the server has not answered
        self.protected_until = 0.0  # nothing is sent before, because the branch is protected; 0.0: it is not

    @property
    def is_due(self) -> bool:
        """Whether there are updates to send now. That is not so while the last batch is unanswered, or after
        the server has refused updates because the branch is protected."""
        return self.in_flight > 0 and self.sent_batch is None and time.monotonic() >= self.protected_until

    def moments(self, now: float) -> list[float]:
        """Return the times at which a batch becomes overdue, or a protected branch is tried again."""
        moments = [self.sent_batch.until] if self.sent_batch is not None else []
        if self.protected_until > now and self.in_flight:
            moments.append(self.protected_until)
        return moments

    def note_sent(self, number: int, updates: list[LiveUpdate]) -> None:
        """Note the updates that were sent over the socket, and the number that their answer will have."""
        self.sent_batch = SentBatch(number, updates, time.monotonic() + ANSWER_SECONDS)

    def pop_answered(self, number: int) -> list[LiveUpdate] | None:
        """Return the updates of the sent batch, which the server has answered. None if the number is of
        another batch."""
        batch = self.sent_batch
        if batch is None or batch.number != number:
            return None
        self.sent_batch = None
        return batch.updates

    def forget_batch(self) -> None:
        """Forget the sent batch, because its answer will not come. The same updates are sent again."""
        self.sent_batch = None

    def drop_overdue(self, now: float) -> bool:
        """Forget the sent batch if its answer is overdue. Returns whether it was."""
        if self.sent_batch is None or now < self.sent_batch.until:
            return False
        self.forget_batch()
        return True

    def note_protected(self) -> None:
        """Send nothing for BARRED_SECONDS, because the server refused updates of a protected branch."""
        self.protected_until = time.monotonic() + BARRED_SECONDS

    def note_unprotected(self) -> None:
        self.protected_until = 0.0

    def try_protected(self) -> None:
        """Send again from now on, because the protection of the branch may have changed."""
        self.protected_until = min(self.protected_until, time.monotonic())


class FolderState:
    """The state of one watched folder. Only the folder's thread uses it. `say_to` is called with each event
    for the clients that follow the folder."""

    def __init__(
        self,
        root: Path,
        channel: int,
        link: RepoLink,
        owning: Owning,
        say_to: Callable[[FolderEvent], None],
    ) -> None:
        self.root, self.channel, self.repo_id, self.link = root, channel, link.repo_id, link
        self.owning, self._say_to = owning, say_to
        self.work = Rounds()
        self.saves = Saves()
        self.detector: SaveDetector | None = None  # what hears of saves, once the thread runs
        self.connection, self.due, self.sending = Connection(), DueWork(), OutgoingUpdates()
        self.was_walked = False  # and what changes has been heard of since
        # What was told
        self.last_seal: str | None = None
        self.arrived: dict[str, Arrived] = {}  # path → change that is not in the folder yet
        self.skipped: set[tuple[str, str]] = set()
        self.held = ""  # of removals that are not sent
        self.trouble = ""
        self.turn: str | None = None  # the agent's turn in which the folder is edited
        self.last_save: tuple[str, int] | None = None  # where the last save was, until others are told

    @property
    def hears_all(self) -> bool:
        """Whether every change below the folder is reported, so that scans are rarely needed."""
        return self.detector is not None and not self.detector.walks

    @property
    def refusal(self) -> str:
        """Why the server takes no edits of this folder now, "" if it takes them: the user may not write, the
        folder shows a seal, or the branch is protected."""
        return self.connection.reads_only or (self.trouble if self.sending.protected_until else "")

    def describe(self, detached: bool, followers: int, paused: bool) -> Folder:
        """Return the state of the folder as the agent's clients see it. The arguments are the attributes of
        `WatchedFolder` with the same names."""
        connection = self.connection
        return Folder(
            folder=str(self.root),
            repo=self.link.repo,
            branch=self.link.branch,
            server=self.link.server,
            light=connection.light,
            since=connection.since,
            why=self.trouble
            or connection.reads_only
            or connection.refusal
            or self.work.removals.words
            or connection.why,
            queued=self.sending.in_flight + len(self.work.removals.held),
            detached=detached,
            followers=followers,
            walks=self.detector.walks if self.detector else False,
            paused=paused,
            people=list(connection.people.values()),
        )

    def send_last_position(self) -> None:
        """Tell the other people on the branch which file and line this user saved last. Does nothing while
        the channel is not open."""
        if self.last_save is not None and self.connection.line is not None:
            path, line = self.last_save
            if self.connection.line.send_position(self.channel, path, line, self.turn):
                self.last_save = None

    # --- events

    def say(self, event: str, **members: Any) -> None:
        """Send an event to the followers, as a message of the type `FolderEvent`. `members` are the members
        of that message other than event, folder and time."""
        at = timestamp(datetime.now(UTC))
        self._say_to(
            msgspec.convert({"event": event, "folder": str(self.root), "at": at, **members}, FolderEvent)
        )

    def say_person(self, person: PersonOnBranch, gone: bool) -> None:
        """Tell the followers where a person on the branch is, or, with `gone`, that the person left."""
        self.say(
            "person",
            by=person.who,
            device=person.device,
            agent=person.kind == "agent",
            path=person.path,
            line=person.line,
            gone=gone,
            state=person.state,
        )

    def tell(self, copy: WorkingCopy, done: Done) -> None:
        """Tell the clients that follow the folder what a piece of work did: which files were merged, renamed,
        left out, or are in conflict."""
        self.say_merged({path: self.work.buffers.authors.get(path) for path in done.merged}, done.conflicts)
        for old, new in done.moved:
            self.say("renamed", path=terminal_safe(old), to=terminal_safe(new))
        for old, new in done.back:
            self.say("renamed", path=terminal_safe(old), to=terminal_safe(new), back=True)
        for kept_text in done.kept:
            self.say(
                "kept", path=terminal_safe(kept_text.path), lines=kept_text.lines, by=", ".join(kept_text.by)
            )
        if self.work.removals.words != self.held:
            self.held = self.work.removals.words
            if self.held:
                self.say("held", detail=self.held)
        self.say_skipped(done.skipped)

    def say_merged(
        self, merged: Mapping[str, str | None], conflicts: Iterable[Conflicting | ConflictCopy]
    ) -> None:
        """Tell the clients that follow the folder which files were merged and which are in conflict. `merged`
        maps each path to the person whose edits were merged in, or to None if that person is unknown."""
        for path, by in merged.items():
            self.say("merged", path=terminal_safe(path), by=by or "")
        for clash in conflicts:
            kept_as = terminal_safe(clash.kept_as)
            path, author = terminal_safe(clash.path), clash.by or ""
            self.say("conflict", path=path, kept_as=kept_as, by=author, gone=clash.deleted)

    def say_skipped(self, skipped: Iterable[Skipped]) -> None:
        """Tell the followers which files are left out, and why. Each file is reported only once for the same
        reason."""
        for skipped_file in skipped:
            if (skipped_file.path, skipped_file.reason) not in self.skipped:
                self.skipped.add((skipped_file.path, skipped_file.reason))
                self.say(
                    "skipped", path=skipped_file.path, detail=skipped_file.reason + skipped_file.kept_words
                )
