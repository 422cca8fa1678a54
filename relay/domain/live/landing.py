"""Landing: a seal that was not made from the live frontier (such as a merge) becomes the head of a live
branch, and unsealed edits are carried over it.

For each path that the seal changed, the landing follows the lane protocol (docs/design/004):

- If the frontier has the old sealed bytes, it gets the new bytes.
- If the live text was edited, the seal's change is merged into it like a captured edit.
- If the seal deletes a file that has a live edit, the edited file stays.
- Any other live version is kept under the name of a conflict copy.

All writes use a replica id of the relay.
"""

from __future__ import annotations

import secrets
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import msgspec

from localstore.core import paths, tree
from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest
from localstore.core.errors import NotFound, TooLarge, Unavailable
from localstore.core.model import limits
from localstore.core.tree import TreeEntry
from relay.base.clock import now_ms
from relay.caller import View
from relay.db import ref as refs
from relay.db.engine.database import Tx
from relay.db.live import lane as rows
from relay.db.live.lane import LaneRow
from relay.db.ref import RefRow
from relay.domain.history import content
from relay.domain.live import frames, frontier
from relay.domain.live.branch_base import Base, Lacking, list_below
from relay.domain.live.rules import Frontier
from relay.memory import trees
from relay.memory.lanes import LaneKey, Source
from relay.node import Node

R = TypeVar("R")
ATTEMPTS = 5  # to land while other processes change the same files
FEW, SHORT = 200, 16 * limits.KIB  # changes, and bytes of texts without live edits: about 10 ms of work
Change = tuple[TreeEntry | None, TreeEntry | None]
Changes = Mapping[str, Change]


class LandingNeeded(Exception):
    """Raised if a landing (the new live frontier under a seal) must first be computed for the current
    frontier. The transaction has changed nothing."""

    def __init__(self, ref: RefRow, before: bytes | None, after: bytes, device_key_id: str) -> None:
        super().__init__()
        self.ref, self.before, self.after, self.device_key_id = ref, before, after, device_key_id


@dataclass(slots=True, frozen=True)
class WorkedLanding:
    """A landing that was computed outside of a transaction. `roots`: the sealed trees before and after.
    `given`: the live frontier before. `landed`: the live frontier after. `loaded_paths`: the paths that were
    read. `base`: the branch's base at these paths. `carried`: lanes of texts that the landing used; the cache
    must forget them."""

    roots: tuple[bytes | None, bytes]
    loaded_paths: set[str]
    base: Base
    given: Frontier
    landed: Frontier
    carried: Collection[LaneKey]


async def carry_out(view: View, attempt: Callable[[WorkedLanding | None], Awaitable[R]]) -> R:
    """Land a seal with `attempt`, and return its result. `attempt` runs a transaction. It is called with None
    first. If it raises LandingNeeded, the landing is computed outside of transactions, and `attempt` is
    called again with it. Raises Unavailable if the files change during every one of ATTEMPTS attempts."""
    try:
        return await attempt(None)
    except LandingNeeded as first:
        lacking = first
    async with view.node.lanes.turn(lacking.ref.id):
        for _ in range(ATTEMPTS):
            worked = await _compute(view, lacking)
            try:
                return await attempt(worked)
            except LandingNeeded as again:
                lacking = again
    raise Unavailable("this branch is changing too fast; try again")


async def land(
    tx: Tx,
    view: View,
    ref: RefRow,
    before: bytes | None,
    after: bytes,
    device_key_id: str,
    worked: WorkedLanding | None,
) -> None:
    """Bring the frontier of `ref` from the sealed tree `before` to the tree `after`, given by their roots.
    `worked`: the computed landing. Raises LandingNeeded if there is none, or if it does not fit the current
    frontier."""
    seq = await frontier.lock(tx, ref.id)
    if worked is None or worked.roots != (before, after):
        raise LandingNeeded(ref, before, after, device_key_id)
    try:
        now = await frontier.load(tx, ref, seq, worked.loaded_paths, (), worked.base)
    except Lacking:
        raise LandingNeeded(ref, before, after, device_key_id) from None
    if replace(now, seq=worked.given.seq) != worked.given:
        raise LandingNeeded(ref, before, after, device_key_id)
    unsealed = await tx.value(refs.UNSEALED, branch_id=ref.id, sealed=ref.sealed_seq)
    view.node.lanes.forget(worked.carried)
    landed = worked.landed.renumber(worked.given.seq, seq - worked.given.seq)
    await frontier.save(tx, now, landed, view.me.account_id, device_key_id)
    if landed.seq != seq:
        await frames.write_frame(tx, view, ref, seq, landed)
    if not unsealed:
        await tx.run(rows.SEALED, ref_id=ref.id, to=landed.seq)


