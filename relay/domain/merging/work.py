"""Computes three-way merges of trees without locking the repository. The bases of a merge are the nearest
common ancestors of the two seals.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import ParamSpec, TypeVar

import msgspec
from blake3 import blake3

from localstore.core import tree
from localstore.core.errors import NotFound, TooLarge, Unavailable
from localstore.core.merge.moves import NONE, Moves, Ways, searches
from localstore.core.merge.three_way import (
    MergedTree,
    Plan,
    Texts,
    agreed,
    finish,
    plan,
    require_bases,
)
from localstore.core.model import limits
from localstore.core.model.merge import MergeConflict
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from relay.base.batches import split_batches
from relay.db import seal as rows
from relay.db.engine.database import Tx
from relay.domain.history import content
from relay.domain.history.merge_base import merge_bases
from relay.domain.sealing.trees import Chain
from relay.memory import texts as heavy
from relay.memory import trees
from relay.memory.outcomes import Joined, Key, Outcome
from relay.memory.workers import LITTLE
from relay.node import Node

MANY = 2000  # changed paths; to go through them takes about 10 ms, in which nobody else is answered
TURN_BYTES = (
    4 * limits.MIB
)  # texts that are joined before others have their turn, if they are of several files
CHILDREN_KEPT = 200_000  # of directories that a merge keeps for its tree: about 40 MB
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class MergeSides:
    """Two seals to merge, `theirs` into `ours`. `bases`: their nearest common ancestors. `line`: the seals
    that `theirs` has in its history and `ours` does not, along first parents, oldest first. `joined`: whether
    the oldest of them is a child of `ours`."""

    ours: str
    theirs: str
    bases: list[str]
    line: list[str]
    joined: bool


@dataclass(slots=True)
class MergeResult:
    """The result of a merge. `changes`: changes to the tree of `ours`, the seal that is merged into.
    `merged`: paths of merged texts. `texts`: bytes of merged texts, by digest."""

    changes: Mapping[str, TreeEntry | None]
    merged: list[str]
    texts: dict[bytes, bytes] = field(default_factory=dict)


async def find_sides(tx: Tx, ours: str, theirs: str) -> MergeSides:
    related = await merge_bases(tx, ours, theirs)
    require_bases(related.bases)
    line: list[str] = []
    at: str | None = theirs
    while at is not None and at not in related.common:
        line.append(at)
        above = (await rows.find_parents(tx, [at]))[at]
        at = above[0] if above else None
    return MergeSides(ours, theirs, related.bases, line[::-1], at == ours)


Load = Callable[[list[bytes]], Awaitable[dict[bytes, bytes]]]
Ready = dict[Key, Outcome]


Step = tuple[tuple[bytes | None, ...], bytes]
"""Merge bases and theirs (roots) of one merge in a row of merges."""


class ToWorkOut(Exception):
    """Raised inside a transaction if a merge must first be computed outside of it. `key`: names the merge.
    `follow`: merges to compute after it, each into the result of the one before. `chain`: the trees made so
    far. `texts`: the texts merged so far, by digest."""

    def __init__(
        self,
        key: Key,
        chain: Chain | None = None,
        texts: Mapping[bytes, bytes] = MappingProxyType({}),
        follow: Sequence[Step] = (),
    ) -> None:
        super().__init__(key)
        self.key, self.chain, self.texts, self.follow = key, chain, texts, follow


class _Owing(Exception):
    """Raised if a merge of texts must wait because the budget of its caller is used up."""


ATTEMPTS = 5  # to prepare a merge while its branches move


async def run_with_work(node: Node, who: str, attempt: Callable[[Ready], Awaitable[T]]) -> T:
    """Call `attempt`, a function that prepares a merge in a transaction, and return its result. If it raises
    ToWorkOut, the missing merge is computed without a transaction, on the budget of the account `who`. Then
    `attempt` is called again, with all outcomes computed so far. Raises Unavailable after ATTEMPTS calls."""
    ready: Ready = {}
    for attempts_after in reversed(range(ATTEMPTS)):
        try:
            return await attempt(ready)
        except ToWorkOut as lacking:
            if attempts_after:
                await _work_out(node, who, lacking, ready)
    raise Unavailable("the branches of this merge are changing too fast; try again")


async def _work_out(node: Node, who: str, lacking: ToWorkOut, ready: Ready) -> None:
    key, chain = lacking.key, lacking.chain
    load = partial(node.objects.read_many, repo_id=None) if chain is None else chain.load
    texts, size = dict(lacking.texts), _size_of(lacking.texts)
    outcome = ready[key] = await compute_outcome(node, who, key, load, texts)
    repo_id, _, root, _, apart = key
    for bases, theirs in lacking.follow:
        if outcome.merged.conflicts or chain is None:
            return
        if outcome.merged.changes:
            root = await chain.update(root, dict(outcome.merged.changes))
        key = (repo_id, bases, root, theirs, apart)
        size = _add_texts(texts, size, outcome.merged.texts)
        outcome = ready[key] = await compute_outcome(node, who, key, load, texts)


async def compute_outcome(
    node: Node, who: str, key: Key, load: Load, texts: Mapping[bytes, bytes] = MappingProxyType({})
) -> Outcome:
    """Compute the outcome of a merge, outside of any transaction. If several callers need it at once, one
    computes it and the others wait. A caller whose account `who` must wait for budget lets another compute
    it. `load`: reads the directories of its trees. `texts`: by digest, the texts that are only in memory.
    Raises TooLarge, NotFound, RateLimited."""
    repo_id, bases, ours, theirs, apart = key
    paid = False
    while True:
        with contextlib.suppress(_Owing):
            async with node.outcomes.turn(key):
                if (outcome := node.outcomes.get(key)) is not None:
                    return outcome
                work = Working(node, None, repo_id, who, load, paid=paid)
                work.texts.update(texts)
                return await work.outcome_of(list(bases), ours, theirs, apart)
        await node.workers.afford(who)
        paid = True


class Working:
    """Computes merges one after the other. `load`: reads directories. `who`: the account on whose budget
    texts are merged. Directories and texts that one merge has read stay in memory for the next. Outcomes are
    also cached on the node, for other callers.

    `ready`: outcomes that were computed before a transaction. If they are given, nothing is computed here,
    and a merge without an outcome raises ToWorkOut. None: merges are computed here.
    """

    def __init__(
        self,
        node: Node,
        tx: Tx | None,
        repo_id: str,
        who: str,
        load: Load,
        ready: Ready | None = None,
        paid: bool = False,
    ) -> None:
        self._node, self._tx, self._repo_id, self._who, self._load = node, tx, repo_id, who, load
        self._ready, self._paid = ready, paid
        self.texts: dict[bytes, bytes] = {}
        self._size = 0  # bytes of the texts of all merges together
        self._compared: dict[bytes, bytes] = {}
        self._directories: tree.Known = {}
        self._alike: Mapping[str, bytes] = {}
        self._theirs = tree.EMPTY_ROOT

    @classmethod
    def onto(cls, chain: Chain, ready: Ready | None = None) -> Working:
        """Make a `Working` for merges whose trees are added to `chain`. Its work counts on the budget of the
        caller of the chain's view."""
        view = chain.view
        return cls(view.node, chain.tx, view.repo.id, view.me.account_id, chain.load, ready)

    async def root(self, seal: str) -> bytes:
        if self._tx is None:
            raise NotFound
        root_digest = await rows.root_of(self._tx, self._repo_id, seal)
        if root_digest is None:
            raise NotFound
        return root_digest

    async def merge(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, way_out: str, apart: bool = False
    ) -> MergeResult:
        """Merge the tree `theirs` into the tree `ours`, given by their roots. Returns the changes to `ours`.
        `bases`: the trees of their nearest common ancestors. `apart`: refuse to merge files that both sides
        changed. `way_out`: a command that resolves conflicts, for the message of MergeConflict. Raises
        MergeConflict."""
        merged = await self.outcome(bases, ours, theirs, apart)
        if merged.conflicts:
            raise MergeConflict(merged.conflicts, way_out)
        return MergeResult(merged.changes, merged.merged, merged.texts)

    async def outcome(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, apart: bool = False
    ) -> MergedTree:
        """Merge the tree `theirs` into the tree `ours`, given by their roots. Returns the changes to `ours`
        and the conflicts. `bases`: the trees of their nearest common ancestors. `apart`: refuse to merge
        files that both sides changed. Recent outcomes are cached."""
        key = (self._repo_id, tuple(bases), ours, theirs, apart)
        remembered = (self._ready or {}).get(key) or self._node.outcomes.get(key)
        if remembered is None and self._ready is not None:
            raise ToWorkOut(key)
        if remembered is None:
            merged = (await self.outcome_of(bases, ours, theirs, apart)).merged
        else:
            merged, self._alike, self._theirs = remembered.merged, remembered.alike, theirs
            self._directories = self._node.directories.among({theirs, *remembered.alike.values()})
        self._size = _add_texts(self.texts, self._size, merged.texts)
        return merged

    async def outcome_of(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, apart: bool
    ) -> Outcome:
        """Compute a merge that is not cached, and cache its outcome for other callers. The arguments are
        those of `outcome`."""
        outcome = Outcome(await self._compute(bases, ours, theirs, apart), self._alike)
        self._node.outcomes.put((self._repo_id, tuple(bases), ours, theirs, apart), outcome)
        return outcome

    async def _compute(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, apart: bool
    ) -> MergedTree:
        merges = []
        self._directories, self._alike, self._compared, self._theirs = {}, {}, {}, theirs
        for base in bases or [None]:
            mine, other = await self._find_changes(base, ours, theirs)
            moves = NONE if apart else await self._find_moves(mine, other)
            paths = len(mine) + len(other)
            planned = await _carry_out(paths, plan, mine, other, moves)
            if apart and planned.both:
                merges.append(MergedTree(planned.taken, {}, [], sorted(planned.both)))
                continue
            merges.append(await _carry_out(paths, finish, planned, await self._join_texts(planned)))
        if sum(len(directory.children) for directory in self._directories.values()) > CHILDREN_KEPT:
            self._directories, self._alike = {}, {}
        return agreed(merges)

    async def update(self, chain: Chain, root: bytes, changes: Mapping[str, TreeEntry | None]) -> bytes:
        """Make a new tree: the tree `root` with the changes that the last call of `outcome` returned. Returns
        the root of the new tree. The digest of a directory that equals one of the tree `theirs` is not
        computed again, if both trees have the same tree key."""
        top = self._directories.get(self._theirs)
        same = top is not None and tree.salted_with(top, self._theirs, chain.view.repo.tree_key)
        return await chain.update(root, dict(changes), self._directories, self._alike if same else {})

    async def changes(self, ours: bytes, theirs: bytes) -> dict[str, TreeEntry | None]:
        """The changes from the tree `ours` to the tree `theirs`: the new entries by path, None for a removed
        file."""
        differences = await trees.drive(tree.diff(ours, theirs), self._load)
        return {path: new for path, (_, new) in differences.items()}

    async def _find_changes(
        self, base: bytes | None, ours: bytes, theirs: bytes
    ) -> tuple[dict[str, Change], dict[str, Change]]:
        """Find the changes of both sides against the base. Returns (changes of ours, changes of theirs), each
        by path. Directories of `theirs` are cached, because the merged tree has many of them."""
        steps, directories = tree.diffs(base, [ours, theirs], self._directories), self._node.directories
        mine, other = await trees.drive(steps, self._load, cached=self._directories, directories=directories)
        directories.learn(self._directories)
        self._alike = {**self._alike, **other.directories}
        return mine.changes, other.changes

    async def _find_moves(self, ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> Moves:
        """Find the moved files of each side. For files that were moved and edited, this compares texts."""
        side_moves: list[Ways] = []
        for search in await _carry_out(len(ours) + len(theirs), searches, ours, theirs):
            key = blake3(msgspec.msgpack.encode(search)).digest() if search.wanted else None
            remembered = None if key is None else self._node.found_moves.get(key)
            if remembered is not None:
                side_moves.append(dict(remembered))
                continue
            texts = await self._read_texts(search.digests())
            self._compared.update(texts)
            ways = search.exact
            if key is not None:
                size = sum(map(len, texts.values()))
                ways = await self._call(size, heavy.find_moves_of_side, search, texts)
                self._node.found_moves.put(key, ways)
            side_moves.append(ways)
        return Moves(*side_moves)

    async def _join_texts(self, planned: Plan) -> Mapping[str, bytes | None]:
        joins = self._node.joins
        keys = {path: _join_key(entries) for path, entries in planned.texts.items()}
        before = {path: cached[0] for path, key in keys.items() if (cached := joins.get(key)) is not None}
        rest = Plan(texts={path: entries for path, entries in planned.texts.items() if path not in before})
        texts = await self._read_texts(rest.digests())
        texts_by_path: dict[str, bytes | None] = {}
        for part in split_batches(rest.texts.items(), TURN_BYTES, _weigh):
            sides = [_texts_of(entries, texts) for _, entries in part]
            size = sum(len(text) for side in sides for text in side)
            joined = await self._call(size, heavy.merge_all, sides)
            for (path, _), text in zip(part, joined, strict=True):
                texts_by_path[path] = text
                joins.put(keys[path], (text,))
        return {**before, **texts_by_path}

    async def _call(self, size: int, call: Callable[..., T], *arguments: object) -> T:
        """Call a function in another process. `size`: bytes of the texts that it reads. A merge that has
        begun continues even if it exceeds its budget, because its work is limited and other callers may wait
        for it."""
        if not self._paid and self._node.workers.owes(self._who, size):
            raise _Owing
        self._paid = self._paid or size > LITTLE
        return await self._node.workers.go_on(self._who, size, call, *arguments)

    async def _read_texts(self, sizes: Mapping[bytes, int]) -> Mapping[bytes, bytes]:
        """Read the texts with the digests in `sizes`, which has their sizes in bytes. Returns them by digest.
        Raises TooLarge if they exceed the memory for texts."""
        if not sizes:
            return {}
        if sum(sizes.values()) > limits.LOADED_TEXTS:
            raise TooLarge(
                f"the texts that both sides changed have more than {limits.LOADED_TEXTS} bytes "
                "together; merge fewer seals at once"
            )
        memories = (self.texts, self._compared)
        cached = {digest: texts[digest] for texts in memories for digest in sizes if digest in texts}
        rest = [digest for digest in sizes if digest not in cached]
        return {**await content.read(self._node, self._tx, self._repo_id, rest, cache=True), **cached}


def _size_of(texts: Mapping[bytes, bytes]) -> int:
    return sum(map(len, texts.values()))


def _add_texts(texts: dict[bytes, bytes], size: int, more: Mapping[bytes, bytes]) -> int:
    """Add the texts `more`, which a merge has made, to the texts of the merges before it. `size`: bytes of
    `texts` so far. Returns the bytes of all these texts. Raises TooLarge if they are too many, because all
    texts stay in memory until the last merge is made."""
    added = _size_of(more)
    if size and size + added > limits.LOADED_TEXTS:
        raise TooLarge(
            f"the texts that the seals of this rebase join have more than {limits.LOADED_TEXTS} bytes "
            "together; merge it with --squash"
        )
    texts |= more
    return size + added


def _join_key(entries: Texts) -> Joined:
    return (None if entries.base is None else entries.base.digest, entries.ours.digest, entries.theirs.digest)


def _weigh(item: tuple[str, Texts]) -> int:
    entries = item[1]
    return sum(side.size for side in (entries.base, entries.ours, entries.theirs) if side is not None)


def _texts_of(entries: Texts, texts: Mapping[bytes, bytes]) -> tuple[bytes, bytes, bytes]:
    base = texts[entries.base.digest] if entries.base is not None else b""
    return base, texts[entries.ours.digest], texts[entries.theirs.digest]


async def _carry_out(paths: int, call: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Call a function and return its result. It runs in a thread if it handles many paths. `paths`: how many
    it handles."""
    if paths > MANY:
        return await asyncio.to_thread(call, *args, **more)
    return call(*args, **more)


def require_few(line: Sequence[str]) -> None:
    if len(line) > limits.SEALS_PER_REQUEST:
        raise TooLarge(
            f"a rebase takes at most {limits.SEALS_PER_REQUEST} seals, and this branch has {len(line)}; "
            "merge it with --squash"
        )
