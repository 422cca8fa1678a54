"""Functions on texts that `relay.memory.workers` calls in the worker process, each for many texts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from localstore.core.diff import anchors, blame, line_diff, renames
from localstore.core.diff.anchors import Span
from localstore.core.diff.line_diff import lines
from localstore.core.diff.line_merge import merge_lines
from localstore.core.diff.renames import Candidates, Rename
from localstore.core.merge.moves import Search, Ways
from localstore.core.model.limits import TEXT_FILE

Owners = list[str]
"""A seal id for each line."""


class FileSides(NamedTuple):
    """A changed file, with its path and text before and after. Both are None before if the file was added,
    and after if it was removed."""

    old_path: str | None
    old: bytes | None
    path: str | None
    new: bytes | None
    similarity: int | None


class Patch(NamedTuple):
    added: int
    removed: int
    patch: str


def make_patch(sides: FileSides) -> Patch:
    old_path, old, path, new, similarity = sides
    added, removed, lines = line_diff.compare_texts(old, new, old_path, path, similarity=similarity)
    return Patch(added, removed, lines.decode("utf-8", "replace"))


def make_patches(files: Sequence[FileSides], characters: int) -> list[Patch]:
    """Make the patches of `files` in order, until they have `characters` characters together, but at least
    one."""
    patch_list: list[Patch] = []
    for sides in files:
        patch_list.append(make_patch(sides))
        characters -= len(patch_list[-1].patch)
        if characters <= 0:
            break
    return patch_list


def merge_all(sides: Sequence[tuple[bytes, bytes, bytes]]) -> list[bytes | None]:
    """Merge each (base, ours, theirs). Returns the merged texts; None for a conflict, or for a text that is
    too long."""
    merged = (merge_lines(*texts) for texts in sides)
    return [None if text is None or len(text) > TEXT_FILE else text for text in merged]


def find_moves_of_side(search: Search, texts: Mapping[bytes, bytes]) -> Ways:
    """Find the files that one side of a merge moved, as new path by old path. `search`: the files that this
    side removed and added; `texts`: the texts to compare, by digest."""
    return search.pairs(texts)


def find_moves(candidates: Candidates, texts: Mapping[bytes, bytes]) -> list[Rename]:
    """Find the moves among the candidates. They are the pairs whose texts are similar. `texts`: texts by
    digest."""
    return renames.similar(
        candidates,
        lambda path: texts[candidates.removed[path].digest],
        lambda path: texts[candidates.added[path].digest],
    )


def follow_spans(before: bytes, after: bytes, spans: Sequence[Span]) -> list[Span]:
    """For each span (a range of bytes) of the text `before`, find its position in the text `after`. A span
    whose lines were moved moves with them."""
    return [
        anchors.elsewhere(before, after, span, before[old.start : old.end]) or span
        for old, span in zip(spans, anchors.follow(before, after, spans), strict=True)
    ]


def advance_owners(owners: Owners, text: bytes, ways: Sequence[tuple[str, bytes]]) -> tuple[Owners, int]:
    """Compute the owners of lines (the seals that they come from) through several versions. `owners`: owners
    of the lines of `text`. `ways`: the versions that follow it, as (seal id, text). Returns (owners of the
    lines of the last version, number of lines of all versions in `ways`). Only two texts are split into lines
    at a time, because large texts need much time and memory."""
    old, gone_through = lines(text), 0
    for seal_id, following in ways:
        new = lines(following)
        owners = blame.advance(owners, old, new, seal_id)
        old, gone_through = new, gone_through + len(new)
    return owners, gone_through


def inherit_owners(seal_id: str, text: bytes, before: Sequence[tuple[Owners, bytes]]) -> Owners:
    """Find the owner of each line of `text`: the seal that the line comes from. `text` is the file in the
    seal `seal_id`; `before`: (owners, text) of the file in each of its parents. A line that is in a parent's
    text keeps its owner, from the first such parent. All other lines are owned by `seal_id`."""
    new = lines(text)
    result: list[str | None] = [None] * len(new)
    for owners, old in before:
        taken = blame.advance(list(range(len(owners))), lines(old), new, -1)
        result = [
            mine if mine is not None or at < 0 else owners[at] for mine, at in zip(result, taken, strict=True)
        ]
    return [owner or seal_id for owner in result]
