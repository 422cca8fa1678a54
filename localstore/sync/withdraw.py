"""Withdraws updates in flight whose change is no longer in the folder.

An update stays in flight until it is answered, for example while the relay is unreachable, or after a push
that was killed. (Refused updates are answered, and dropped by `drop_refused`.) If its file is restored or
edited before the next command, the old change must not be published. But the relay may already have the
update, because only its answer may be lost.

Therefore the number of the update is used for another update, which changes nothing. The relay answers each
number once. So the answer shows that the first update had arrived, or ensures that it can never be accepted.
A captured edit that no update contains yet is dropped (`drop_undone`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from localstore.core.encoding import b64u
from localstore.core.encoding import digest as blake3
from localstore.core.errors import ServerMisbehaved
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model import limits
from localstore.core.model.live import UpdateAnswer, UpdateAnswers
from localstore.record.entry import FOREIGN, PathRecord
from localstore.record.typed import drop_typed, is_typed
from localstore.sync.settle import is_settled, settle
from localstore.sync.transfer.send import SendResult, batch_of, record_answers
from localstore.sync.working_copy import SEALED_AT, WorkingCopy


class Withdrawn(msgspec.Struct):
    """The result of `withdraw`. `taken`: paths whose update was withdrawn. `arrived`: paths whose update the
    relay already had."""

    taken: list[str] = msgspec.field(default_factory=list)
    arrived: list[str] = msgspec.field(default_factory=list)


def not_held(copy: WorkingCopy) -> list[LiveUpdate]:
    """The updates in flight whose change is no longer in the folder."""
    flights = [msgspec.json.decode(body, type=LiveUpdate) for _, body in copy.db.flights()]
    return [update for update in flights if not _is_held(copy, update)]


def withdraw(copy: WorkingCopy) -> Withdrawn:
    """Withdraw the updates in flight whose change is no longer in the folder. Afterwards every difference
    from the relay's version counts as an edit. If a request fails, its error is raised, and the updates
    are still in flight."""
    done = Withdrawn()
    if copy.key is None:
        return done
    leaving = not_held(copy)
    settle(copy, [update.path for update in leaving if not is_settled(copy, update.path)])
    for start in range(0, len(leaving), limits.UPDATES_PER_BATCH):
        _withdraw(copy, leaving[start : start + limits.UPDATES_PER_BATCH], done)
    return done


def drop_undone(copy: WorkingCopy) -> None:
    """Drop captured edits that no update contains yet and whose files were changed back to the confirmed
    text. An edit that was undone must not be sent."""
    in_flight = copy.db.flight_kinds()
    for path in copy.db.may_need_update():
        entry = copy.entries.get(path)
        if entry is None or not entry.pending or not entry.settled or path in in_flight:
            continue
        now = copy.digest_on_disk(path)
        if now == entry.shadow or is_typed(copy.db, entry) or now != copy.confirmed_lane(entry).digest():
            continue
        with copy.db.step():
            _drop_pending(copy, entry)


def drop_refused(copy: WorkingCopy, earlier: Collection[int]) -> None:
    """Drop the updates in flight that the relay does not have, because it refused their whole request, or
    because they were not sent. `earlier`: numbers of the updates that stay in flight. The changes of the
    dropped ones stay on the disk, as edits."""
    flights = [msgspec.json.decode(body, type=LiveUpdate) for _, body in copy.db.flights()]
    leaving = [update for update in flights if update.n not in earlier]
    settle(copy, [update.path for update in leaving if not is_settled(copy, update.path)])
    with copy.db.step():
        copy.db.drop_flights(update.n for update in leaving)
        for update in leaving:
            _undo(copy, update.path)


def forget_flights(copy: WorkingCopy) -> None:
    """Forget all updates in flight, without knowing whether the relay has them. This is needed if the relay
    accepts no update that would show it. The folder continues as another replica, so that its new updates
    cannot be confused with the old ones. Edits stay on the disk."""
    last, sealed, sealed_at = copy.last_seal, copy.db.read_sealed(), copy.db.text(SEALED_AT)
    with copy.db.step():
        for path in copy.db.flight_kinds():
            _undo(copy, path)
        copy.db.drop_flights(copy.db.flight_numbers())
    copy.detach()
    if last is not None:
        copy.record_seal(last, sealed, whole=True)
        copy.db.put(SEALED_AT, sealed_at)


def _is_held(copy: WorkingCopy, update: LiveUpdate) -> bool:
    now, entry = copy.digest_on_disk(update.path), copy.entries.get(update.path)
    if update.kind == "delete":
        return now is None
    if update.kind != "edit_text":
        return now is not None and now.hex() == update.blake3
    if entry is None or is_typed(copy.db, entry):
        return True  # what is typed is a log of its own, in which nothing was saved
    return entry.settled and now == entry.shadow and entry.pending == len(update.ops or [])


def _withdraw(copy: WorkingCopy, leaving: Sequence[LiveUpdate], done: Withdrawn) -> None:
    answers = copy.transport.updates(batch_of(copy, [_nothing_instead(copy, update) for update in leaving]))
    by_n = {answer.n: answer for answer in answers.answers}
    if by_n.keys() != {update.n for update in leaving}:
        raise ServerMisbehaved("the server answered other updates than were sent; try again")
    arrived = [update for update in leaving if _had_arrived(update, by_n[update.n])]
    record_answers(
        copy, arrived, UpdateAnswers(answers.seq, [by_n[update.n] for update in arrived]), SendResult()
    )
    done.arrived += [update.path for update in arrived]
    taken = [update for update in leaving if update not in arrived]
    with copy.db.step():
        copy.db.drop_flights(update.n for update in taken)
        for update in taken:
            _undo(copy, update.path)
    done.taken += [update.path for update in taken]


def _nothing_instead(copy: WorkingCopy, update: LiveUpdate) -> LiveUpdate:
    """An update with the same number that changes nothing, because it removes a file that the relay does not
    have."""
    assert copy.key is not None  # noqa: S101 - `withdraw` needs it
    bare = LiveUpdate(
        n=update.n, settled=update.settled, path=update.path, kind="delete", gen=FOREIGN, base=0, signature=""
    )
    signed = signing_bytes(copy.repo.repo_id, copy.branch_id, copy.replica, copy.key.id, bare)
    return msgspec.structs.replace(bare, signature=b64u(copy.key.sign(signed)))


def _had_arrived(update: LiveUpdate, answer: UpdateAnswer) -> bool:
    """Whether the relay had accepted `update` before it was withdrawn. `answer`: the answer to the update
    that replaced it under the same number. The answer `settled` means yes, because it says that the number
    was already used."""
    if answer.result != "ok":
        return answer.result == "settled"
    return update.kind == "delete" or bool(answer.digest)


def _undo(copy: WorkingCopy, path: str) -> None:
    """Reset the entry of the path to the version that the relay confirmed. Runs in the caller's
    transaction."""
    entry = copy.entries.get(path)
    if entry is None:
        return
    if not entry.gen:
        copy.forget(path)
        return
    copy.db.mark_row_stale(path)  # the update may have been refused, for a newer lane
    if entry.pending:
        _drop_pending(copy, entry)


def _drop_pending(copy: WorkingCopy, entry: PathRecord) -> None:
    """Drop captured edits from the record. A file on the disk that still has them counts as edited again."""
    text = copy.confirmed_lane(entry).text()
    name = blake3(text)
    copy.objects.add([(name, text)])
    copy.edited_lanes.pop(entry)
    copy.db.put_pending(entry.path, [])
    drop_typed(copy.db, entry.path)
    settled = entry.settled
    entry.pending, entry.want, entry.size = 0, name, len(text)
    entry.shadow = name if settled else entry.shadow
    copy.save(entry)