async def _compute(view: View, lacking: LandingNeeded) -> WorkedLanding:
    """Compute a landing. Raises RateLimited if the account's budget for work on texts is used up."""
    node, base = view.node, Base()
    async with view.read(snapshot=True) as tx:
        row = await tx.one(refs.BY_ID, repo_id=view.repo.id, ref_id=lacking.ref.id)
        if row is None:
            raise NotFound
        ref = refs.to_row(row)
        diff = tree.diff(lacking.before, lacking.after)
        changes = await trees.drive(diff, trees.loader_of(node.objects, tx))
        loading = _Loading(tx, node, ref, base, set(changes))
        loaded = await loading.all()
        await _load_below(loading, loaded, changes)
        names = await _conflict_names(loading, loaded, changes, lacking.device_key_id)
        merged = [path for path, change in changes.items() if _is_text_change(loaded.living(path), change)]
        texts, sources = await _read_texts(tx, node, ref, loaded, changes, merged)
    landing = Landing(
        frontier=loaded.copy(),
        replica=secrets.randbelow((1 << 52) - 1) + 1,
        names=names,
        texts=texts,
        sources=sources,
    )
    landing.begin(changes)
    edited = any(frontier.entry_of(loaded.living(path)) != changes[path][0] for path in merged)
    edited = edited or any(source.operations for source in sources.values())
    if edited or len(changes) > FEW or sum(map(len, texts.values())) > SHORT:
        await node.share.finish(view.me.account_id, landing.go_on)
    else:  # small seals wait for nobody's costly edits
        landing.go_on(float("inf"))
    return WorkedLanding(
        (lacking.before, lacking.after), loading.loaded_paths, base, loaded, landing.frontier, list(sources)
    )


@dataclass(slots=True)
class Landing:
    """Computes step by step a landing: how a live frontier changes when a seal becomes the head of its
    branch. `replica`: the relay's replica id, which numbers the changes. `names`: by path, the name of a
    conflict copy, for a live file whose path the seal needs. `texts`: bytes by digest. `sources`: what lanes
    are built from."""

    frontier: Frontier
    replica: int
    names: Mapping[str, str]
    texts: Mapping[bytes, bytes]
    sources: Mapping[LaneKey, Source]
    _sorted: list[str] = field(default_factory=list)
    _to_land: list[tuple[str, Change]] = field(default_factory=list)

    def begin(self, changes: Changes) -> None:
        """Put the changes in order, with deletions first, because a file may take the path of a directory, or
        a directory the path of a file."""
        self._sorted = sorted(self.frontier.rows)
        ordered = sorted(changes, key=lambda path: (changes[path][1] is not None, path), reverse=True)
        self._to_land = [(path, changes[path]) for path in ordered]

    def go_on(self, seconds: float) -> bool:
        """Apply changes of the seal to the frontier for at most `seconds`. Returns whether all are
        applied."""
        until = time.monotonic() + seconds
        while self._to_land:
            path, (old, new) = self._to_land.pop()
            self._land_path(path, old, new)
            if time.monotonic() > until:
                break
        return not self._to_land

    def _land_path(self, path: str, old: TreeEntry | None, new: TreeEntry | None) -> None:
        row = self.frontier.living(path)
        live = frontier.entry_of(row)
        if live == new:
            return
        if row is not None and _is_text_change(row, (old, new)) and self._merge_text(row, old, new):
            return
        if new is None:
            if row is not None and live == old:
                self.frontier.remove(row, self.replica)
            return
        for loser in self._find_losers(path, None if live == old else row):
            self._move(loser)
        self.frontier.create(path, new.kind, new.digest, new.size, self.replica)

    def _merge_text(self, row: LaneRow, old: TreeEntry | None, new: TreeEntry | None) -> bool:
        """Merge the seal's change into the live text of the lane. Returns False if the two conflict, or if
        the result is too large."""
        if old is None or new is None:
            return False
        key = frontier.key_of(self.frontier.branch_id, row)
        if self.frontier.collides(key, row.path):
            return False
        lane = self.sources[key].build(key)
        merged = merge(self.texts[old.digest], lane.text(), self.texts[new.digest])
        if merged.conflicts or len(merged.text) > limits.TEXT_FILE:
            return False
        try:
            update = lane.edit(self.replica, merged.text)
        except TooLarge:
            return False
        if update is not None:
            text = lane.text()
            self.frontier.edit(key, row, digest(text), len(text), [update], self.replica)
        return True

    def _find_losers(self, path: str, row: LaneRow | None) -> list[LaneRow]:
        """Find the live files that are in the way of the seal's file at `path`. `row`: the live file at this
        path, if it has to move. Files below the path, and files in place of its parent directories, are in
        the way too."""
        losers = [row] if row is not None else []
        if self.frontier.holds(path):
            losers += filter(None, map(self.frontier.living, self._list_below(path)))
        above = map(self.frontier.living, paths.parents(path))
        return losers + [loser for loser in above if loser is not None]

    def _list_below(self, path: str) -> list[str]:
        """List the loaded paths below this path."""
        first, last = (bisect_left(self._sorted, path + end) for end in "/0")  # "0" comes behind "/"
        return self._sorted[first:last]

    def _move(self, row: LaneRow) -> None:
        """Move the lane to the name of its conflict copy. It keeps its number and log."""
        self.frontier.remove(row, self.replica)
        moved = row.with_change(self.replica, self.frontier.next())
        self.frontier.put(msgspec.structs.replace(moved, path=self.names[row.path]))


