"""A seal before its signature: its payload, and the rows to write when it is signed."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from localstore.core import seal as seals
from localstore.core import tree
from localstore.core.encoding import b64u
from localstore.core.errors import Invalid, TooLarge
from localstore.core.model.limits import MESSAGE_BYTES, in_words
from localstore.core.model.seal import PrepareExpired
from localstore.core.seal import GitOrigin, MergeOrigin, Provenance, SealPayload
from localstore.core.tree import Built, TreeEntry
from relay.base.clock import now_ms
from relay.caller import View
from relay.db import seal as rows
from relay.db.engine.database import Tx
from relay.db.live.replica import KeyRow
from relay.db.ref import RefRow
from relay.db.seal import SealDraft
from relay.domain.history import content
from relay.domain.storage import chunked


class Wish(Protocol):
    """The fields that every request for a seal has: the message, the id of the device key that will sign, and
    the author of an imported commit. The author is None for other seals."""

    @property
    def message(self) -> str: ...
    @property
    def device_key_id(self) -> str: ...
    @property
    def author(self) -> str | None: ...


LARGE = 100_000  # bytes of a prepared seal, about 1,000 changes, whose files are looked for beforehand
_DRAFTS = msgspec.msgpack.Decoder(list[SealDraft])


def check_message(message: str) -> None:
    """Raise Invalid if the message is empty, has NUL, or is longer than MESSAGE_BYTES in UTF-8."""
    if not message.strip():
        raise Invalid("a seal needs a message", pointer="/message")
    if "\0" in message:
        raise Invalid("the message contains a NUL", pointer="/message")
    if len(message.encode("utf-8", "surrogatepass")) > MESSAGE_BYTES:
        raise TooLarge(f"a message has at most {in_words(MESSAGE_BYTES)}")


def capability_of(view: View) -> str:
    """The authority under which a seal is made, as `ROLE/KIND/ID`: the caller's role in the repository, and
    the kind and id of the session or token. `KIND` ends with `+narrowed` if the token was narrowed. For a key
    that signs its requests without a session, KIND is `self` and ID is the key's id."""
    me = view.me
    kind = f"{me.session_kind}+narrowed" if me.narrowed else me.session_kind
    return f"{view.role or 'none'}/{kind}/{me.session_id}"


def require_same_capability(view: View, seal_draft: SealDraft) -> None:
    """Raise PrepareExpired unless the prepared bytes still apply. They must name the caller's present
    capability (role and session). Their tree must have been made with the tree key that the repository has
    now."""
    payload = seals.decode(seal_draft.payload)
    if payload.tree_key_id != view.repo.tree_key_id:
        raise PrepareExpired("a path became private since this was prepared; nothing was sealed, push again")
    if payload.provenance.capability != capability_of(view):
        raise PrepareExpired(
            "this seal was prepared under another session or role; nothing was sealed, push again"
        )


def make_draft(
    view: View,
    branch: str,
    parents: list[str],
    root: bytes,
    body: Wish,
    changes: Mapping[str, TreeEntry | None],
    git: GitOrigin | None = None,
    merge: MergeOrigin | None = None,
) -> SealDraft:
    """Make an unsigned seal of the tree with this root. It has the exact bytes to sign, and the rows to write
    once they are signed."""
    now = now_ms()
    payload = SealPayload(
        repo_id=view.repo.id,
        branch=branch,
        parents=parents,
        content_digest=root.hex(),
        tree_key_id=view.repo.tree_key_id,
        message=body.message,
        provenance=Provenance(
            account_id=view.me.account_id,
            device_key_id=body.device_key_id,
            capability=capability_of(view),
            author=body.author,
            git=git,
            merge=merge,
        ),
        created_at=seals.timestamp(datetime.fromtimestamp(now / 1000, UTC)),
        nonce=b64u(secrets.token_bytes(seals.NONCE_SIZE)),
    )
    raw = seals.encode(payload)
    listed: list[tuple[str, str | None, bytes, int]] = [
        (path, entry.kind if entry else None, entry.digest if entry else b"", entry.size if entry else 0)
        for path, entry in sorted(changes.items())
    ]
    return SealDraft(seals.seal_id(raw), raw, root, parents, body.message, now, listed)


