"""Reads the branch's live frontier (its files now, with unsealed edits) from the relay. The frontier is
checked and stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from localstore.core.encoding import digest, unb64u, unhex
from localstore.core.errors import Invalid, PathInvalid, ServerMisbehaved, Unauthorized
from localstore.core.lane.lane import Lane
from localstore.core.model.live import (
    Bootstrap,
    BootstrapRequest,
    ClockReused,
    LaneName,
    LaneState,
    ReplicaUnknown,
)
from localstore.core.model.live import Row as WireRow
from localstore.core.paths import check, terminal_safe
from localstore.errors import BranchReplaced
from localstore.record.database import STALE_EPOCH, FrontierRow
from localstore.record.entry import PathRecord
from localstore.sync.moved_back import Before, is_moved_back
from localstore.sync.recognise import recognise
from localstore.sync.transfer.lane_states import lane_states
from localstore.sync.working_copy import REUSED, WorkingCopy


class Remote(msgspec.Struct):
    """One path of the frontier, with the data that a merge needs. `genesis`: digest of the text with which
    the lane began. `state`: the lane's CRDT state, None if the lane still has that text."""

    row: FrontierRow
    genesis: bytes
    state: bytes | None = None


class Connected(msgspec.Struct, frozen=True):
    """The result of `connect`. `head`: last seal of the branch. `rows`: rows that are new since the last
    call. `gone`: paths that were removed since then. `moved_back`: the branch went back to an older state,
    and the record was begun again."""

    head: str | None
    rows: list[FrontierRow]
    gone: list[str]
    moved_back: bool = False


def connect(copy: WorkingCopy) -> Connected:
    """Read what is new on the branch from the relay, and store it in the record.

    The record is begun again under a new replica id in two cases: it is older than the relay's state of this
    replica, or the branch moved back. Then the branch's seals show from which versions the files were edited.
    Raises Unauthorized without a device key, BranchReplaced if another branch has the branch's name now."""
    if copy.key is None:
        raise Unauthorized("this needs a device key; run: svc login")
    if copy.db.text("device_key_id") not in (None, copy.key.id):
        copy.detach()
    try:
        if copy.db.number(REUSED):
            raise ClockReused("the relay knows an update under a number that this folder gave again")
        answer = copy.transport.bootstrap(_request(copy))
        if copy.branch_id not in ("", answer.branch_id):
            copy.detach()
            answer = copy.transport.bootstrap(_request(copy))
    except ClockReused:
        recognise(copy)
        answer = copy.transport.bootstrap(_request(copy))
    except ReplicaUnknown:
        answer = copy.transport.bootstrap(BootstrapRequest(device_key_id=copy.device_id))
        if copy.branch_id not in ("", answer.branch_id):
            raise BranchReplaced(copy.repo.branch) from None
        if copy.branch_id:
            return _connect_anew(copy, answer)
        copy.detach()
        answer = copy.transport.bootstrap(_request(copy))
    if is_moved_back(copy, answer):
        return _connect_anew(copy, answer)
    copy.rename(answer.repo, answer.class_)
    return Connected(answer.sealed_head, *_store(copy, answer))


def _connect_anew(copy: WorkingCopy, answer: Bootstrap) -> Connected:
    """Connect as a new replica, because the relay's branch lacks updates that it had confirmed to the old
    one. `answer`: the relay's answer that showed this."""
    lost = is_moved_back(copy, answer)
    before = Before(copy)
    before.begin_anew(answer.sealed_head)
    if lost:
        copy.moved_back = copy.last_seal or ""
    answer = copy.transport.bootstrap(_request(copy))
    copy.rename(answer.repo, answer.class_)
    rows, gone = _store(copy, answer)
    with copy.db.step():
        before.rebase(rows)
    return Connected(answer.sealed_head, rows, gone, moved_back=True)


def _request(copy: WorkingCopy) -> BootstrapRequest:
    return BootstrapRequest(
        device_key_id=copy.device_id,
        replica=copy.replica or None,
        since=copy.db.number("since"),
        n=copy.db.number("n"),
    )


def _store(copy: WorkingCopy, answer: Bootstrap) -> tuple[list[FrontierRow], list[str]]:
    """Store the relay's answer in one transaction. Returns (rows of the files with valid paths, removed
    paths)."""
    since = copy.db.number("since")
    unb64u(answer.tree_key, 32)
    with copy.db.step():
        files, gone = store_rows(copy, answer.rows, whole=since == 0)
        copy.db.put("replica", answer.replica)
        copy.db.put("branch_id", answer.branch_id)
        copy.db.put("tree_key", answer.tree_key)
        copy.db.put("tree_key_id", answer.tree_key_id)
        copy.db.put("repo_kind", answer.kind)
        copy.db.put("since", answer.seq)
        copy.db.put("live_by", msgspec.json.encode(answer.live_by))
        copy.db.put("device_key_id", copy.device_id)
    return files, gone


