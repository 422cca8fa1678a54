"""Sealing: the relay prepares the bytes of the seal, then the client checks every field and signs the
bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast, get_args

import msgspec

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u, unhex
from localstore.core.errors import Invalid, ServerMisbehaved, SvcError, Unauthorized
from localstore.core.lane.lane import Lane
from localstore.core.model.live import LaneName, LaneState
from localstore.core.model.seal import FinalizeRequest, Prepared, PrepareRequest, SealChange
from localstore.core.paths import check
from localstore.core.seal import MergeOrigin
from localstore.record.database import SealedFile, SealedTree
from localstore.record.entry import Kind, PathRecord
from localstore.sync import sealed_tree, verify
from localstore.sync.remote import state_bytes
from localstore.sync.transfer.lane_states import lane_states
from localstore.sync.working_copy import SEALED_AT, WorkingCopy

KINDS = get_args(Kind)
LACKING = "lacking"  # paths of the last own seal whose sealed version was not on the disk


class Sealed(msgspec.Struct):
    """The result of `seal`.

    - `seal`: the new seal. None if nothing was sealed, because the tree equals the head's tree.
    - `changed`: the changed paths, sorted.
    - `removed`: those of the changed paths that have no file now.
    - `live_by`: path → handles of others whose live edits are in the seal.
    - `lacking`: those paths of `live_by` whose sealed version is not on this disk."""

    seal: str | None
    changed: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    live_by: dict[str, list[str]] = msgspec.field(default_factory=dict)
    lacking: list[str] = msgspec.field(default_factory=list)


class _UnconfirmedSeal(msgspec.Struct):
    """A seal that was signed and sent, and whose answer has not arrived. It is stored, so that the next
    command recognises the seal if it became the head."""

    seal: str
    parent: str | None
    changes: list[SealChange]


def seal(copy: WorkingCopy, message: str, author: str | None = None, merged: Sequence[str] = ()) -> Sealed:
    """Seal the branch's live frontier. `merged`: seals that were merged into the frontier.

    Raises StaleHead if another seal was made first. Raises ServerMisbehaved, with nothing signed, if a
    prepared field differs from the request."""
    if copy.key is None:
        raise Unauthorized("sealing needs a device key; run: svc login")
    request = PrepareRequest(
        message=message,
        device_key_id=copy.key.id,
        expected_head=copy.last_seal,
        author=author,
        replica=copy.replica,
        settled=_find_settled(copy),
        merged=list(merged),
    )
    prepared = copy.transport.prepare(request)
    if prepared.unchanged:
        return Sealed(None)
    raw = unb64u(prepared.bytes)
    changes = _checked_changes(prepared)
    _check_payload(copy, prepared, raw, request)
    tree = _check_content(copy, prepared, changes)
    _check_shared(copy, prepared, changes)
    promise = _UnconfirmedSeal(seals.seal_id(raw), copy.last_seal, prepared.changes)
    lacking = sorted(path for path in prepared.live_by if not _has_sealed_text(copy, path, changes.get(path)))
    with copy.db.step():
        copy.db.put(LACKING, msgspec.json.encode(lacking))
        copy.db.put("prepared", msgspec.json.encode(promise))
        copy.db.put(SEALED_AT, seals.decode(raw).created_at)
    copy.transport.finalize(
        FinalizeRequest(
            prepare_id=prepared.prepare_id,
            device_key_id=copy.key.id,
            signature=b64u(copy.key.sign(raw)),
        )
    )
    copy.record_seal(promise.seal, changes, whole=False, tree=tree)
    return Sealed(
        promise.seal,
        changed=sorted(changes),
        removed=sorted(path for path, file in changes.items() if file is None),
        live_by=prepared.live_by,
        lacking=lacking,
    )


def lacking_paths(copy: WorkingCopy) -> set[str]:
    """The paths of the newest seal that this folder made whose sealed version was not on the disk then,
    because somebody else had edited them."""
    encoded = copy.db.get(LACKING)
    return set(msgspec.json.decode(encoded, type=list[str])) if isinstance(encoded, bytes) else set()


def _has_sealed_text(copy: WorkingCopy, path: str, sealed: SealedFile | None) -> bool:
    """Whether the folder has the sealed version of this path, according to the record. `sealed`: the sealed
    version, None if the seal has no file at the path."""
    entry = copy.entries.get(path)
    if entry is None or sealed is None:
        return entry is None and sealed is None
    return entry.shadow == sealed.digest


def _origin(request: PrepareRequest) -> MergeOrigin | None:
    return MergeOrigin("merge", request.merged) if request.merged else None


def _find_settled(copy: WorkingCopy) -> int:
    """The number up to which all updates of this replica have been answered."""
    lowest = copy.db.lowest_flight()
    return copy.db.number("n") if lowest is None else lowest - 1


def adopt_unconfirmed_seal(copy: WorkingCopy, head: str | None) -> None:
    """If the head is a seal that this folder sent without getting an answer, record it as the folder's last
    seal."""
    encoded = copy.db.get("prepared")
    if head is None or head == copy.last_seal or not isinstance(encoded, bytes):
        return
    promise = msgspec.json.decode(encoded, type=_UnconfirmedSeal)
    if promise.seal == head and promise.parent == copy.last_seal:
        copy.record_seal(head, _files(promise.changes), whole=False)


def _checked_changes(prepared: Prepared) -> dict[str, SealedFile | None]:
    try:
        return _files(prepared.changes)
    except SvcError as error:
        raise ServerMisbehaved(f"the server prepared an invalid tree: {error.detail}") from None


def _files(changes: list[SealChange]) -> dict[str, SealedFile | None]:
    files: dict[str, SealedFile | None] = {}
    for change in changes:
        check(change.path)
        if change.kind is None:
            files[change.path] = None
        elif change.kind in KINDS:
            files[change.path] = SealedFile(cast(Kind, change.kind), unhex(change.digest), change.size)
        else:
            raise ServerMisbehaved(f"the server prepared {change.path} as {change.kind}")
    return files


def _check_payload(copy: WorkingCopy, prepared: Prepared, raw: bytes, request: PrepareRequest) -> None:
    try:
        payload = seals.decode(raw)
    except SvcError as error:
        raise ServerMisbehaved(f"the server prepared an invalid seal: {error.detail}") from None
    expected = {
        "repository": (payload.repo_id, copy.repo.repo_id),
        "branch": (payload.branch, copy.repo.branch),
        "parent": (payload.parents, [copy.last_seal] if copy.last_seal else []),
        "message": (payload.message, request.message),
        "device key": (payload.provenance.device_key_id, request.device_key_id),
        "tree key": (payload.tree_key_id, copy.db.text("tree_key_id")),
        "author": (payload.provenance.author, request.author),
        "git origin": (payload.provenance.git, None),
        "merge origin": (payload.provenance.merge, _origin(request)),
        "content digest": (payload.content_digest, prepared.content_digest),
        "id": (seals.seal_id(raw), prepared.digest),
    }
    wrong = [name for name, (stated, requested) in expected.items() if stated != requested]
    if wrong:
        raise ServerMisbehaved(
            f"the server prepared a seal with another {', '.join(wrong)}; nothing was signed"
        )


def _check_content(
    copy: WorkingCopy, prepared: Prepared, changes: dict[str, SealedFile | None]
) -> SealedTree:
    """Check that the prepared tree is the last seal's tree with the changes. Also check that it contains the
    bytes that this working copy sent. Returns the tree. Raises ServerMisbehaved."""
    expected = unhex(prepared.content_digest)
    tree = sealed_tree.tree_after(copy, changes, expected)
    if tree is None and copy.last_seal is not None:  # it may have entries of which nobody here sees more
        opaque = verify.opaque(copy.transport, copy.last_seal, copy.repo.repo_id)
        tree = sealed_tree.tree_after(copy, changes, expected, opaque) if opaque else None
    if tree is None:
        raise ServerMisbehaved("the prepared tree is not this folder's plus the changes; nothing was signed")
    for path, sealed in changes.items():
        entry = copy.entries.get(path)
        if entry is None or sealed is None or path in prepared.live_by:
            continue
        ours = entry.settled and not entry.pending and entry.gen
        if ours and sealed.digest != entry.want:
            raise ServerMisbehaved(f"the prepared tree holds other bytes of {path}; nothing was signed")
    return tree


def _check_shared(copy: WorkingCopy, prepared: Prepared, changes: dict[str, SealedFile | None]) -> None:
    """Check that each lane that others also edited still contains the updates that this folder sent. Raises
    ServerMisbehaved."""
    mine = {
        path: entry
        for path, file in changes.items()
        if file is not None
        and path in prepared.live_by
        and (entry := copy.entries.get(path)) is not None
        and entry.touched
        and entry.want != file.digest
    }
    names = [LaneName(path=path, gen=entry.gen, epoch=entry.epoch) for path, entry in mine.items()]
    for state in lane_states(copy.transport, names):
        entry = mine.get(state.path)
        if entry is not None and not _holds(copy, entry, state):
            raise ServerMisbehaved(f"the branch lost edits of {state.path}; nothing was signed")


def _holds(copy: WorkingCopy, entry: PathRecord, state: LaneState) -> bool:
    """Whether the relay's lane contains every update that the relay confirmed to this working copy."""
    if (state.gen, state.epoch) != (entry.gen, entry.epoch):
        return True  # replaced, or in a new epoch: nothing to compare with
    confirmed = copy.confirmed_state(entry)
    try:
        raw = state_bytes(state.state)
        if confirmed is None or raw is None:
            return confirmed is None
        lane = Lane.load(raw)
        alone = lane.digest()
        lane.merge(confirmed)
        return lane.digest() == alone
    except Invalid as error:
        raise ServerMisbehaved(
            f"the server sent invalid edits of {state.path} ({error.detail}); nothing was signed"
        ) from None
