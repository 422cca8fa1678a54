"""Finds the files that one side of a merge moved, as git finds them in merges.

A removed file and an added file with equal bytes are certainly a move. Other removed files are searched for
only if the other side changed or deleted them, because for all others the result of the merge does not depend
on whether they were moved. A file whose name is unique among the added and the removed files is tried first
and needs a similarity of 75 %. Then each file is compared with each other one and needs 50 %. Only a limited
number of texts are compared. Moved directories are not searched for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Mapping
from typing import cast

import msgspec

from localstore.core.diff.renames import File, pieces
from localstore.core.model.limits import DIFF_BYTES, RENAME_BYTES, RENAME_PAIRS
from localstore.core.tree.read import Change

WHOLE = 60_000  # similarity of equal texts: git's unit, since its rounding decides between near ones
LEAST, LEAST_BY_NAME = WHOLE // 2, WHOLE * 3 // 4
KEPT = 4  # best sources of each new path that are considered
Ways = dict[str, str]
"""Old path → new path."""
Finding = Generator[None, None, Ways]


class Moves(msgspec.Struct, frozen=True):
    """The files that each side of a merge moved, as old path → new path."""

    ours: Ways
    theirs: Ways


NONE = Moves({}, {})


class Search(msgspec.Struct):
    """The search for moves on one side of a merge. `exact`: moves of files with equal bytes. `removed`: the
    other files that this side removed, in order of their paths. `added`: the other files that it added.
    `wanted`: the paths of `removed` whose new paths are searched for, because the other side changed or
    deleted these files."""

    exact: Ways
    removed: dict[str, File]
    added: dict[str, File]
    wanted: list[str]

    def digests(self) -> dict[bytes, int]:
        """The digests of the texts that `pairs` has to compare, each with its size in bytes."""
        sides = [*(self.removed[path] for path in self.wanted), *self.added.values()] if self.wanted else []
        return {file.digest: file.size for file in sides if _is_comparable(file)}

    def pairs(self, texts: Mapping[bytes, bytes]) -> Ways:
        """All moves of this side: maps each old path to its new path. `texts`: the bytes for each digest that
        `digests` returned."""
        finding = self.finding(texts)
        while True:
            try:
                next(finding)
            except StopIteration as end:
                return cast("Ways", end.value)

    def finding(self, texts: Mapping[bytes, bytes]) -> Finding:
        """Finds all moves of this side in small steps: a generator that yields after each step and returns
        the moves as old path → new path. `texts`: the bytes for each digest that `digests` returned."""
        moves, counts = dict(self.exact), dict[bytes, Counter[bytes]]()
        for name in self.digests():
            counts[name] = pieces(texts[name])
            yield
        if counts:
            moves |= self._by_name(counts)
            moves |= yield from self._alike(counts, moves)
        return moves

    def _by_name(self, counts: Mapping[bytes, Counter[bytes]]) -> Ways:
        sources, targets = _by_name(self.removed), _by_name(self.added)
        moves: Ways = {}
        for old in self.wanted:
            name = _name(old)
            new = targets.get(name)
            if new is None or sources.get(name) != old:
                continue
            if _similarity(self.removed[old], self.added[new], counts) >= LEAST_BY_NAME:
                moves[old] = new
        return moves

    def _alike(self, counts: Mapping[bytes, Counter[bytes]], moved: Ways) -> Finding:
        taken = set(moved.values())
        scored: list[tuple[int, bool, str, str]] = []
        for new in sorted(self.added.keys() - taken):
            best = [
                (score, _name(old) == _name(new), old, new)
                for old in self.wanted
                if old not in moved
                and (score := _similarity(self.removed[old], self.added[new], counts)) >= LEAST
            ]
            scored += sorted(best, key=lambda candidate: (-candidate[0], not candidate[1]))[:KEPT]
            yield
        moves: Ways = {}
        for _, _, old, new in sorted(scored, key=lambda candidate: (-candidate[0], not candidate[1])):
            if old not in moves and new not in taken:
                moves[old] = new
                taken.add(new)
        return moves


def searches(ours: Mapping[str, Change], theirs: Mapping[str, Change]) -> tuple[Search, Search]:
    """The searches for moved files, as (search on our side, search on their side). `ours`, `theirs`: the
    changes of each side against the base."""
    return _search(ours, theirs), _search(theirs, ours)


def _search(side: Mapping[str, Change], other: Mapping[str, Change]) -> Search:
    removed = {
        path: File(old.digest, old.size, old.kind == "text")
        for path, (old, new) in side.items()
        if old and not new
    }
    added = {
        path: File(new.digest, new.size, new.kind == "text")
        for path, (old, new) in side.items()
        if new and not old
    }
    if not removed or not added:
        return Search({}, {}, {}, [])
    removed, added = dict(sorted(removed.items())), dict(sorted(added.items()))
    exact = _exact(removed, added)
    new_paths = set(exact.values())
    removed = {path: file for path, file in removed.items() if path not in exact}
    added = {path: file for path, file in added.items() if path not in new_paths}
    relevant = [path for path, file in removed.items() if path in other and _is_comparable(file)]
    search = Search(exact, removed, added, relevant)
    if len(relevant) * len(added) > RENAME_PAIRS or sum(search.digests().values()) > RENAME_BYTES:
        search.wanted = []
    return search


def _exact(removed: Mapping[str, File], added: Mapping[str, File]) -> Ways:
    """The moves of files with equal bytes, as old path → new path. `removed`: the removed files; `added`: the
    added files. Each new path is paired with the first old path that is not paired yet, preferably one with
    the same file name. Empty files never count as moved."""
    by_bytes: dict[bytes, list[str]] = {}
    for path, file in removed.items():
        if file.size:
            by_bytes.setdefault(file.digest, []).append(path)
    moves: Ways = {}
    for path, file in added.items():
        if sources := by_bytes.get(file.digest):
            source = next((candidate for candidate in sources if _name(candidate) == _name(path)), sources[0])
            sources.remove(source)
            moves[source] = path
    return moves


def _similarity(old: File, new: File, counts: Mapping[bytes, Counter[bytes]]) -> int:
    """How similar two files are, from 0 to WHOLE: the part of the larger file that both have in common.
    Returns 0 for files that are not compared. `counts`: for each digest, how often each line occurs in
    that text."""
    few, many = min(old.size, new.size), max(old.size, new.size)
    if old.digest not in counts or new.digest not in counts or 2 * few < many:
        return 0
    old_pieces, new_pieces = counts[old.digest], counts[new.digest]
    common = sum(
        len(piece) * min(count, new_pieces[piece])
        for piece, count in old_pieces.items()
        if piece in new_pieces
    )
    return common * WHOLE // max(many, 1)


def _by_name(paths: Collection[str]) -> dict[str, str | None]:
    """Maps each file name (without folder) to its path, or to None if several paths have that name."""
    by_name: dict[str, str | None] = {}
    for path in paths:
        name = _name(path)
        by_name[name] = None if name in by_name else path
    return by_name


def _is_comparable(file: File) -> bool:
    return file.text and 0 < file.size <= DIFF_BYTES


def _name(path: str) -> str:
    return path.rpartition("/")[2]
