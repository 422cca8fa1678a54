"""The outbox: actions that wait to be sent to servers, such as comments made offline. It is one SQLite file
in SVC_HOME.

An action is a value at a path, such as a comment at `/repos/ID/issues/41/comments/+`.
`svc.flows.outbox.actions` turns it into a request. The actions of one account on one server are sent in
order. An action waits until the server has answered.

An attempt is counted before its request is sent. So if the answer is lost, the action is repeated under the
same id, which is the request's Idempotency-Key."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from localstore.core.times import rfc3339
from localstore.shared_database import open_shared, transaction

FILE = "outbox.db"  # in SVC_HOME
LOCK = "outbox.lock"  # held by the one process that sends
KEPT = 10_000  # queued actions at most
EXPLAINS = {"state_reason": "state"}  # a member goes when another value comes for the one that it explains
State = Literal["waiting", "refused"]
Folding = Literal["members", "whole", "never"]
"""How an action is joined with a queued one at its path: the later members win; the later value replaces the
earlier one; not at all."""


class QueuedAction(msgspec.Struct, frozen=True):
    """An action in the outbox. `timestamp`: time of a hybrid logical clock (milliseconds since 1970 and a
    counter) as text that sorts by time. `account` and `handle`: the user; `about`: OWNER/NAME, or "".
    `attempts`: how often svc tried to send it. `code` and `reason`: why the server refused it, "" if it
    was not refused."""

    id: str
    origin: str
    account: str
    handle: str
    about: str
    path: str
    value: Any
    timestamp: str
    attempts: int = 0
    state: State = "waiting"
    code: str = ""
    reason: str = ""

    @property
    def created_at(self) -> str:
        """The time at which the action was queued, as ISO 8601 in UTC."""
        return moment(self.timestamp)


class Outbox:
    """The outbox of this machine. Safe to use from several threads and processes."""

    def __init__(self, file: Path, clock: Callable[[], float] = time.time) -> None:
        self.file, self._clock = file, clock
        self._lock = threading.Lock()
        self._db = open_shared(file, 5.0, "FULL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS entry (id TEXT PRIMARY KEY, origin TEXT NOT NULL, "
            "account TEXT NOT NULL, handle TEXT NOT NULL, about TEXT NOT NULL, path TEXT NOT NULL, "
            "value BLOB NOT NULL, timestamp TEXT NOT NULL UNIQUE, attempts INTEGER NOT NULL, "
            "state TEXT NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL)"
        )
        self._db.execute("CREATE TABLE IF NOT EXISTS clock (one INTEGER PRIMARY KEY, last TEXT NOT NULL)")

    def add(
        self,
        origin: str,
        account: str,
        handle: str,
        about: str,
        path: str,
        value: Any,
        folding: Folding = "members",
    ) -> QueuedAction:
        """Append an action: a value at a path, which the account sends to the server `origin`. If an earlier
        action at the same path was not tried yet, the two are joined. Raises OverflowError if there are too
        many actions.

        `folding`: how the values are joined. `members` joins them member by member, unless one of them
        contains a list. `whole` replaces the old value by the new one. `never` keeps the actions separate."""
        with self._lock, transaction(self._db):
            self._require_room()
            if not path.endswith("/+") and folding != "never":
                value = self._fold(origin, account, path, value, folding == "whole")
            return self._insert(origin, account, handle, about, path, value)

    def revise(
        self, origin: str, account: str, handle: str, path: str, revised: Callable[[QueuedAction | None], Any]
    ) -> QueuedAction:
        """Queue a value that depends on the last waiting action at the same path. `revised`: called with that
        action, or with None if there is none; returns the new value. Raises OverflowError as `add`.

        If the last action was never tried, it is replaced by an action with a new id. So a process that is
        just sending the last action cannot remove the new one afterwards. If the last action was tried, it
        keeps its id and gets the new value, because the request must be repeated under the same id."""
        with self._lock, transaction(self._db):
            row = self._db.execute(
                "SELECT * FROM entry WHERE origin = ? AND account = ? AND path = ? AND state != 'refused' "
                "ORDER BY timestamp DESC LIMIT 1",
                (origin, account, path),
            ).fetchone()
            last = _entry(row) if row else None
            value = revised(last)
            if last is not None and last.attempts:
                self._set_value(last.id, value)
                return msgspec.structs.replace(last, value=value)
            if last is not None:
                self._db.execute("DELETE FROM entry WHERE id = ?", (last.id,))
            else:
                self._require_room()
            return self._insert(origin, account, handle, "", path, value)

    def add_tried(
        self, id: str, origin: str, account: str, handle: str, path: str, value: Any
    ) -> QueuedAction:
        """Append an action whose request was already sent once, under the given id, and got no answer. The
        limit on waiting actions does not apply."""
        with self._lock, transaction(self._db):
            return self._insert(origin, account, handle, "", path, value, id=id, attempts=1)

    def _require_room(self) -> None:
        (waiting,) = self._db.execute("SELECT count(*) FROM entry").fetchone()
        if waiting >= KEPT:
            raise OverflowError

    def _insert(
        self,
        origin: str,
        account: str,
        handle: str,
        about: str,
        path: str,
        value: Any,
        id: str | None = None,
        attempts: int = 0,
    ) -> QueuedAction:
        id = id or new_id(self._clock())
        action = QueuedAction(
            id, origin, account, handle, about, path, value, self._tick(), attempts=attempts
        )
        self._db.execute(
            "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'waiting', '', '')",
            (
                action.id,
                origin,
                account,
                handle,
                about,
                path,
                msgspec.json.encode(value),
                action.timestamp,
                attempts,
            ),
        )
        return action

    def _set_value(self, id: str, value: Any) -> None:
        self._db.execute("UPDATE entry SET value = ? WHERE id = ?", (msgspec.json.encode(value), id))

    def list(self) -> list[QueuedAction]:
        """All actions, oldest first."""
        with self._lock:
            rows = self._db.execute("SELECT * FROM entry ORDER BY timestamp").fetchall()
        return [_entry(row) for row in rows]

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Returns what differs as soon as any process has changed the outbox: times and sizes of its files.
        Reads nothing of it."""
        stamps = []
        for file in (self.file, self.file.with_name(f"{self.file.name}-wal")):
            try:
                status = file.stat()
            except OSError:
                continue  # the log goes when the last process closes the outbox
            stamps.append((status.st_mtime_ns, status.st_size))
        return tuple(stamps)

    def next(self, origin: str, account: str, path: str | None = None) -> QueuedAction | None:
        """The action of an account to send next: the oldest one that was not refused. None if there is none.
        `path`: only actions at this path count."""
        with self._lock:
            row = self._db.execute(
                "SELECT * FROM entry WHERE origin = ? AND account = ? AND state != 'refused' "
                "AND path = coalesce(?, path) ORDER BY timestamp LIMIT 1",
                (origin, account, path),
            ).fetchone()
        return _entry(row) if row else None

    def at(self, origin: str, account: str, path: str) -> Sequence[QueuedAction]:
        """The actions of an account at a path, oldest first, including refused ones."""
        with self._lock:
            rows = self._db.execute(
                "SELECT * FROM entry WHERE origin = ? AND account = ? AND path = ? ORDER BY timestamp",
                (origin, account, path),
            ).fetchall()
        return [_entry(row) for row in rows]

    def count_attempt(self, id: str) -> bool:
        """Record that the request of an action is about to be sent. Returns False if the action must not be
        sent, because it was dropped or joined with a later one."""
        with self._lock:
            counted = self._db.execute("UPDATE entry SET attempts = attempts + 1 WHERE id = ?", (id,))
        return counted.rowcount == 1

    def replace(self, id: str, following: Callable[[Any], Any]) -> None:
        """Delete an action that was carried out, and queue another one at the same path if needed.
        `following`: called with the action's value; returns the value of the other action, or None to queue
        none."""
        with self._lock, transaction(self._db):
            row = self._db.execute("SELECT * FROM entry WHERE id = ?", (id,)).fetchone()
            if row is None:
                return
            action = _entry(row)
            value = following(action.value)
            self._db.execute("DELETE FROM entry WHERE id = ?", (id,))
            if value is not None:
                self._insert(action.origin, action.account, action.handle, action.about, action.path, value)

    def remove(self, id: str) -> None:
        """Delete an action that was carried out or dropped."""
        self._run("DELETE FROM entry WHERE id = ?", id)

    def refuse(
        self, id: str, code: str, reason: str, joined: Callable[[Any], Any] = lambda value: value
    ) -> None:
        """Mark an action as refused by the server, so that later actions can be sent. `code` and `reason`:
        why it was refused. `joined`: called with the action's value; returns the value to store instead. The
        caller uses this to add values that were queued after the action was tried."""
        with self._lock, transaction(self._db):
            row = self._db.execute("SELECT value FROM entry WHERE id = ?", (id,)).fetchone()
            if row is not None:
                self._set_value(id, joined(msgspec.json.decode(row[0])))
                self._db.execute(
                    "UPDATE entry SET state = 'refused', code = ?, reason = ? WHERE id = ?",
                    (code, reason, id),
                )

    def retry(self, id: str) -> None:
        """Queue a refused action again, at its old place in the order."""
        again = (
            "UPDATE entry SET state = 'waiting', code = '', reason = '' WHERE id = ? AND state = 'refused'"
        )
        self._run(again, id)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _fold(self, origin: str, account: str, path: str, value: Any, whole: bool) -> Any:
        """Join `value` with the waiting action at the same path, if that action was never tried. The action
        is removed, and the joined value is returned. `whole`: return `value` alone instead of a joined value.
        Otherwise values that contain lists are not joined: no action is removed, and `value` is returned."""
        row = self._db.execute(
            "SELECT id, value FROM entry WHERE origin = ? AND account = ? AND path = ? "
            "AND state = 'waiting' AND attempts = 0 ORDER BY timestamp DESC LIMIT 1",
            (origin, account, path),
        ).fetchone()
        if row is None:
            return value
        queued = msgspec.json.decode(row[1])
        if whole:
            self._db.execute("DELETE FROM entry WHERE id = ?", (row[0],))
            return value
        if _has_lists(queued) or _has_lists(value):
            return value
        self._db.execute("DELETE FROM entry WHERE id = ?", (row[0],))
        if not isinstance(queued, dict) or not isinstance(value, dict):
            return value
        ended = {member for member, of in EXPLAINS.items() if of in value}
        return {member: old for member, old in queued.items() if member not in ended} | value

    def _tick(self) -> str:
        """The next time of the hybrid logical clock. It is later than all earlier ones, even if the system's
        clock was set back."""
        row = self._db.execute("SELECT last FROM clock").fetchone()
        now = f"{int(self._clock() * 1000):015d}-0000"
        if row is not None and row[0] >= now:
            milliseconds, _, counter = row[0].partition("-")
            over = int(counter) == 9999
            now = f"{int(milliseconds) + over:015d}-{0 if over else int(counter) + 1:04d}"
        self._db.execute("INSERT OR REPLACE INTO clock VALUES (1, ?)", (now,))
        return now

    def _run(self, statement: str, *values: str) -> None:
        with self._lock:
            self._db.execute(statement, values)


def moment(timestamp: str) -> str:
    """The time of a `QueuedAction.timestamp`, as ISO 8601 in UTC."""
    return rfc3339(int(timestamp.partition("-")[0]) / 1000, "milliseconds")


def _has_lists(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(member, list) and member for member in value.values())


def _entry(row: tuple[Any, ...]) -> QueuedAction:
    fields = dict(zip(QueuedAction.__struct_fields__, row, strict=True))
    if fields["state"] == "sent":  # svc 0.1 wrote so of an action that was tried and had no answer
        fields["state"] = "waiting"
    return QueuedAction(**{**fields, "value": msgspec.json.decode(row[6])})


def new_id(now: float) -> str:
    """A new id of an action: a UUIDv7 (RFC 9562) in hex, which is 48 bits of milliseconds and then random
    bits."""
    value = int(now * 1000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | (0x7 << 76)
    value = value & ~(0x3 << 62) | (0x2 << 62)
    return f"{value:032x}"
