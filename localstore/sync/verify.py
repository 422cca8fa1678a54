"""Verifies seals and trees that a relay sends."""

from __future__ import annotations

import msgspec

from localstore.core import seal as seals
from localstore.core.encoding import unb64u, unhex
from localstore.core.errors import Invalid, ServerMisbehaved, SvcError
from localstore.core.identity.keys import check_ed25519, key_id
from localstore.core.model import limits
from localstore.core.model.history import Seal, Tree
from localstore.core.model.repo import FilteredView
from localstore.core.paths import check, terminal_safe
from localstore.core.tree import Hidden, TreeEntry, root_digest
from localstore.core.tree.build import NONE_HIDDEN
from localstore.core.tree.proof import proven
from localstore.record.database import SealedFile
from localstore.sync.transfer.transport import Transport

CHAIN_MAX = 100_000


def seal(received: Seal, seal_id: str, repo_id: str, named: bool = False) -> seals.SealPayload:
    """Verify the seal `seal_id` and return its payload. Raises ServerMisbehaved if id, signature, key or
    repository do not match.

    `named`: a seal that was already verified names this seal as a parent. Then it may be of any repository,
    such as the one that was forked. Otherwise it must be of this repository, or of the one that the relay
    gives as its `origin`. Nothing here proves this origin; `head` checks more."""
    if received.id != seal_id:
        raise ServerMisbehaved(f"asked for seal {seal_id[:12]}, got {terminal_safe(received.id[:12])}")
    try:
        raw = unb64u(received.payload)
        public = unb64u(received.key.public_key, 32)
        check_ed25519(public)
        payload = seals.decode(raw)
        seals.verify(raw, unb64u(received.signature.value, 64), public)
    except SvcError as error:
        raise ServerMisbehaved(f"seal {received.id[:12]} does not verify: {error.detail}") from None
    if seals.seal_id(raw) != received.id:
        raise ServerMisbehaved(f"seal {received.id[:12]} has other bytes than its id says")
    if key_id(public) != payload.provenance.device_key_id:
        raise ServerMisbehaved(f"seal {received.id[:12]} is not signed by the device that it names")
    if not named and payload.repo_id not in (repo_id, received.origin):
        raise ServerMisbehaved(f"seal {received.id[:12]} belongs to another repository")
    return payload


def head(transport: Transport, seal_id: str, last: str | None, repo_id: str) -> seals.SealPayload:
    """Verify the head of a branch and return its payload. Raises ServerMisbehaved. A head that was sealed in
    another repository must share history with `last`, a seal that the folder has verified. If `last` is None,
    this is not checked: the relay is trusted that the head belongs to this repository."""
    payload = seal(transport.seal(seal_id), seal_id, repo_id)
    if (
        payload.repo_id != repo_id
        and last is not None
        and not _are_related(transport, seal_id, last, repo_id)
    ):
        raise ServerMisbehaved(
            f"seal {seal_id[:12]} was made in another repository, whose history this folder shares nothing of"
        )
    return payload


def _are_related(transport: Transport, first: str, second: str, repo_id: str) -> bool:
    """Whether the two seals have a common ancestor along first parents. Both histories are walked at the same
    time."""
    seen: tuple[set[str], set[str]] = ({first}, {second})
    tips: list[str | None] = [first, second]
    for step in range(CHAIN_MAX):
        if tips[step % 2 - 1] in seen[step % 2]:
            return True
        at = tips[step % 2]
        if at is None:
            if tips == [None, None]:
                break
            continue
        parents = seal(transport.seal(at), at, repo_id, named=True).parents
        tips[step % 2] = parents[0] if parents else None
        seen[step % 2].update(parents[:1])
    return False


def chain(transport: Transport, head: str, last: str | None, repo_id: str) -> list[Seal]:
    """The verified seals from `head` back to `last`, newest first, without `last`. Only first parents are
    followed, for at most CHAIN_MAX seals.

    If `last` is None, the result is only the head. If `last` is not among the ancestors, as after the branch
    was reset, the result goes back to the first seal of the history."""
    verified: list[Seal] = []
    seal_id: str | None = head
    while seal_id is not None and seal_id != last and len(verified) < CHAIN_MAX:
        received = transport.seal(seal_id)
        payload = seal(received, seal_id, repo_id, named=bool(verified))
        verified.append(received)
        if last is None:
            break
        seal_id = payload.parents[0] if payload.parents else None
    return verified