async def are_bytes_held_and_safe(view: View, prepare_id: str) -> bool:
    """Whether all objects of a large prepared seal are stored and safe from the collector, so that the
    landing transaction need not check them. Always False for a small seal, because checking it twice would
    cost more."""
    size = await view.node.db.lookup(rows.PREPARED_BYTES, prepare_id=prepare_id)
    if size is None or size[0] < LARGE:
        return False
    async with view.read() as tx:
        row = await tx.one(rows.PREPARED, prepare_id=prepare_id)
        if row is None:
            return False
        seal_draft = _DRAFTS.decode(rows.to_prepared(row).seals)[-1]
        files = {(kind, digest, size) for _, kind, digest, size in seal_draft.changes if kind}
        return await content.is_held_and_safe(view.node, tx, view.repo.id, files)


async def require_bytes(tx: Tx, view: View, seal_draft: SealDraft) -> None:
    """Check that everything that the seal names is still stored, and protect it from the collector."""
    files = {(kind, digest, size) for _, kind, digest, size in seal_draft.changes if kind}
    await chunked.touch(tx, view.repo.id, {digest for kind, digest, _ in files if kind == "chunked"})
    await content.require_files(view.node, tx, view.repo.id, files)


async def require_seals(tx: Tx, view: View, named: Sequence[str], pointer: str) -> None:
    """Raise Invalid unless all ids in `named` are seals of this repository. `pointer`: the field of the body
    that names them."""
    if not named:
        return
    held = {row[0] for row in await tx.all(rows.HEADS, repo_id=view.repo.id, ids=sorted(set(named)))}
    for seal_id in named:
        if seal_id not in held:
            raise Invalid(f"no seal {seal_id[:12]} in {view.repo.full_name}", pointer=pointer)


async def record_seal(
    tx: Tx, view: View, ref: RefRow, seal_draft: SealDraft, signature: bytes, key: KeyRow
) -> None:
    """Insert the signed seal with its parents, the seals that it merged, and its changes."""
    merge = seals.decode(seal_draft.payload).provenance.merge
    sources = (
        [source for source in merge.sources if source not in seal_draft.parents] if merge is not None else []
    )
    above = {row[0]: row for row in await tx.all(rows.RANKS, ids=[*seal_draft.parents, *sources])}
    parents = [above[parent] for parent in seal_draft.parents if parent in above]
    ranks = [rank for _, _, rank, _ in above.values()]
    order_at = max((at for *_, at in above.values()), default=0)
    merged = bool(sources) or any(rank is not None for rank in ranks)
    await tx.run(
        rows.INSERT,
        id=seal_draft.id,
        repo_id=view.repo.id,
        branch=ref.name,
        generation=1 + max((row[1] for row in parents), default=0),
        rank=1 + max(generation if rank is None else rank for _, generation, rank, _ in above.values())
        if merged
        else None,
        root=seal_draft.root,
        payload=seal_draft.payload,
        signature=signature,
        account_id=view.me.account_id,
        device_key_id=key.id,
        message=seal_draft.message,
        created_at=seal_draft.created_at,
        order_at=order_at if order_at > seal_draft.created_at else None,
    )
    await tx.many(
        rows.INSERT_PARENT,
        [
            {"seal_id": seal_draft.id, "position": at, "parent_id": parent}
            for at, parent in enumerate(seal_draft.parents)
        ],
    )
    await tx.many(
        rows.INSERT_SOURCE,
        [
            {
                "seal_id": seal_draft.id,
                "position": at,
                "source_id": source,
                "strategy": merge.strategy if merge is not None else None,
            }
            for at, source in enumerate(sources)
        ],
    )
    await tx.many(
        rows.INSERT_CHANGE,
        [
            {
                "seal_id": seal_draft.id,
                "path": path,
                "kind": kind,
                "digest": digest or None,
                "size": size if kind else None,
            }
            for path, kind, digest, size in (seal_draft.changes if seal_draft.parents else ())
        ],
    )


def bytes_of(built: Built) -> int:
    """The total size in bytes of the files of a new tree. Returns 0 if the tree existed before, because its
    size was checked when it was made."""
    if built.root not in built.directories:
        return 0
    return sum(child.size for child in tree.decode(built.directories[built.root]).children)
