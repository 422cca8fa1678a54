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


class SentBatch(NamedTuple):
    """Updates that were sent over the socket and are not answered yet."""

    number: int  # that their answer will have
    updates: list[LiveUpdate]
    until: float  # monotonic seconds: without an answer by then they are sent by request


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
        # The server
        self.line: Line | None = None
        self.channel_parameters: ChannelParameters | None = (
            None  # under which the line opens the folder's channel; None: it has none
        )
        self.reopen_at = 0.0  # when the relay, which refused the channel, is asked again; 0.0: it did not
        self.refusal = ""  # why the relay opens no channel
        self.reads_only = ""  # why nothing is sent: the user may not write, or the folder shows a seal
        self.unheard = False  # the relay hid the repository, and reports none of its events since
        self.light: Light = "offline"
        self.why = "connecting"  # of the light
        self.since = int(time.time())  # of the light
        self.relit = False  # the light has changed since the last round
        self.people: dict[str, PersonOnBranch] = {}  # who is there, by connection
        # What is due
        self.whole = True  # a pull, and a walk the first time
        self.hears = False  # the folder was walked, and what changes is heard of since
        self.behind = False  # a bootstrap
        self.returned = False  # the relay was away: what is in flight may not be in the folder any more
        self.pending_frames: list[Live] = []  # received, not stored
        self.answers: list[tuple[list[LiveUpdate], UpdateAnswers]] = []  # received, not recorded
        self.again: set[str] = set()  # paths whose state may not be in flight, because a round failed
        self.waiting: set[str] = set()  # paths that wait for answers, or for a program that writes
        self.look_at = 0.0  # when they are looked at again
        self.not_before = 0.0  # of the next round, after one that failed
        self.try_at = 0.0  # from when a save makes the line try to connect
        # What was sent
        self.out: SentBatch | None = None  # over the socket, not answered
        self.flying = 0  # how many updates are in flight
        self.barred = 0.0  # until when nothing is sent, because the branch is protected; 0.0: it takes edits
        # What was told
        self.last_seal: str | None = None
        self.came: dict[str, Arrived] = {}  # path → change that is not in the folder yet
        self.skipped: set[tuple[str, str]] = set()
        self.held = ""  # of removals that are not sent
        self.trouble = ""
        self.turn: str | None = None  # the agent's turn in which the folder is edited
        self.last_save: tuple[str, int] | None = None  # where the last save was, until others are told

    @property
    def unsent(self) -> bool:
        """Whether there are updates to send over the socket now. That is not so while the last batch is
        unanswered, or after the relay has refused updates because the branch is protected."""
        return self.flying > 0 and self.out is None and time.monotonic() >= self.barred

    @property
    def hears_all(self) -> bool:
        """Whether every change below the folder is reported, so that scans are rarely needed."""
        return self.detector is not None and not self.detector.walks

    def describe(self, detached: bool, followers: int, paused: bool) -> Folder:
        """Return the state of the folder as the agent's clients see it. The arguments are the attributes of
        `WatchedFolder` with the same names."""
        return Folder(
            folder=str(self.root),
            repo=self.link.repo,
            branch=self.link.branch,
            server=self.link.server,
            light=self.light,
            since=self.since,
            why=self.trouble or self.reads_only or self.refusal or self.work.removals.words or self.why,
            queued=self.flying + len(self.work.removals.held),
            detached=detached,
            followers=followers,
            walks=self.detector.walks if self.detector else False,
            paused=paused,
            people=list(self.people.values()),
        )

    def try_line(self, now: float) -> None:
        """Ask the connection to try again at once, instead of at the next scheduled time. Called after a
        save; does nothing unless the server is unreachable."""
        if self.light == "offline" and self.line is not None and now >= self.try_at:
            self.try_at = now + TRY_SECONDS
            self.line.retry()

    def send_last_position(self) -> None:
        """Tell the other people on the branch which file and line this user saved last. Does nothing while
        the channel is not open."""
        if self.last_save is not None and self.line is not None:
            path, line = self.last_save
            if self.line.send_position(self.channel, path, line, self.turn):
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