def store_rows(
    copy: WorkingCopy, rows: Iterable[WireRow], whole: bool
) -> tuple[list[FrontierRow], list[str]]:
    """Store rows of the relay, as part of the caller's transaction. `whole`: `rows` are the complete
    frontier. Returns (rows of files with valid paths, removed paths). Raises ServerMisbehaved."""
    files, gone = [], []
    refused: list[tuple[str, str]] = []
    for row in rows:
        if row.kind == "gone":
            gone.append(row.path)
            continue
        try:
            files.append(_row(row))
        except PathInvalid as error:
            refused.append((row.path, error.detail))
    copy.db.put_rows(files, gone, whole=whole)
    for path, reason in refused:
        copy.db.put_unwritable(path, reason)
    return files, gone


def unsealed_authors(copy: WorkingCopy) -> dict[str, list[str]]:
    """The handles of the authors of each path's unsealed edits, according to the relay. They are escaped for
    a terminal."""
    encoded = copy.db.get("live_by")
    authors = msgspec.json.decode(encoded, type=dict[str, list[str]]) if isinstance(encoded, bytes) else {}
    return {path: [terminal_safe(handle) for handle in handles] for path, handles in authors.items()}


def _row(row: WireRow) -> FrontierRow:
    check(row.path)
    try:
        named = unhex(row.digest)
    except Invalid:
        raise ServerMisbehaved(f"the server sent a row of {row.path} without a digest") from None
    return FrontierRow(row.path, row.kind, row.gen, row.epoch, row.ver, row.other, named, row.size, row.live)


def state_bytes(state: str | None) -> bytes | None:
    return None if state is None else unb64u(state)


def read_remote(copy: WorkingCopy, rows: Iterable[FrontierRow]) -> Iterator[Remote]:
    """Yields each row, with the state of its lane that a merge needs. Paths that were removed meanwhile are
    left out; the next pull handles them. Lanes that cannot be loaded are left out too, and added to
    `WorkingCopy.unreadable`."""
    incomplete: list[FrontierRow] = []
    for row in rows:
        if row.path in copy.unreadable:
            continue
        if row.kind == "text" and _needs_state(copy.entries.get(row.path), row):
            incomplete.append(row)
        else:
            yield Remote(row, row.digest)
    if incomplete:
        yield from _states(copy, incomplete)


def _needs_state(entry: PathRecord | None, row: FrontierRow) -> bool:
    if row.live or row.epoch == STALE_EPOCH:
        return True
    return entry is not None and (entry.gen, entry.epoch) == (row.gen, row.epoch) and entry.touched


def _states(copy: WorkingCopy, rows: list[FrontierRow]) -> Iterator[Remote]:
    names = [LaneName(path=row.path, gen=row.gen) for row in rows]
    by_path = {row.path: row for row in rows}
    for state in lane_states(copy.transport, names):
        requested = by_path.get(state.path)
        if requested is None or requested.gen != state.gen:
            raise ServerMisbehaved("the server sent a lane that was not asked for; try again")
        try:
            remote = _remote(copy, state, requested)
        except Invalid as error:
            copy.unreadable[state.path] = error.detail
            continue
        yield remote


def require_readable(copy: WorkingCopy) -> None:
    """Raises ServerMisbehaved if some lanes could not be loaded (`WorkingCopy.unreadable`). The message names
    one of their files."""
    if not copy.unreadable:
        return
    path = min(copy.unreadable)
    others = f" and {len(copy.unreadable) - 1} more" if len(copy.unreadable) > 1 else ""
    raise ServerMisbehaved(
        f"the server sent invalid edits of {terminal_safe(path)}{others} "
        f"({copy.unreadable[path]}); these files were left unchanged, all others were updated. "
        "Try again; if it happens again, ask a person who made these edits to push them"
    )


def _remote(copy: WorkingCopy, state: LaneState, requested: FrontierRow) -> Remote:
    # Whoever changed the lane since the rows were read is taken for somebody else.
    other = requested.other if state.ver == requested.ver else state.ver
    row = requested._replace(
        epoch=state.epoch, ver=state.ver, other=other, digest=unhex(state.digest), size=state.size
    )
    genesis, raw = unhex(state.genesis), state_bytes(state.state)
    text = None if raw is None else Lane.load(raw).text()
    if text is not None and digest(text) != row.digest:
        raise Invalid("their text has another digest than announced")
    if text is not None:
        copy.objects.add([(row.digest, text)])
    copy.db.put_rows([row], (), whole=False)
    return Remote(row, genesis, raw)
