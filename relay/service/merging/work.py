"""What a merge makes of trees: three-way, over the nearest common seals, without the repository's lock."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

import msgspec
from blake3 import blake3

from localstore.core import limits, tree
from localstore.core.errors import NotFound, TooLarge
from localstore.core.merge.moves import NONE, Finding, Moves, Ways, searches
from localstore.core.merge.three_way import (
    Merged,
    Plan,
    Texts,
    agreed,
    finish,
    merged_texts,
    plan,
    require_bases,
)
from localstore.core.model.collaboration.merge import MergeConflict
from localstore.core.tree import TreeEntry
from localstore.core.tree.read import Change
from relay.db import seal as rows
from relay.db.engine.database import Tx
from relay.domain.sealing.trees import Chain
from relay.memory import trees
from relay.memory.outcomes import Joined, Outcome
from relay.node import Node
from relay.service.history import content
from relay.service.history.merge_base import merge_bases

MANY = 2000  # changed paths; to go through them takes about 10 ms, in which nobody else is answered
CHILDREN_KEPT = 200_000  # of directories that a merge keeps for its tree: about 40 MB
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class Sides:
    """Two seals to merge. `bases`: their nearest common ancestors; `line`: the seals of theirs that ours
    lacks, along first parents, the oldest first; `joined`: the line begins at ours."""

    ours: str
    theirs: str
    bases: list[str]
    line: list[str]
    joined: bool


@dataclass(slots=True)
class Worked:
    """`changes` to ours; `merged`: paths of joined texts, `texts`: their bytes by digest."""

    changes: Mapping[str, TreeEntry | None]
    merged: list[str]
    texts: dict[bytes, bytes] = field(default_factory=dict)


async def sides(tx: Tx, ours: str, theirs: str) -> Sides:
    found = await merge_bases(tx, ours, theirs)
    require_bases(found.bases)
    line: list[str] = []
    at: str | None = theirs
    while at is not None and at not in found.common:
        line.append(at)
        above = (await rows.parents(tx, [at]))[at]
        at = above[0] if above else None
    return Sides(ours, theirs, found.bases, line[::-1], at == ours)


Load = Callable[[list[bytes]], Awaitable[dict[bytes, bytes]]]


class Working:
    """Merges one after the other, of directories that `load` answers. What is joined is kept for the next;
    the directories and texts that a merge read serve its own tree. The node keeps directories and outcomes
    for other merges. The work on texts counts on the budget of `who`."""

    def __init__(self, node: Node, tx: Tx, repo_id: str, who: str, load: Load) -> None:
        self._node, self._tx, self._repo_id, self._who, self._load = node, tx, repo_id, who, load
        self.texts: dict[bytes, bytes] = {}
        self._compared: dict[bytes, bytes] = {}
        self._known: tree.Known = {}
        self._alike: Mapping[str, bytes] = {}
        self._theirs = tree.EMPTY_ROOT

    @classmethod
    def onto(cls, chain: Chain) -> Working:
        """For the caller, onto a chain of trees."""
        view = chain.view
        return cls(view.node, chain.tx, view.repo.id, view.me.account_id, chain.load)

    async def root(self, seal: str) -> bytes:
        found = await rows.root_of(self._tx, self._repo_id, seal)
        if found is None:
            raise NotFound
        return found

    async def merge(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, way_out: str, apart: bool = False
    ) -> Worked:
        """The changes that bring `theirs` into `ours` (roots). `apart`: only of files that one side changed.
        MergeConflict."""
        found = await self.outcome(bases, ours, theirs, apart)
        if found.conflicts:
            raise MergeConflict(found.conflicts, way_out)
        return Worked(found.changes, found.merged, found.texts)

    async def outcome(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, apart: bool = False
    ) -> Merged:
        """As `merge`, with the conflicts. What was found lately is taken from memory."""
        key = (self._repo_id, tuple(bases), ours, theirs, apart)
        found = self._node.outcomes.get(key)
        if found is None:
            merged = await self._worked_out(bases, ours, theirs, apart)
            self._node.outcomes.put(key, Outcome(merged, self._alike))
        else:
            merged, self._alike, self._theirs = found.merged, found.alike, theirs
            self._known = self._node.directories.among({theirs, *found.alike.values()})
        self.texts |= merged.texts
        return merged

    async def _worked_out(
        self, bases: Sequence[bytes | None], ours: bytes, theirs: bytes, apart: bool
    ) -> Merged:
        merges = []
        self._known, self._alike, self._compared, self._theirs = {}, {}, {}, theirs
        for base in bases or [None]:
            mine, other = await self._diffs(base, ours, theirs)
            moves = NONE if apart else await self._moves(mine, other)
            paths = len(mine) + len(other)
            planned = await _carried_out(paths, plan, mine, other, moves)
            if apart and planned.both:
                merges.append(Merged(planned.taken, {}, [], sorted(planned.both)))
                continue
            merges.append(await _carried_out(paths, finish, planned, await self._joined(planned)))
        if sum(len(one.children) for one in self._known.values()) > CHILDREN_KEPT:
            self._known, self._alike = {}, {}
        return agreed(merges)

    async def update(self, chain: Chain, root: bytes, changes: Mapping[str, TreeEntry | None]) -> bytes:
        """The root of the tree at `root` with these changes, which `outcome` found last. Digests of theirs
        are of use only under the same key."""
        top = self._known.get(self._theirs)
        same = top is not None and tree.salted_with(top, self._theirs, chain.view.repo.tree_key)
        return await chain.update(root, dict(changes), self._known, self._alike if same else {})

    async def changes(self, ours: bytes, theirs: bytes) -> dict[str, TreeEntry | None]:
        """What makes ours theirs."""
        found = await trees.drive(tree.diff(ours, theirs), self._load)
        return {path: new for path, (_, new) in found.items()}

    async def _diffs(
        self, base: bytes | None, ours: bytes, theirs: bytes
    ) -> tuple[dict[str, Change], dict[str, Change]]:
        """What each side changed. Directories of theirs are remembered, since the merged tree has many of
        them."""
        steps, kept = tree.diffs(base, [ours, theirs], self._known), self._node.directories
        mine, other = await trees.drive(steps, self._load, known=self._known, kept=kept)
        kept.learn(self._known)
        self._alike = {**self._alike, **other.directories}
        return mine.changes, other.changes

    async def _moves(self, ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> Moves:
        """The files that a side moved; what was moved and edited is found by comparing texts."""
        found: list[Ways] = []
        for search in await _carried_out(len(ours) + len(theirs), searches, ours, theirs):
            key = blake3(msgspec.msgpack.encode(search)).digest() if search.wanted else None
            known = None if key is None else self._node.found_moves.get(key)
            if known is not None:
                found.append(dict(known))
                continue
            texts = await self._texts(search.digests())
            self._compared.update(texts)
            finding = _Finding(search.finding(texts))
            if key is None:
                finding.go_on(math.inf)
            else:
                await self._node.share.finish(self._who, finding.go_on)
                self._node.found_moves.put(key, finding.ways)
            found.append(finding.ways)
        return Moves(*found)

    async def _joined(self, planned: Plan) -> Mapping[str, bytes | None]:
        joins = self._node.joins
        keys = {path: _joined(one) for path, one in planned.texts.items()}
        before = {path: kept[0] for path, key in keys.items() if (kept := joins.get(key)) is not None}
        rest = Plan(texts={path: one for path, one in planned.texts.items() if path not in before})
        if not rest.texts:
            return before
        joining = _Joining(merged_texts(rest, await self._texts(rest.digests())))
        await self._node.share.finish(self._who, joining.go_on)
        for path, text in joining.found.items():
            joins.put(keys[path], (text,))
        return {**before, **joining.found}

    async def _texts(self, wanted: Mapping[bytes, int]) -> Mapping[bytes, bytes]:
        """Texts by digest. Raises TooLarge."""
        if not wanted:
            return {}
        if sum(wanted.values()) > limits.LOADED_TEXTS:
            raise TooLarge(
                f"the texts that both sides changed have more than {limits.LOADED_TEXTS} bytes "
                "together; merge fewer seals at once"
            )
        kept = (self.texts, self._compared)
        here = {one: texts[one] for texts in kept for one in wanted if one in texts}
        rest = [one for one in wanted if one not in here]
        return {**await content.read(self._node, self._tx, self._repo_id, rest, cache=True), **here}


def _joined(one: Texts) -> Joined:
    return (None if one.base is None else one.base.digest, one.ours.digest, one.theirs.digest)


async def _carried_out(paths: int, call: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Call a function that goes through so many paths; through many on a thread."""
    if paths > MANY:
        return await asyncio.to_thread(call, *args, **more)
    return call(*args, **more)


class _Finding:
    """Moved files, looked for while there is time."""

    def __init__(self, left: Finding) -> None:
        self._left = left
        self.ways: Ways = {}

    def go_on(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                next(self._left)
        except StopIteration as end:
            self.ways = end.value
            return True
        return False


class _Joining:
    """Texts, joined one by one while there is time."""

    def __init__(self, left: Iterator[tuple[str, bytes | None]]) -> None:
        self._left = left
        self.found: dict[str, bytes | None] = {}

    def go_on(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        for path, text in self._left:
            self.found[path] = text
            if time.monotonic() > until:
                return False
        return True


def require_few(line: Sequence[str]) -> None:
    if len(line) > limits.SEALS_PER_REQUEST:
        raise TooLarge(
            f"a rebase takes at most {limits.SEALS_PER_REQUEST} seals, and this branch has {len(line)}; "
            "merge it with --squash"
        )