def _is_text_change(row: LaneRow | None, change: Change) -> bool:
    """Whether the file is a text on the frontier, and in the seals before and after the change."""
    old, new = change
    if row is None or new is None or old is None:
        return False
    return row.kind == old.kind == new.kind == "text"


@dataclass(slots=True)
class _Loading:
    """Loads the part of the live frontier that a landing affects. `loaded_paths`: the paths that are loaded
    so far."""

    tx: Tx
    node: Node
    ref: RefRow
    base: Base
    loaded_paths: set[str]

    async def all(self) -> Frontier:
        return await frontier.load_with_base(
            self.node, self.tx, self.ref, self.ref.seq, self.loaded_paths, self.base
        )

    async def more(self, loaded: Frontier, more_paths: Collection[str]) -> None:
        """Load the rows of these paths and add them to `loaded`."""
        if self.loaded_paths.issuperset(more_paths):
            return
        self.loaded_paths.update(more_paths)
        added = await frontier.load_with_base(
            self.node, self.tx, self.ref, self.ref.seq, more_paths, self.base
        )
        loaded.add(added)


async def _load_below(loading: _Loading, loaded: Frontier, changes: Changes) -> None:
    """Load the files below each directory that the seal replaces by a file."""
    files_below: list[str] = []
    for path, (_, new) in changes.items():
        if new is not None and loaded.holds(path):
            files_below += await list_below(loading.node, loading.tx, loading.ref, path)
    await loading.more(loaded, files_below)


async def _conflict_names(
    loading: _Loading, loaded: Frontier, changes: Changes, device_key_id: str
) -> dict[str, str]:
    """Find a free name for a conflict copy of every file that differs from its sealed state. Returns the
    names by path."""
    when = datetime.fromtimestamp(now_ms() / 1000, UTC)
    unnamed = [
        path
        for path, row in loaded.rows.items()
        if row.living and frontier.entry_of(row) != changes.get(path, (None, None))[0]
    ]
    outside = {path: _find_file_above(path, changes) for path in unnamed}
    names: dict[str, str] = {}
    taken: set[str] = set()
    while unnamed:
        candidates = {path: paths.conflict_name(path, when, device_key_id, outside[path]) for path in unnamed}
        await loading.more(loaded, list(candidates.values()))
        for path, name in candidates.items():
            free = loaded.living(name) is None and not loaded.clashes(name) and name not in changes
            if free and name not in taken:
                names[path] = name
                taken.add(name)
        unnamed = [path for path in unnamed if path not in names]
        when += timedelta(seconds=1)
    return names


def _find_file_above(path: str, changes: Changes) -> str | None:
    """Find the topmost parent directory of the path that the changes replace by a file. None if there is
    none."""
    return next(
        (parent for parent in paths.parents(path) if changes.get(parent, (None, None))[1] is not None), None
    )


async def _read_texts(
    tx: Tx, node: Node, ref: RefRow, loaded: Frontier, changes: Changes, merged: list[str]
) -> tuple[Mapping[bytes, bytes], dict[LaneKey, Source]]:
    """Read what is needed to merge the texts at the paths `merged`. Returns (sealed texts before and after by
    digest, data from which the live texts are built)."""
    sizes: dict[bytes, int] = {}
    texts: list[LaneRow] = []
    for path in merged:
        row, (old, new) = loaded.rows[path], changes[path]
        if old is not None and new is not None:
            sizes |= {old.digest: old.size, new.digest: new.size}
        texts.append(row)
    if sum(sizes.values()) > limits.LOADED_TEXTS:
        raise TooLarge(
            f"the texts that meet live edits here have more than {limits.LOADED_TEXTS} bytes together; "
            "land fewer changes at once"
        )
    sources = await frontier.find_sources(node, tx, ref.repo_id, ref.id, texts)
    return await content.read(node, tx, ref.repo_id, sizes), sources
