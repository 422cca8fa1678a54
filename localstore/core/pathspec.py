"""Selects paths by the arguments of a command: names of files and folders, and patterns, as in git."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from localstore.core.paths import is_inside, parents

GLOB = re.compile(r"[*?\[]")


def matching(path: str, specs: Iterable[str]) -> bool:
    """Whether one of `specs` matches the file at `path`: it names the file or a folder above it, or is a
    pattern for one of them. `*` also matches `/`; `.` matches everything."""
    return any(_matches(path, spec) for spec in specs)


def without_match(paths: Iterable[str], specs: Sequence[str]) -> list[str]:
    """Those of `specs` that match none of the paths."""
    unmatched = list(specs)
    for path in paths:
        if not unmatched:
            break
        unmatched = [spec for spec in unmatched if not _matches(path, spec)]
    return unmatched


def _matches(path: str, spec: str) -> bool:
    plain = spec.rstrip("/")
    if plain in ("", ".") or is_inside(path, plain):
        return True
    if not GLOB.search(plain):
        return False
    return fnmatchcase(path, plain) or any(fnmatchcase(above, plain) for above in parents(path))
