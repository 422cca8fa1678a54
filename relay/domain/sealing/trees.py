"""Makes seals from explicit trees: their changes are in the request and do not come from the live frontier.
Used for git push, squash, rebase and imports. All seals of one request land with one compare-and-swap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType

import msgspec

from localstore.core import paths, tree
from localstore.core import seal as seals
from localstore.core.encoding import b64u, is_hex_digest, unb64u
from localstore.core.errors import Invalid, NotFound, NotText, TooLarge
from localstore.core.model import limits
from localstore.core.model.base import Page
from localstore.core.model.history import Seal
from localstore.core.model.ref import StaleHead
from localstore.core.model.seal import (
    FinalizeSealsRequest,
    PreparedSeal,
    PreparedSeals,
    PrepareSealsRequest,
    SealChange,
    TreeDelta,
)
from localstore.core.names import MANIFEST
from localstore.core.seal import GitOrigin, MergeOrigin
from localstore.core.storage import chunks
from localstore.core.tree import Built, TreeEntry
from relay.base.clock import rfc3339
from relay.caller import View
from relay.db import ref as refs
from relay.db import seal as rows
from relay.db.engine.database import Tx
from relay.db.ref import RefRow
from relay.db.seal import SealDraft
from relay.domain.history import content
from relay.domain.history.wire import to_wire
from relay.domain.live import frontier, landing
from relay.domain.live.epochs import LaneTexts
from relay.domain.live.rules import file_cap, over_cap
from relay.domain.protection import protection
from relay.domain.sealing import branch_event, seal
from relay.domain.sealing.payload import (
    Wish,
    check_message,
    make_draft,
    record_seal,
    require_bytes,
    require_same_capability,
    require_seals,
)
from relay.memory import trees

DIRECTORIES_AT_ONCE = 256 * limits.MIB  # written by the seals of one request: they are held in memory
_NONE: Mapping[str, bytes] = MappingProxyType({})
_DRAFTS = msgspec.msgpack.Decoder(list[SealDraft])


@dataclass(slots=True, frozen=True)
class SealWords:
    """What a seal says, apart from its tree: its message, the device key that signs it, and the author of an
    imported commit."""

    message: str
    device_key_id: str
    author: str | None = None


@dataclass(slots=True)
class Chain:
    """A chain of trees, each made by changing the one before. The directories of earlier trees are kept in
    memory. `tx`: the transaction in which the trees are made; None outside of a transaction."""

    view: View
    tx: Tx | None
    written: dict[bytes, bytes] = field(default_factory=dict)
    size: int = 0

    @property
    def inside(self) -> Tx:
        """The transaction `tx`, for code that runs only inside of a transaction."""
        assert self.tx is not None  # noqa: S101  # only `apart` has none
        return self.tx

    def apart(self) -> Chain:
        """Copy the chain, for work outside of the transaction."""
        return Chain(self.view, None, dict(self.written), self.size)

    async def update(
        self,
        root: bytes | None,
        changes: dict[str, TreeEntry | None],
        cached: tree.Known | None = None,
        alike: Mapping[str, bytes] = _NONE,
    ) -> bytes:
        """Change the tree at `root`, and return the root of the new tree. `cached`: directories that are in
        memory. `alike`: digests of directories of another tree by path, which are used where the new tree has
        equal directories."""
        key, cache = self.view.repo.tree_key, self.view.node.directories
        built: Built = await trees.update(root, changes, key, self.load, cached, alike, cache)
        self.size += sum(map(len, built.directories.values()))
        if self.size > DIRECTORIES_AT_ONCE:
            most = limits.in_words(DIRECTORIES_AT_ONCE)
            raise TooLarge(
                f"the trees of these seals are more than {most} of directories; prepare fewer seals at once"
            )
        self.written.update(built.directories)
        return built.root

    async def load(self, digests: list[bytes]) -> dict[bytes, bytes]:
        in_memory = {digest: self.written[digest] for digest in digests if digest in self.written}
        rest = [digest for digest in digests if digest not in in_memory]
        if not rest:
            return in_memory
        return {**await self.view.node.objects.read_many(rest, None, self.tx), **in_memory}


async def prepare(view: View, body: PrepareSealsRequest) -> PreparedSeals:
    """Compute seals from the trees in the request, and return the bytes to sign"""
    changes_by_seal = [_entries(view, delta) for delta in body.seals]
    async with view.read(snapshot=True) as tx:
        ref = await frontier.find_branch(tx.one, view.repo.id, body.branch)
        key = await seal.signing_key(tx, view, body.device_key_id)
        await protection.check(tx, view, ref.name, "write")
        if body.expected_head != ref.head:
            raise StaleHead(ref.name, ref.head)
        await _require_content(tx, view, changes_by_seal)
        await _require_parents(tx, view, body.seals)
        chain = Chain(view, tx)
        drafts = await _draft_seals(chain, ref, body, changes_by_seal)
        await require_budget(chain, drafts[-1].root)
    expires = await seal.store(view, seal.SealsToStore("seals", ref, key, drafts), LaneTexts(), chain.written)
    return PreparedSeals(
        prepare_id=drafts[-1].id,
        seals=[
            PreparedSeal(bytes=b64u(draft.payload), digest=draft.id, content_digest=draft.root.hex())
            for draft in drafts
        ],
        expires_at=rfc3339(expires),
        tree_key=b64u(view.repo.tree_key),
        tree_key_id=view.repo.tree_key_id,
    )


async def finalize(view: View, body: FinalizeSealsRequest) -> Page[Seal]:
    """Record the signed seals, and make the last of them the branch's head

    Live edits of the branch are carried over. The request can be repeated.
    """
    seal.require_prepare_id(body.prepare_id)
    return await landing.carry_out(view, partial(_finalize, view, body))


async def _finalize(
    view: View, body: FinalizeSealsRequest, worked: landing.WorkedLanding | None
) -> Page[Seal]:
    async with view.write() as tx:
        existing = await seal.find(tx, view.repo.id, [body.prepare_id])
        if existing:
            await seal.require_landed_by("seals", tx, existing[0])
            drafts = await _read_drafts(tx, body.prepare_id)
            seal.require_same(view, existing[0], body.device_key_id)
            landed = await seal.find(tx, view.repo.id, [draft.id for draft in drafts]) or existing
            return Page(items=[to_wire(landed_seal) for landed_seal in landed])
        ref = await _prepared_branch(tx, view, body.prepare_id)
        prepared = await seal.take_prepared("seals", tx, view, ref, body.prepare_id, body.device_key_id)
        key = await seal.signing_key(tx, view, body.device_key_id)
        drafts = _DRAFTS.decode(prepared.seals)
        if len(drafts) != len(body.signatures):
            raise Invalid(f"{len(drafts)} seals were prepared, {len(body.signatures)} signatures came")
        signatures = [unb64u(signature, 64) for signature in body.signatures]
        require_same_capability(view, drafts[0])
        for seal_draft, signature in zip(drafts, signatures, strict=True):
            require_parents(view, seal_draft.parents)
            seals.verify(seal_draft.payload, signature, key.ed25519)
        await protection.check(tx, view, ref.name, "write")
        await frontier.lock(tx, ref.id)
        await seal.move(tx, view, ref, prepared.expected_head, drafts[-1].id, "run: svc pull, then push")
        old_root = await rows.root_of(tx, view.repo.id, ref.head) if ref.head else None
        await landing.land(tx, view, ref, old_root, drafts[-1].root, key.id, worked)
        for seal_draft, signature in zip(drafts, signatures, strict=True):
            await require_bytes(tx, view, seal_draft)
            await record_seal(tx, view, ref, seal_draft, signature, key)
        await branch_event.announce_move(tx, view, ref, drafts[-1].id, prepared.expected_head)
        await view.node.landings.tell_landed(tx, view, prepared.subject, drafts[-1].id)
        landed = await seal.find(tx, view.repo.id, [draft.id for draft in drafts])
        return Page(items=[to_wire(landed_seal) for landed_seal in landed])


async def _draft_seals(
    chain: Chain, ref: RefRow, body: PrepareSealsRequest, changes_by_seal: list[dict[str, TreeEntry | None]]
) -> list[SealDraft]:
    root = await rows.root_of(chain.inside, ref.repo_id, ref.head) if ref.head else None
    parent = ref.head
    drafts: list[SealDraft] = []
    for delta, changes in zip(body.seals, changes_by_seal, strict=True):
        await _require_caps(chain, root, changes)
        root = await chain.update(root, changes)
        wish: Wish = SealWords(delta.message, body.device_key_id, delta.author)
        git = GitOrigin(delta.git_id, delta.git_raw) if delta.git_id and delta.git_raw else None
        merge = MergeOrigin("git" if git else "merge", list(delta.parents)) if delta.parents else None
        # A pushed git merge keeps its parents in provenance; a merge made here has them as parents.
        others = [] if git else [parent_id for parent_id in delta.parents if parent_id != parent]
        parents = ([parent] if parent else []) + others
        require_parents(chain.view, parents)
        drafts.append(make_draft(chain.view, ref.name, parents, root, wish, changes, git, merge))
        parent = drafts[-1].id
    return drafts


def require_parents(view: View, parents: list[str]) -> None:
    """Raise Invalid if a seal has too many parents. A merge seal may have two, if the node makes merge seals;
    every other seal has one at most."""
    if len(parents) > seals.PARENTS_MAX:
        raise Invalid(
            f"a seal has one parent, or {seals.PARENTS_MAX} if it merges; this one names {len(parents)}",
            pointer="/seals",
        )
    if len(parents) > 1 and not view.node.config.flags.on("TR_REPO_MERGE_ENABLED"):
        raise Invalid(
            "this node makes no merge seals (TR_REPO_MERGE_ENABLED is off); omit parents",
            pointer="/seals",
        )


def _entries(view: View, delta: TreeDelta) -> dict[str, TreeEntry | None]:
    check_message(delta.message)
    if (delta.git_id is None) != (delta.git_raw is None):
        raise Invalid("git_id and git_raw come together")
    entries: dict[str, TreeEntry | None] = {}
    for change in delta.changes:
        if change.path in entries:
            raise Invalid(f"{change.path} is changed twice in one seal")
        entries[paths.check(change.path)] = _entry(view, change)
    return entries


def _entry(view: View, change: SealChange) -> TreeEntry | None:
    """Make the tree entry of a change; None for a deletion. Raises Invalid or TooLarge for an entry that no
    seal may have. In an app, blobs above the limit for new files are accepted, because earlier versions of
    the relay stored such blobs and a rebase keeps them."""
    if change.kind is None:
        return None
    if change.kind not in ("text", "blob", "chunked"):
        raise Invalid(f"{change.path}: a file is text, blob or chunked")
    if not is_hex_digest(change.digest) or change.size < 0:
        raise Invalid(f"{change.path}: name its BLAKE3 as 64 lowercase hex digits, and its size")
    if change.kind == "text" and change.size > limits.TEXT_FILE:
        raise TooLarge(f"{change.path}: a text file holds at most {limits.in_words(limits.TEXT_FILE)}")
    if change.kind != "text":
        if change.size > limits.BLOB_FILE and view.repo.kind not in chunks.KINDS:
            raise TooLarge(over_cap(change.path, change.size, limits.BLOB_FILE, view.repo.kind))
        whole = change.kind == "blob" and view.repo.kind == "app" and change.size <= limits.FRAME_RAW_MAX
        if not whole and change.kind != chunks.kind_of_bytes(change.size, view.repo.kind):
            raise Invalid(f"{change.path}: bytes are chunked above {limits.BLOB_FILE} and a blob otherwise")
    return TreeEntry(change.kind, bytes.fromhex(change.digest), change.size)  # type: ignore[arg-type]


async def _require_caps(chain: Chain, root: bytes | None, changes: dict[str, TreeEntry | None]) -> None:
    """Raise TooLarge for a file above the size limit that the `.svc.yaml` of the same tree sets. Entries that
    the previous tree (`root`) has already are not checked."""
    large = {path: entry for path, entry in changes.items() if entry and _is_large(entry)}
    kind = chain.view.repo.kind
    if not large or kind in chunks.BULK_KINDS:
        return
    before = await trees.drive(tree.lookup(root, [*large, MANIFEST]), chain.load, len(large))
    manifest = changes.get(MANIFEST, before.get(MANIFEST))
    text = None
    if manifest is not None and manifest.kind == "text" and manifest.size <= limits.MANIFEST_BYTES:
        payloads = await content.read(chain.view.node, chain.inside, chain.view.repo.id, [manifest.digest])
        text = payloads[manifest.digest]
    cap = await asyncio.to_thread(file_cap, text, kind)  # the longest manifest takes most of a second
    for path, entry in large.items():
        if entry.size > cap and entry != before.get(path):
            raise TooLarge(over_cap(path, entry.size, cap, kind))


def _is_large(entry: TreeEntry) -> bool:
    return entry.kind != "text" and entry.size > limits.BLOB_FILE


async def _require_content(tx: Tx, view: View, changes_by_seal: list[dict[str, TreeEntry | None]]) -> None:
    """Raise an error unless the bytes of every file are stored with the size that its entry says. If the
    entry says that the file is text, they must be UTF-8."""
    files = [
        (path, entry) for changes in changes_by_seal for path, entry in changes.items() if entry is not None
    ]
    await content.require_files(view.node, tx, view.repo.id, {(e.kind, e.digest, e.size) for _, e in files})
    named = {entry.digest: entry.size for _, entry in files if entry.kind == "text"}
    cached = view.node.lanes.texts.among(named)
    unknown = {digest: size for digest, size in named.items() if digest not in cached}
    texts = cached | await content.find_texts(view.node, tx, view.repo.id, unknown)
    for path, entry in files:
        if entry.kind == "text" and entry.digest not in texts:
            raise NotText(f"{path} is not UTF-8 text")


async def _require_parents(tx: Tx, view: View, deltas: list[TreeDelta]) -> None:
    named = {parent for delta in deltas for parent in delta.parents}
    if not named:
        return
    if not all(map(is_hex_digest, named)):
        raise Invalid("a parent is a full seal id", pointer="/seals")
    await require_seals(tx, view, sorted(named), "/seals")


async def require_budget(chain: Chain, root: bytes) -> None:
    """Raise SealBudgetExceeded for a tree that is too large for a seal. The tree is walked only if its whole
    size exceeds the limit for its binary files."""
    if root == tree.EMPTY_ROOT:
        return
    top = tree.decode((await chain.load([root]))[root])
    if sum(child.size for child in top.children) <= limits.BLOB_TREE:
        return
    files = await trees.drive(tree.walk(root), chain.load)
    blobs = sum(entry.size for entry in files.values() if entry.kind != "text")
    seal.require_budget(chain.view, len(files), blobs)


async def _prepared_branch(tx: Tx, view: View, prepare_id: str) -> RefRow:
    """Find the branch for which the seal with this id was prepared."""
    prepared = await seal.find_prepared("seals", tx, prepare_id)
    branch = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=prepared.branch_id)
    if branch is None:
        raise NotFound
    return refs.to_row(branch)


async def _read_drafts(tx: Tx, prepare_id: str) -> list[SealDraft]:
    row = await tx.one(rows.PREPARED, prepare_id=prepare_id)
    return _DRAFTS.decode(rows.to_prepared(row).seals) if row else []
