"""Runs the generators of `localstore.core.tree`, which read and change trees without doing I/O themselves."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import TypeAlias, TypeVar

from localstore.core.model.seal import PayloadMissing
from localstore.core.tree.directory import Directory, decode

Result = TypeVar("Result")
Objects: TypeAlias = Mapping[bytes, bytes]
Steps: TypeAlias = Generator[list[bytes], Objects, Result]
"""Yields unique directory digests, a level of the tree at a time; is sent their raw bytes; returns Result."""

Known: TypeAlias = dict[bytes, Directory]
"""Directories read before, by digest: for several steps over one tree."""


def run(steps: Steps[Result], load: Callable[[list[bytes]], Objects]) -> Result:
    """Run `steps` to the end and return their result. `load`: returns the directory objects for a list of
    digests."""
    try:
        digests = next(steps)
        while True:
            digests = steps.send(load(digests))
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]


def fetch(digests: set[bytes], cached: Known | None = None) -> Steps[Known]:
    """The directories with these digests, by digest. Those in `cached` are taken from there. The others are
    requested: the generator yields their digests, and its caller sends their bytes or adds the directories to
    `cached`. Raises PayloadMissing if a directory is missing, Invalid if one is damaged."""
    directories = {} if cached is None else cached
    unknown = sorted(digests.difference(directories))
    if unknown:
        raws = yield unknown
        unread = [digest for digest in unknown if digest not in directories]
        missing = [digest.hex() for digest in unread if digest not in raws]
        if missing:
            raise PayloadMissing("directories of this tree are missing", missing=missing)
        directories.update({digest: decode(raws[digest]) for digest in unread})
    return directories
