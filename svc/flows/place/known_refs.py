"""Stores the names of branches and tags that this machine has listed. The shell's completion uses them.

If the file is missing or damaged, no names are known until branches or tags are listed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from localstore.core.model.ref import Ref, RefType
from localstore.core.paths import terminal_safe
from localstore.home import Home
from svc.flows.place.known_file import read_known, write_known

KIND = "refs"
NAMES_MAX = 2000


def add(home: Home, repo_id: str, type: RefType, names: Iterable[str]) -> None:
    _write(home, repo_id, {**recall(home, repo_id), **dict.fromkeys(names, type)})


def drop(home: Home, repo_id: str, name: str) -> None:
    _write(home, repo_id, {ref: kind for ref, kind in recall(home, repo_id).items() if ref != name})


def recall(home: Home, repo_id: str) -> dict[str, str]:
    """Return the stored names of branches and tags. Each is mapped to `branch` or `tag`."""
    try:
        kinds = msgspec.json.decode(read_known(home, KIND, repo_id), type=dict[str, str])
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}
    return {name: kind for name, kind in kinds.items() if name == terminal_safe(name)}


def recording(home: Home, repo_id: str, type: RefType, refs: Iterable[Ref], limit: int) -> Iterator[Ref]:
    """Yields the refs unchanged. When the iteration ends, stores their names. If the list is complete
    (shorter than `limit`), they replace the names that were stored before."""
    seen = []
    for ref in refs:
        seen.append(ref.name)
        yield ref
    if len(seen) < limit:
        others = {name: kind for name, kind in recall(home, repo_id).items() if kind != type}
        _write(home, repo_id, others)
    add(home, repo_id, type, seen)


def _write(home: Home, repo_id: str, kinds: dict[str, str]) -> None:
    newest = dict(list(kinds.items())[-NAMES_MAX:])
    write_known(home, KIND, repo_id, msgspec.json.encode(newest))
