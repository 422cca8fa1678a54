"""Sealed trees for callers with hidden paths: proofs of them, and the question which digests they may
read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection

from localstore.core import tree
from localstore.core.encoding import digest as digest_of
from localstore.core.errors import NotFound
from localstore.core.storage import chunks as kernel
from localstore.core.tree.build import parent_of, with_ancestors
from localstore.core.tree.directory import Kind, join
from localstore.core.tree.proof import framed
from relay.caller import View
from relay.domain.history import history, sealed
from relay.domain.storage import chunked
from relay.domain.storage.chunked import BYTES
from relay.http.buffers import BEGUN_PATIENCE
from relay.http.routing import Reply
from relay.memory import trees
from relay.memory.named import Key, Named

AT_ONCE = 256  # directories read together
NAMED_MOST = 500_000  # files of a tree whose digests are kept between requests
NAMED_AT_ONCE, NAMED_BYTES = 10_000, 130  # digests for which memory is reserved together; bytes of one


async def proof(view: View, sha: str) -> Reply:
    """The directories of a seal that the caller sees, with which its tree is verified

    They are filtered, with their salts (`core.tree.proof`). A whole view gets all of them, as far as the
    repository has them.
    """
    row = await sealed.seal(view, sha)
    sealed.require_plaintext(view)
    visible = await _visible(view, row.root)
    _, key = await sealed.tree_key(view, row)
    load = view.node.objects.read_many
    loaded: dict[bytes, bytes] = {}

    async def stream() -> AsyncIterator[bytes]:
        level = {"": row.root} if row.root != tree.EMPTY_ROOT else {}
        while level:
            below: dict[str, bytes] = {}
            paths = sorted(level)
            for start in range(0, len(paths), AT_ONCE):
                lot = paths[start : start + AT_ONCE]
                raws = await view.node.objects.read_many([level[path] for path in lot])
                for path in lot:
                    directory = tree.decode(raws[level[path]])
                    as_signed = await trees.drive(tree.signed_children(directory, loaded), load)
                    filtered = tree.filtered(as_signed, path, key, visible)
                    names = {child.name for child in filtered.children if child.kind == "dir"}
                    below |= {
                        join(path, child.name): child.digest
                        for child in directory.children
                        if child.name in names
                    }
                    yield framed(tree.encode(filtered))
                await asyncio.sleep(0)  # others have a turn: this may go on for many directories
            level = below

    headers = {"cache-control": history.caching(view)}
    return Reply(stream=stream(), content_type=BYTES, headers=headers)


async def _visible(view: View, root: bytes) -> Callable[[str, Kind], bool]:
    """A function that tells whether the caller sees a path of this tree. A directory known by entry digests
    only is visible in whole views alone: its digests are needed to compute the digest of the next tree."""
    if view.policy is None:
        return lambda path, kind: True
    files = {path async for path, _ in sealed.files(view, root)}
    directories = with_ancestors(map(parent_of, files)) if files else {""}
    return lambda path, kind: path in directories if kind == "dir" else path in files


async def require_named(view: View, at: str | None, digests: Collection[bytes]) -> None:
    """Raise NotFound unless the tree of the seal `at` names all these digests where the caller sees them:
    files, and the manifests and chunks of large ones. A whole view may name any. Raises FilteredView if a
    filtered view gives no seal."""
    if view.policy is None:
        return
    if at is None:
        view.require_whole()
        return
    row = await sealed.seal(view, at)
    key = (view.repo.id, view.policy.number, row.root)
    named = view.node.named.get(key)
    if named is None:
        named, unnamed = await _collect_named(view, key, digests)
    else:
        unnamed = {digest for digest in digests if digest not in named}
    if len(digests) == 1:
        named.ask_first(*digests)
    for large in list(named.large) if unnamed else ():
        raw = await chunked.manifest(view, large.hex())
        listed = await asyncio.to_thread(kernel.decode, raw)
        those = unnamed & {digest_of(raw), *(bytes.fromhex(chunk.blake3) for chunk in listed.chunks)}
        if those:
            named.ask_first(large)
            unnamed -= those
        if not unnamed:
            return
    if unnamed:
        raise NotFound


async def _collect_named(view: View, key: Key, digests: Collection[bytes]) -> tuple[Named, set[bytes]]:
    """(named, others): the digests that the caller's view of a tree names, and those of `digests` that are
    not among its files. `named` is cached for the next request unless the tree is very large."""
    unnamed, large = set(digests), set()
    names: list[bytes] | None = []
    held = 0
    async for _, file in sealed.files(view, key[2]):
        unnamed.discard(file.digest)
        if file.kind == "chunked":
            large.add(file.digest)
        if names is None:
            continue
        if len(names) == NAMED_MOST:
            names = None
        elif len(names) % NAMED_AT_ONCE == 0:
            held += await view.lease.wait(NAMED_AT_ONCE * NAMED_BYTES, BEGUN_PATIENCE)
        if names is not None:
            names.append(file.digest)
    named = await asyncio.to_thread(Named, names or (), sorted(large))
    if names is not None:
        view.node.named.put(key, named)
    view.lease.give_back(held)
    return named, unnamed
