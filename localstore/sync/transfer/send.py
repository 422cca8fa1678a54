"""Sends the updates in flight, which are numbered, signed and not answered yet. Records the relay's answers
(device rule 1 of docs/design/004)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec

from localstore.core.encoding import digest as blake3
from localstore.core.encoding import unhex
from localstore.core.errors import Invalid, NotFound, ServerMisbehaved
from localstore.core.lane.first_edit import FirstEdit
from localstore.core.lane.lane import Lane
from localstore.core.lane.update import LiveUpdate, decoded_ops
from localstore.core.model import limits
from localstore.core.model.live import (
    ClockReused,
    LaneMoved,
    LaneName,
    UpdateAnswer,
    UpdateAnswers,
    UpdateBatch,
)
from localstore.core.names import MANIFEST
from localstore.core.paths import parents, terminal_safe
from localstore.core.storage.chunks import kind_of_bytes
from localstore.core.storage.file_kind import kind_of
from localstore.core.storage.pack import Frame, Pack, PackWriter
from localstore.record.database import FrontierRow
from localstore.record.entry import Kind, PathRecord
from localstore.record.typed import is_typed, put_typed
from localstore.sync.remote import state_bytes
from localstore.sync.transfer.chunked_upload import upload
from localstore.sync.transfer.lane_states import lane_states
from localstore.sync.transfer.pack_uploads import PackUploads
from localstore.sync.working_copy import REUSED, WorkingCopy

NEW_FILES = ("create_text", "set_blob")  # kinds of update that begin a lane
PAYLOAD_MISSING = "payload_missing"
PULL_FIRST = (PAYLOAD_MISSING, LaneMoved.code)  # codes of a refused update that is sent again after a pull
TOO_COSTLY = (
    "update_invalid",
    "too_large",
)  # codes of a refused edit that is sent as a new version of the file
ENVELOPE = 4096  # bytes of a batch beside its updates
KEPT_AT_ONCE = 32 * limits.MIB  # bytes of texts held until they are stored together


class SendResult(msgspec.Struct):
    """The relay's answers, by path.

    - `accepted`: the accepted paths.
    - `lost`: paths that must be pulled before they are sent again.
    - `moved`: those paths of `lost` whose text others changed.
    - `unread`: those paths of `lost` whose bytes could not be uploaded, because the file was saved after the
      scan.
    - `costly`: paths whose edits the relay refuses as too costly, so that their files must be sent as new
      versions.
    - `refused`: path → the relay's reason.
    - `bytes`: number of uploaded bytes."""

    accepted: list[str] = msgspec.field(default_factory=list)
    lost: list[str] = msgspec.field(default_factory=list)
    moved: list[str] = msgspec.field(default_factory=list)
    unread: list[str] = msgspec.field(default_factory=list)
    costly: list[str] = msgspec.field(default_factory=list)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    bytes: int = 0


def send(copy: WorkingCopy) -> SendResult:
    """Send everything in flight, and record the answers. After an interruption the same bytes are sent again.
    Deletions are sent first. Then comes the manifest `.svc.yaml`, because the size cap that it sets applies
    to the files that follow."""
    sent = SendResult()
    flights = _flights(copy)
    sent.bytes = upload_bytes(copy, [update for update, _ in flights])
    done = 0
    for updates in _batches(copy, flights):
        answers = copy.transport.updates(batch_of(copy, updates))
        record_answers(copy, updates, answers, sent)
        done += len(updates)
        copy.progress("send", done, len(flights), sent.bytes)
    return sent


def batches(copy: WorkingCopy) -> list[list[LiveUpdate]]:
    """The updates in flight in the order of sending, divided into batches. Each batch is sent in one
    request."""
    return list(_batches(copy, _flights(copy)))


def batch_of(copy: WorkingCopy, updates: list[LiveUpdate]) -> UpdateBatch:
    """A request of this working copy with these updates."""
    return UpdateBatch(
        device_key_id=copy.device_id, replica=copy.replica, updates=updates, turn_id=copy.turn_id
    )


def record_answers(
    copy: WorkingCopy, updates: list[LiveUpdate], answers: UpdateAnswers, sent: SendResult
) -> None:
    """Record the answers to a batch in one transaction, and add its paths to `sent`. An update that is no
    longer in flight is ignored: another process has sent it too. Raises the errors of `send`."""
    by_n = {answer.n: answer for answer in answers.answers}
    if by_n.keys() != {update.n for update in updates}:
        raise ServerMisbehaved("the server answered other updates than were sent; try again")
    flying = copy.db.flight_numbers()
    _settle(copy, [(update, by_n[update.n]) for update in updates if update.n in flying], sent)


def _flights(copy: WorkingCopy) -> list[tuple[LiveUpdate, int]]:
    """Each update in flight as (update, size in bytes), in the order of sending."""
    flights = [(msgspec.json.decode(body, type=LiveUpdate), len(body)) for _, body in copy.db.flights()]
    flights.sort(key=lambda flight: (flight[0].kind != "delete", flight[0].path != MANIFEST, flight[0].n))
    return flights if len(flights) <= limits.UPDATES_PER_BATCH else _pair_renames(copy, flights)


def _pair_renames(copy: WorkingCopy, flights: list[tuple[LiveUpdate, int]]) -> list[tuple[LiveUpdate, int]]:
    """The updates in flight as (update, size in bytes), ordered so that the two updates of a rename follow
    each other. So other editors of the file get the removal and the new file in one batch.

    In such a pair, a text is created before it is removed at its old path. A file that is not text is removed
    first, so that it does not count twice towards the cap on the sum of such files."""
    created = {update.blake3 for update, _ in flights if update.kind in NEW_FILES}
    news = {update.path for update, _ in flights if update.kind in NEW_FILES}
    folders = {above for path in news for above in parents(path)}
    halves: dict[str, list[tuple[LiveUpdate, int]]] = {}
    ordered: list[tuple[LiveUpdate, int]] = []
    for flight in flights:
        update = flight[0]
        entry = copy.entries.get(update.path) if update.kind == "delete" else None
        name = entry.shadow.hex() if entry is not None and entry.shadow is not None else ""
        clashes = update.path in folders or any(above in news for above in parents(update.path))
        if name in created and not clashes:
            halves.setdefault(name, []).append(flight)
            continue
        half = halves.get(update.blake3 or "")
        removed = [half.pop()] if half else []
        ordered += [flight, *removed] if update.kind == "create_text" else [*removed, flight]
    return [*(flight for pair in halves.values() for flight in pair), *ordered]


def _batches(copy: WorkingCopy, flights: list[tuple[LiveUpdate, int]]) -> Iterator[list[LiveUpdate]]:
    """Divides the updates into batches that are small enough for one request. There are limits for the number
    of updates, for their bytes, and for the bytes of the texts that the relay has to load for them."""
    edited = copy.db.row_sizes(update.path for update, _ in flights if update.kind == "edit_text")
    batch: list[LiveUpdate] = []
    room, texts = limits.UPDATE_BATCH_BYTES - ENVELOPE, limits.EDITED_TEXTS
    for update, size in flights:
        text = edited.get(update.path, 0)
        if batch and (size > room or text > texts or len(batch) == limits.UPDATES_PER_BATCH):
            yield batch
            batch, room, texts = [], limits.UPDATE_BATCH_BYTES - ENVELOPE, limits.EDITED_TEXTS
        batch.append(update)
        room, texts = room - size - 1, texts - text
    if batch:
        yield batch


# --- bytes


def upload_bytes(copy: WorkingCopy, updates: list[LiveUpdate]) -> int:
    """Upload those objects named by these updates that the relay lacks. Returns the number of bytes sent."""
    sources = {unhex(update.blake3): update for update in updates if update.blake3 is not None}
    digests = list(sources)
    missing: list[bytes] = []
    for start in range(0, len(digests), limits.HAVE_DIGESTS):
        missing += copy.transport.have(digests[start : start + limits.HAVE_DIGESTS])
    missing += _stored_whole(copy, [sources[digest] for digest in sources.keys() - missing])
    writer, uploads, large_bytes = PackWriter(), PackUploads(copy, len(missing)), 0

    def ship(packs: list[Pack]) -> None:
        for pack in packs:
            copy.objects.add_frames(frame for frame in pack.frames if _all_text(frame, sources))
        uploads.send(packs)

    for digest in missing:
        update = sources.get(digest)
        if update is not None and _is_large(copy, update):
            large_bytes += upload(copy, update.path, digest)
            uploads.stored += 1
            continue
        data = None if update is None else _bytes_of(copy, update.path, digest)
        if data is not None:
            ship(writer.add(digest, data, update is not None and update.kind == "create_text"))
    ship(writer.finish())
    return uploads.sent + large_bytes


def _stored_whole(copy: WorkingCopy, updates: list[LiveUpdate]) -> list[bytes]:
    """The digests of the large files in `updates` that the relay stores as one object, because an earlier
    version of svc sent them as one object. They must be sent again as chunks."""
    digests = []
    for update in updates:
        digest = unhex(update.blake3 or "")
        if _is_large(copy, update):
            try:
                copy.transport.manifest(digest)
            except NotFound:
                digests.append(digest)
    return digests


def _all_text(frame: Frame, sources: dict[bytes, LiveUpdate]) -> bool:
    return all(sources[entry.digest].kind == "create_text" for entry in frame.row.objects)


def _is_large(copy: WorkingCopy, update: LiveUpdate) -> bool:
    """Whether the bytes of this update are sent as chunks."""
    return update.kind == "set_blob" and kind_of_bytes(update.size or 0, copy.repo_kind) == "chunked"


def _bytes_of(copy: WorkingCopy, path: str, digest: bytes) -> bytes | None:
    """The bytes with this digest, which an update names. None if they are no longer in the folder and not in
    the record, as after another save."""
    data = copy.files.read_up_to(path, limits.FRAME_RAW_MAX)
    return data if data is not None and blake3(data) == digest else copy.objects.get(digest)


# --- answers


def _settle(copy: WorkingCopy, answered: list[tuple[LiveUpdate, UpdateAnswer]], sent: SendResult) -> None:
    """Record a batch of answers to updates in one transaction. Raises ClockReused if the relay has answered
    an update with the same number before. Raises ServerMisbehaved if the relay has another text than was
    sent."""
    if any(answer.result == "settled" for _, answer in answered):
        with copy.db.step():
            copy.db.put(REUSED, 1)
        raise ClockReused("the relay has answered a number this folder thinks is open; run: svc pull --merge")
    _keep_texts(copy, answered)
    states = _adopted_states(copy, answered)
    created: dict[str, tuple[PathRecord, bytes | None]] = {}
    edited: list[PathRecord] = []
    differing: list[str] = []
    with copy.db.step():
        copy.db.drop_flights(update.n for update, _ in answered)
        for update, answer in answered:
            if answer.result != "ok":
                _not_accepted(copy, update, answer, sent)
                continue
            sent.accepted.append(update.path)
            if update.kind in NEW_FILES:
                created[update.path] = _entry_of_created(copy, update, answer, states.get(update.path))
            elif update.kind == "delete":
                copy.forget(update.path)
                row = copy.db.row(update.path)
                if row is not None and row.ver < answer.seq:
                    copy.db.put_rows((), [update.path], whole=False)
            else:
                entry = copy.entries[update.path]
                if not _edit_accepted(copy, entry, update, answer) and not update.typed:
                    differing.append(update.path)
                edited.append(entry)
        copy.replace(created)
        copy.save_all(edited)
        _follow_frontier(copy, answered)
    if differing:
        raise ServerMisbehaved(
            f"the server took an edit of {terminal_safe(differing[0])} and has another text than was sent; "
            "run: svc pull --merge, and look at the file"
        )


def _not_accepted(copy: WorkingCopy, update: LiveUpdate, answer: UpdateAnswer, sent: SendResult) -> None:
    """Add the path of an update that was not accepted to one of the lists in `sent`, according to the relay's
    answer."""
    if update.kind == "edit_text" and answer.result == "refused" and answer.code in TOO_COSTLY:
        sent.costly.append(update.path)
    elif answer.result == "refused" and answer.code not in PULL_FIRST:
        sent.refused[update.path] = answer.detail or answer.code
    else:
        sent.lost.append(update.path)
        if answer.code == LaneMoved.code:
            sent.moved.append(update.path)
        elif answer.code == PAYLOAD_MISSING:
            sent.unread.append(update.path)
        copy.db.mark_row_stale(update.path)
    if not copy.entries[update.path].gen:
        copy.forget(update.path)


def _follow_frontier(copy: WorkingCopy, answered: list[tuple[LiveUpdate, UpdateAnswer]]) -> None:
    """Store the rows of files that were just created, so that they need not be requested. Answers are used
    from the first on, as long as each is about a new file and has the next sequence number. Up to there, no
    update of others came in between."""
    since = copy.db.number("since")
    rows: list[FrontierRow] = []
    for update, answer in answered:
        entry = copy.entries.get(update.path)
        is_new = answer.result == "ok" and update.kind in NEW_FILES and answer.seq == answer.gen == since + 1
        if not is_new or entry is None or entry.want is None:
            break
        since = answer.seq
        rows.append(
            FrontierRow(
                entry.path, entry.kind, entry.gen, entry.epoch, since, 0, entry.want, entry.size, False
            )
        )
    copy.db.put_rows(rows, (), whole=False)
    copy.db.put("since", since)


def _edit_accepted(copy: WorkingCopy, entry: PathRecord, update: LiveUpdate, answer: UpdateAnswer) -> bool:
    """Apply a confirmed edit to the entry, which the caller saves. Returns whether the relay's text equals
    the text that was sent. The two can differ only for a typed edit, because edits of others were merged
    into it."""
    ops = decoded_ops(update)
    last = entry.pending == len(ops)
    edited = copy.edited_lanes.pop(entry) if last else None
    if isinstance(edited, FirstEdit):
        copy.db.put_lane_state(entry.path, edited.update, whole=False)
        text = entry.want
    else:
        lane = _replay_edit(copy, entry, ops) if edited is None else edited
        copy.db.put_lane_state(entry.path, lane.state())
        text = entry.want if last else lane.digest()
    copy.db.drop_pending(entry.path, len(ops))
    typed = is_typed(copy.db, entry)
    entry.touched = True
    entry.pending -= len(ops)
    if typed:
        put_typed(copy.db, entry)
    as_sent = text is not None and answer.digest == text.hex()
    if as_sent:
        entry.seen = max(entry.seen, answer.seq)
    else:
        copy.db.mark_row_stale(entry.path)
    return as_sent


def _replay_edit(copy: WorkingCopy, entry: PathRecord, ops: list[bytes]) -> Lane:
    lane = copy.confirmed_lane(entry)
    lane.replay(ops)
    return lane


def _entry_of_created(
    copy: WorkingCopy, update: LiveUpdate, answer: UpdateAnswer, state: bytes | None
) -> tuple[PathRecord, bytes | None]:
    """The entry and the lane state for a file that was just created on the relay. The state is None if the
    lane was not edited."""
    digest = unhex(update.blake3 or "")
    kind: Kind = "text" if update.kind == "create_text" else kind_of_bytes(update.size or 0, copy.repo_kind)
    entry = PathRecord(
        path=update.path,
        kind=kind,
        gen=answer.gen,
        epoch=answer.epoch,
        seen=answer.seq,
        genesis=digest if kind == "text" else None,
        touched=state is not None,
        want=digest,
        size=update.size or 0,
        shadow=digest,
    )
    return entry, state


def _keep_texts(copy: WorkingCopy, answered: list[tuple[LiveUpdate, UpdateAnswer]]) -> None:
    """Store the texts of created files that were not uploaded because the relay already had them, so that
    they can be read offline."""
    texts: dict[bytes, bytes] = {}
    for update, answer in answered:
        if answer.result == "ok" and update.kind == "create_text":
            digest = unhex(update.blake3 or "")
            data = None if copy.objects.has(digest) else _bytes_of(copy, update.path, digest)
            if data is not None and kind_of(data) == "text":
                texts[digest] = data
            if sum(map(len, texts.values())) > KEPT_AT_ONCE:
                copy.objects.add(texts.items())
                texts = {}
    copy.objects.add(texts.items())


def _adopted_states(copy: WorkingCopy, answered: list[tuple[LiveUpdate, UpdateAnswer]]) -> dict[str, bytes]:
    """The lane states, by path, of created files that others have edited already. This happens if the relay
    had the bytes of the file before. In the answer, `seq` then differs from `gen`."""
    names = [
        LaneName(path=update.path, gen=answer.gen)
        for update, answer in answered
        if update.kind == "create_text" and answer.result == "ok" and answer.seq != answer.gen
    ]
    states = {}
    for state in lane_states(copy.transport, names):
        with suppress(Invalid):  # without a state, edits are sent as new versions of the file
            raw = state_bytes(state.state)
            if raw is not None and Lane.load(raw).digest().hex() == state.digest:
                states[state.path] = raw
    return states
