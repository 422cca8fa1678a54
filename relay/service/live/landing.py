"""A seal made from an explicit tree lands on a live branch: unsealed edits are carried over it, never lost.

For each path that the seal changed (lane protocol, merge seal): where the frontier shows the old sealed bytes
it takes the new ones; live text is merged with the change as captured edits are; a live edit outlives a
delete; any other live version moves to a conflict name. What is written, is written once, under a replica id
of the relay's own.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec

from localstore.core import limits, paths, tree
from localstore.core.diff.text_merge import merge
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.tree import Entry
from relay.base.clock import now_ms
from relay.db import ref as refs
from relay.db.engine.database import Tx
from relay.db.live import lane as rows
from relay.db.live.lane import LaneRow
from relay.db.ref import RefRow
from relay.memory import trees
from relay.memory.lanes import LaneKey, Source
from relay.node import Node
from relay.service.history import content
from relay.service.live import frontier
from relay.service.live.rules import Frontier

Change = tuple[Entry | None, Entry | None]
Changes = Mapping[str, Change]


async def land(
    tx: Tx,
    node: Node,
    ref: RefRow,
    before: bytes | None,
    after: bytes,
    account_id: str,
    device_key_id: str,
) -> None:
    """Bring the frontier of `ref` from the sealed tree `before` to `after` (roots)."""
    seq = await frontier.lock(tx, ref.id)
    changes = await trees.drive(tree.diff(before, after), trees.stored(node.objects, tx))
    unsealed = await tx.value(refs.UNSEALED, branch_id=ref.id, sealed=ref.sealed_seq)
    loaded = await frontier.load(tx, ref.id, seq, changes)
    await _load_below(tx, loaded, changes)
    names = await _conflict_names(tx, loaded, changes, device_key_id)
    merged = [path for path, change in changes.items() if _texts_alone(loaded.living(path), change)]
    texts, sources = await _texts(tx, node, ref, loaded, changes, merged)
    landing = Landing(
        frontier=replace(loaded, rows=dict(loaded.rows), directories=dict(loaded.directories)),
        replica=secrets.randbelow((1 << 52) - 1) + 1,
        names=names,
        texts=texts,
        sources=sources,
    )
    await node.lanes.run(landing.run, changes)
    node.lanes.forget(sources)
    await frontier.save(tx, loaded, landing.frontier, account_id, device_key_id)
    if not unsealed:
        await tx.run(rows.SEALED, ref_id=ref.id, to=landing.frontier.seq)


@dataclass(slots=True)
class Landing:
    """`names`: where the live version of a path goes when it loses its name. `texts`: bytes by digest."""

    frontier: Frontier
    replica: int
    names: Mapping[str, str]
    texts: Mapping[bytes, bytes]
    sources: Mapping[LaneKey, Source]
    _sorted: list[str] = field(default_factory=list)

    def run(self, changes: Changes) -> None:
        """Removals first: a directory may become a file, or the reverse."""
        self._sorted = sorted(self.frontier.rows)
        for path in sorted(changes, key=lambda path: (changes[path][1] is not None, path)):
            self._path(path, *changes[path])

    def _path(self, path: str, old: Entry | None, new: Entry | None) -> None:
        row = self.frontier.living(path)
        live = frontier.entry_of(row)
        if live == new:
            return
        if row is not None and _texts_alone(row, (old, new)) and self._carry(row, old, new):
            return
        if new is None:
            if row is not None and live == old:
                self.frontier.remove(row, self.replica)
            return
        for loser in self._losers(path, None if live == old else row):
            self._move(loser)
        self.frontier.create(path, new.kind, new.digest, new.size, self.replica)

    def _carry(self, row: LaneRow, old: Entry | None, new: Entry | None) -> bool:
        """Give the lane the seal's change; False where the live text cannot be merged with it, or it is too
        large for one update."""
        if old is None or new is None:
            return False
        lane = self.sources[key := frontier.key_of(self.frontier.branch_id, row)].build(key)
        merged = merge(self.texts[old.digest], lane.text(), self.texts[new.digest])
        if merged.conflicts or len(merged.text) > limits.TEXT_FILE:
            return False
        try:
            update = lane.edit(self.replica, merged.text)
        except TooLarge:
            return False
        if update is not None:
            made = lane.text()
            self.frontier.edit(key, row, digest(made), len(made), [update], self.replica)
        return True

    def _losers(self, path: str, row: LaneRow | None) -> list[LaneRow]:
        """Unsealed versions that stand where the seal puts a file: at it, below it, above it."""
        found = [row] if row is not None else []
        if self.frontier.directories.get(path, 0) > 0:
            found += filter(None, map(self.frontier.living, self._below(path)))
        above = map(self.frontier.living, paths.parents(path))
        return found + [one for one in above if one is not None]

    def _below(self, path: str) -> list[str]:
        """The paths below this one that were loaded; landing adds none there."""
        first, last = (bisect_left(self._sorted, path + end) for end in "/0")  # "0" comes behind "/"
        return self._sorted[first:last]

    def _move(self, row: LaneRow) -> None:
        """The lane keeps its number and its log under the conflict name."""
        self.frontier.remove(row, self.replica)
        moved = row.touched(self.replica, self.frontier.next())
        self.frontier.put(msgspec.structs.replace(moved, path=self.names[row.path]))


def _texts_alone(row: LaneRow | None, change: Change) -> bool:
    """Whether a text was and stays one, here and in the seal."""
    old, new = change
    if row is None or new is None or old is None:
        return False
    return row.kind == old.kind == new.kind == "text"


async def _load_below(tx: Tx, loaded: Frontier, changes: Changes) -> None:
    """Files under a directory that the seal wants to be a file."""
    found: list[str] = []
    for path, (_, new) in changes.items():
        if new is not None and loaded.directories.get(path, 0) > 0:
            below = await tx.all(rows.BELOW, branch_id=loaded.branch_id, first=path + "/", last=path + "0")
            found += [str(one[0]) for one in below]
    await _load_more(tx, loaded, found)


async def _load_more(tx: Tx, loaded: Frontier, asked: list[str]) -> None:
    if asked:
        more = await frontier.load(tx, loaded.branch_id, loaded.seq, asked)
        loaded.rows.update(more.rows)
        loaded.directories.update(more.directories)


async def _conflict_names(tx: Tx, loaded: Frontier, changes: Changes, device_key_id: str) -> dict[str, str]:
    """A free conflict name for every file that is here and not as it was sealed."""
    when = datetime.fromtimestamp(now_ms() / 1000, UTC)
    left = [
        path
        for path, row in loaded.rows.items()
        if row.living and frontier.entry_of(row) != changes.get(path, (None, None))[0]
    ]
    outside = {path: _file_above(path, changes) for path in left}
    names: dict[str, str] = {}
    taken: set[str] = set()
    while left:
        wanted = {path: paths.conflict_name(path, when, device_key_id, outside[path]) for path in left}
        await _load_more(tx, loaded, list(wanted.values()))
        for path, name in wanted.items():
            free = loaded.living(name) is None and not loaded.clashes(name) and name not in changes
            if free and name not in taken:
                names[path] = name
                taken.add(name)
        left = [path for path in left if path not in names]
        when += timedelta(seconds=1)
    return names


def _file_above(path: str, changes: Changes) -> str | None:
    """The topmost directory above the path that is a file after the changes."""
    return next((one for one in paths.parents(path) if changes.get(one, (None, None))[1] is not None), None)


async def _texts(
    tx: Tx, node: Node, ref: RefRow, loaded: Frontier, changes: Changes, merged: list[str]
) -> tuple[Mapping[bytes, bytes], dict[LaneKey, Source]]:
    """Bytes and lanes of the paths that are merged."""
    wanted: dict[bytes, int] = {}
    texts: list[LaneRow] = []
    for path in merged:
        row, (old, new) = loaded.rows[path], changes[path]
        if old is not None and new is not None:
            wanted |= {old.digest: old.size, new.digest: new.size}
        texts.append(row)
    if sum(wanted.values()) > frontier.LOADED_AT_ONCE:
        raise TooLarge(
            f"the texts that meet live edits here have more than {frontier.LOADED_AT_ONCE} bytes together; "
            "land fewer changes at once"
        )
    sources = await frontier.sources(node, tx, ref.repo_id, ref.id, texts)
    return await content.read(node, tx, ref.repo_id, wanted), sources