class Shown(msgspec.Struct, frozen=True):
    """The part of a seal's tree that this account sees. `files`: the visible files by path; `opaque`: entry
    digests of hidden files."""

    files: dict[str, SealedFile]
    opaque: Hidden


def files(
    transport: Transport, seal_id: str, payload: seals.SealPayload, answer: Tree | None = None
) -> dict[str, SealedFile]:
    """The files of a seal that this account sees, verified against the seal's content digest. If paths are
    hidden, a proof is used for this. `answer`: the seal's tree, if it was already requested. Raises
    ServerMisbehaved."""
    return read_part(transport, seal_id, payload, answer).files


def read_part(
    transport: Transport, seal_id: str, payload: seals.SealPayload, answer: Tree | None = None
) -> Shown:
    """The part of a seal's tree that this account sees, verified as `files` says. `answer`: the seal's tree,
    if it was already requested. Raises ServerMisbehaved."""
    answer = answer or transport.tree(seal_id)
    if answer.filtered:
        return by_proof(transport.proof(seal_id), payload)
    return Shown(tree(answer, payload), NONE_HIDDEN)


def opaque(transport: Transport, seal_id: str, repo_id: str) -> Hidden:
    """The verified entry digests of those files of a seal that this account does not see. Raises
    ServerMisbehaved."""
    payload = seal(transport.seal(seal_id), seal_id, repo_id)
    return by_proof(transport.proof(seal_id), payload).opaque


def by_proof(proof: bytes, payload: seals.SealPayload) -> Shown:
    """Verify the proof of a seal's tree and return its content. Raises ServerMisbehaved."""
    try:
        proven_tree = proven(proof, unhex(payload.content_digest))
        for path in proven_tree.files:
            check(path)
    except SvcError as error:
        raise ServerMisbehaved(f"the tree of this seal does not verify: {error.detail}") from None
    visible = {
        path: SealedFile(entry.kind, entry.digest, entry.size) for path, entry in proven_tree.files.items()
    }
    return Shown(visible, proven_tree.opaque)


def tree(answer: Tree, payload: seals.SealPayload) -> dict[str, SealedFile]:
    """The files of a seal, verified against its content digest. Raises FilteredView if paths are hidden.
    Raises ServerMisbehaved for unsafe paths, and for an answer that lacks the tree key, which the computation
    of the digest needs."""
    if answer.filtered:
        raise FilteredView(
            "some paths of this repository are for its writers only, and without them its tree cannot be "
            "verified; nothing was written. Single files can be read by their paths"
        )
    if answer.tree_key is None:
        raise ServerMisbehaved(
            "the server sent a part of a tree that cannot be verified; nothing was written"
        )
    files: dict[str, SealedFile] = {}
    try:
        for entry in answer.entries:
            if entry.kind == "dir":
                continue
            check(entry.path)
            files[entry.path] = SealedFile(entry.kind, unhex(entry.blake3), entry.size)
        if len(files) > limits.TREE_ENTRIES:
            raise Invalid("the tree has too many files")
        if content_digest(files, unb64u(answer.tree_key, 32)).hex() != payload.content_digest:
            raise Invalid("its files are not the ones that were sealed")
    except SvcError as error:
        raise ServerMisbehaved(f"the tree of this seal does not verify: {error.detail}") from None
    return files


def content_digest(files: dict[str, SealedFile], key: bytes, opaque: Hidden = NONE_HIDDEN) -> bytes:
    """Root digest of a tree that has these files and the hidden entries `opaque`, salted with the tree key
    (32 bytes)."""
    entries = {path: TreeEntry(file.kind, file.digest, file.size) for path, file in files.items()}
    return root_digest(entries, key, opaque)
