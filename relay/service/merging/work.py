"""What a merge makes of trees: three-way, over the nearest common seals, without the repository's lock."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from localstore.core import limits, tree
from localstore.core.errors import NotFound, TooLarge
from localstore.core.merge.moves import NONE, Finding, Moves, Ways, searches
from localstore.core.merge.three_way import (
    Merged,
    Plan,
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
from relay.memory import trees
from relay.node import Node
from relay.service.history import content
from relay.service.history.merge_base import merge_bases
from relay.service.sealing.trees import Chain


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
    """Merges one after the other, of directories that `load` answers. What is joined is kept for the next.
    The work on texts counts on the budget of `who`."""

    def __init__(self, node: Node, tx: Tx, repo_id: str, who: str, load: Load) -> None:
        self._node, self._tx, self._repo_id, self._who, self._load = node, tx, repo_id, who, load
        self.texts: dict[bytes, bytes] = {}

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
        merges = []
        for base in bases or [None]:
            mine, other = await self._diff(base, ours), await self._diff(base, theirs)
            planned = plan(mine, other, NONE if apart else await self._moves(mine, other))
            if apart and planned.both:
                merges.append(Merged(planned.taken, {}, [], sorted(planned.both)))
                continue
            merges.append(finish(planned, await self._joined(planned)))
        found = agreed(merges)
        self.texts |= found.texts
        return found

    async def changes(self, ours: bytes, theirs: bytes) -> dict[str, TreeEntry | None]:
        """What makes ours theirs."""
        return {path: new for path, (_, new) in (await self._diff(ours, theirs)).items()}

    async def _diff(self, base: bytes | None, side: bytes) -> dict[str, Change]:
        return await trees.drive(tree.diff(base, side), self._load)

    async def _moves(self, ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> Moves:
        """The files that a side moved; what was moved and edited is found by comparing texts."""
        found: list[Ways] = []
        for search in searches(ours, theirs):
            finding = _Finding(search.finding(await self._texts(search.digests())))
            if search.wanted:
                await self._node.share.finish(self._who, finding.go_on)
            else:
                finding.go_on(math.inf)
            found.append(finding.ways)
        return Moves(*found)

    async def _joined(self, planned: Plan) -> Mapping[str, bytes | None]:
        if not planned.texts:
            return {}
        joining = _Joining(merged_texts(planned, await self._texts(planned.digests())))
        await self._node.share.finish(self._who, joining.go_on)
        return joining.found

    async def _texts(self, wanted: Mapping[bytes, int]) -> Mapping[bytes, bytes]:
        """Texts by digest. Raises TooLarge."""
        if not wanted:
            return {}
        if sum(wanted.values()) > limits.LOADED_TEXTS:
            raise TooLarge(
                f"the texts that both sides changed have more than {limits.LOADED_TEXTS} bytes "
                "together; merge fewer seals at once"
            )
        here = {one: self.texts[one] for one in wanted if one in self.texts}
        rest = [one for one in wanted if one not in here]
        return {**await content.read(self._node, self._tx, self._repo_id, rest), **here}


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
