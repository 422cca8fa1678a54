"""Merges a proposal: the server prepares the seals, this machine computes the merge itself, and then signs
the seals.

With a signature, the user states that they made this tree. So everything in the prepared bytes is computed
again from verified seals: parents, message, and every merged file up to the root of the tree."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ServerMisbehaved, SvcError
from localstore.core.identity.keys import DeviceKey
from localstore.core.merge.moves import Moves, searches
from localstore.core.merge.three_way import MergedTree, Plan, agreed, finish, merged_texts, plan
from localstore.core.model import history
from localstore.core.model.history import TreeQuery
from localstore.core.model.merge import MergeSeal, PreparedMerge, Strategy
from localstore.core.model.proposal import Proposal
from localstore.core.paths import terminal_safe
from localstore.core.seal import MergeOrigin, SealPayload
from localstore.core.tree import Hidden, TreeEntry
from localstore.core.tree.read import Change
from localstore.record.database import SealedFile
from localstore.sync import verify
from localstore.sync.sealed_tree import changes_between
from localstore.sync.transfer.fetch import verified_frames
from localstore.sync.verify import Shown
from svc.api import Api
from svc.flows.history.ancestry import VerifiedSeals, require_bases

LINE_MAX = 10_000  # seals of a branch that are read
TEXTS_AT_ONCE = 1000

Files = dict[str, SealedFile]


class MergeOptions(msgspec.Struct, frozen=True):
    """The merge that the user requests. `strategy` is how the proposal is merged, or `update` if its base
    comes into its branch. `message` is the message of the new seal. If it is None, the server's message is
    used, or for a rebase the messages of the merged seals."""

    proposal: Proposal
    strategy: Strategy
    message: str | None = None


def signatures(
    api: Api, repo_id: str, request: MergeOptions, prepared: PreparedMerge, key: DeviceKey
) -> list[str]:
    """Check the seals that the server prepared, and return their signatures, in order. If a seal differs from
    the one that this machine computes, raises ServerMisbehaved and signs nothing."""
    checked = VerifiedObjects(api, repo_id)
    expected = _expected_seals(checked, request, prepared)
    if len(expected) != len(prepared.seals):
        raise _mismatch("number of seals")
    parent, raws = _start(prepared, checked), []
    opaque = checked.opaque(parent[0])
    for expected_seal, prepared_seal in zip(expected, prepared.seals, strict=True):
        root = verify.content_digest(expected_seal.files, unb64u(prepared.tree_key, 32), opaque)
        raws.append(_raw(checked, request, prepared, key, expected_seal, prepared_seal, parent, root))
        parent = [prepared_seal.digest]
    return [b64u(key.sign(raw)) for raw in raws]


class _Seal(msgspec.Struct, frozen=True):
    """A seal that this machine computed, to compare with the one that the server prepared. `source` is the id
    of the seal whose changes are merged. `message` is None if any message is allowed."""

    source: str
    files: Files
    message: str | None
    author: str | None = None


class VerifiedObjects:
    """Seals, trees and texts from the server. Each is verified, and read only once."""

    def __init__(self, api: Api, repo_id: str) -> None:
        self._api, self.repo_id = api, repo_id
        self.seals = VerifiedSeals(api, repo_id)
        self._trees: dict[str, Shown] = {}
        self.texts: dict[bytes, bytes] = {}

    def payload(self, seal: str) -> SealPayload:
        return self.seals.payload(seal)

    def files(self, seal: str) -> Files:
        return self._shown_tree(seal).files

    def opaque(self, seal: str) -> Hidden:
        """Return the entries of the seal's tree that are hidden from the user, as digests. A seal that is
        made on top of this seal must have the same entries."""
        return self._shown_tree(seal).opaque

    def _shown_tree(self, seal: str) -> Shown:
        if seal not in self._trees:
            payload = self.payload(seal)
            answer = self._api.send(history.TREE, query=TreeQuery(recursive=True), id=self.repo_id, sha=seal)
            if answer.filtered:
                proof = self._api.history.proof(self.repo_id, seal)
                self._trees[seal] = verify.by_proof(proof, payload)
            else:
                self._trees[seal] = Shown(verify.tree(answer, payload), {})
        return self._trees[seal]

    def load(self, digests: Iterable[bytes]) -> None:
        missing = [name for name in dict.fromkeys(digests) if name not in self.texts]
        for start in range(0, len(missing), TEXTS_AT_ONCE):
            group = missing[start : start + TEXTS_AT_ONCE]
            with self._api.payload.get_pack(self.repo_id, group) as pieces:
                for _, objects in verified_frames(pieces):
                    self.texts |= dict(objects)
        if any(name not in self.texts for name in missing):
            raise ServerMisbehaved("the server did not send a text that the merge joins; nothing was signed")

    def merge(self, bases: Sequence[Files], ours: Files, theirs: Files, apart: bool = False) -> Files:
        """Merge `theirs` into `ours`, and return the resulting files. `apart` says that the two sides must
        not have changed the same file. Raises ServerMisbehaved for conflicts, because the server found
        none."""
        plans = [
            self._plan(changes_between(base, ours), changes_between(base, theirs), apart)
            for base in bases or [{}]
        ]
        self.load(name for plan in plans for name in plan.digests())
        outcome: MergedTree = agreed([finish(plan, dict(merged_texts(plan, self.texts))) for plan in plans])
        if outcome.conflicts or (apart and any(plan.both for plan in plans)):
            raise _mismatch("outcome: here it has conflicts")
        self.texts |= outcome.texts
        return _apply_changes(ours, outcome.changes)

    def _plan(self, ours: Mapping[str, Change], theirs: Mapping[str, Change], apart: bool) -> Plan:
        if apart:
            return plan(ours, theirs)
        move_searches = searches(ours, theirs)
        self.load(name for search in move_searches for name in search.digests())
        return plan(ours, theirs, Moves(*(search.pairs(self.texts) for search in move_searches)))


def _start(prepared: PreparedMerge, checked: VerifiedObjects) -> list[str]:
    """Return the ids of the parents that the first new seal must have. Raises ServerMisbehaved for a
    fast-forward if the base is not an ancestor of the branch."""
    base, head = prepared.base_seal, prepared.head_seal
    if prepared.strategy == "update":
        return [head]
    if prepared.strategy == "merge":
        return [base, head]
    if prepared.strategy == "fast_forward" and _payload(prepared.seals[0]).parents == [head]:
        if not _line(checked, head, [base])[1]:
            raise _mismatch("parent: the branch does not continue its base")
        return [head]
    return [base]


def _expected_seals(checked: VerifiedObjects, request: MergeOptions, prepared: PreparedMerge) -> list[_Seal]:
    proposal = request.proposal
    if prepared.strategy != request.strategy:
        raise _mismatch("strategy")
    if (prepared.base_seal, prepared.head_seal) != (proposal.base_seal, proposal.head_seal):
        raise _mismatch("base or head")
    require_bases(checked.seals, prepared.base_seal, prepared.head_seal, prepared.merge_bases)
    base, head = checked.files(prepared.base_seal), checked.files(prepared.head_seal)
    bases = [checked.files(seal_id) for seal_id in prepared.merge_bases]
    if prepared.strategy == "fast_forward":
        if prepared.base_seal not in prepared.merge_bases:
            raise _mismatch("merge base")
        return [_Seal(prepared.head_seal, head, request.message)]
    if prepared.strategy == "update":
        return [_Seal(prepared.base_seal, checked.merge(bases, head, base), request.message)]
    if prepared.strategy == "rebase":
        return _rebase_seals(checked, prepared, base)
    apart = prepared.strategy == "merge"
    return [_Seal(prepared.head_seal, checked.merge(bases, base, head, apart), request.message)]


def _rebase_seals(checked: VerifiedObjects, prepared: PreparedMerge, files: Files) -> list[_Seal]:
    """Compute the branch's seals again on top of the base. `files` are the files of the base. Seals that
    change nothing there are left out."""
    rebased = []
    for seal in _line(checked, prepared.head_seal, prepared.merge_bases)[0]:
        payload = checked.payload(seal)
        before = checked.files(payload.parents[0]) if payload.parents else {}
        after = checked.merge([before], files, checked.files(seal))
        if after != files:
            rebased.append(_Seal(seal, after, payload.message, payload.provenance.author))
        files = after
    return rebased


def _line(checked: VerifiedObjects, head: str, ends: Sequence[str]) -> tuple[list[str], bool]:
    """Follow first parents back from the seal `head` until a seal is reached that is in `ends`, or from which
    one of these was made. Returns the ids of the seals on the way, oldest first and including `head`, and
    whether a seal in `ends` was reached."""
    ids: list[str] = []
    at: str | None = head
    history = _History(checked, ends)
    while at is not None and at not in ends and len(ids) < LINE_MAX:
        if history.has(at):
            break
        ids.append(at)
        parents = checked.payload(at).parents
        at = parents[0] if parents else None
    return ids[::-1], at in ends


class _History:
    """The seals from which some seals were made, over all parents. It is read from the newest to the oldest,
    and only as far as it is needed."""

    def __init__(self, checked: VerifiedObjects, seals: Iterable[str]) -> None:
        self._checked, self._ids = checked, set(seals)
        self._unread: list[tuple[str, str]] | None = None  # (when it was made, id), sorted

    def has(self, seal: str) -> bool:
        """Whether the seal is in this history. Seals that were made later than it are read for this."""
        created = self._checked.payload(seal).created_at
        if self._unread is None:
            self._unread = sorted((self._checked.payload(name).created_at, name) for name in self._ids)
        while self._unread and self._unread[-1][0] >= created and len(self._ids) < LINE_MAX:
            _, name = self._unread.pop()
            for parent in self._checked.payload(name).parents:
                if parent not in self._ids:
                    self._ids.add(parent)
                    insort(self._unread, (self._checked.payload(parent).created_at, parent))
        return seal in self._ids


def _raw(
    checked: VerifiedObjects,
    request: MergeOptions,
    prepared: PreparedMerge,
    key: DeviceKey,
    expected_seal: _Seal,
    prepared_seal: MergeSeal,
    parents: list[str],
    root: bytes,
) -> bytes:
    """Return the bytes of a prepared seal, which are then signed. Before that, each field of the seal is
    compared with what this machine expects. Raises ServerMisbehaved with the names of the fields that differ.
    `parents` are ids. `root` is the root digest of the tree that this machine computed."""
    raw, payload = unb64u(prepared_seal.bytes), _payload(prepared_seal)
    proposal, update = request.proposal, prepared.strategy == "update"
    origin = MergeOrigin("merge" if update else prepared.strategy, [expected_seal.source], proposal.number)
    expected = {
        "repository": (payload.repo_id, checked.repo_id),
        "branch": (payload.branch, proposal.head if update else proposal.base),
        "parent": (payload.parents, parents),
        "message": (
            payload.message,
            payload.message if expected_seal.message is None else expected_seal.message,
        ),
        "device key": (payload.provenance.device_key_id, key.id),
        "tree key": (payload.tree_key_id, prepared.tree_key_id),
        "author": (payload.provenance.author, expected_seal.author),
        "git origin": (payload.provenance.git, None),
        "merge origin": (payload.provenance.merge, origin),
        "tree": (payload.content_digest, root.hex()),
        "id": (seals.seal_id(raw), prepared_seal.digest),
    }
    wrong = [name for name, (sent, own) in expected.items() if sent != own]
    if wrong:
        raise _mismatch(", ".join(wrong))
    return raw


def _payload(prepared_seal: MergeSeal) -> SealPayload:
    return payload_of(prepared_seal.bytes)


def payload_of(prepared: str) -> SealPayload:
    """Decode the payload that the server prepared, from base64url. Raises ServerMisbehaved if it is not a
    seal."""
    try:
        return seals.decode(unb64u(prepared))
    except SvcError as error:
        raise ServerMisbehaved(f"the server prepared an invalid seal: {error.detail}") from None


def _mismatch(what: str) -> ServerMisbehaved:
    return ServerMisbehaved(
        f"the server prepared a merge with another {terminal_safe(what)}; nothing was signed"
    )


def _apply_changes(files: Files, changes: Mapping[str, TreeEntry | None]) -> Files:
    result = {path: file for path, file in files.items() if path not in changes}
    for path, entry in changes.items():
        if entry is not None:
            result[path] = SealedFile(entry.kind, entry.digest, entry.size)
    return result
