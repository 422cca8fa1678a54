"""Stores the ids of seals that this machine has printed. A user can then name a seal by the beginning of its
id even after its branch was deleted. (The server finds only seals of branches and tags this way, because
other seals could be found by guessing.) If the file is missing or damaged, no ids are known until seals are
listed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from localstore.core.encoding import is_hex_digest
from localstore.core.model.history import SealSummary
from localstore.home import Home
from svc.flows.place.known_file import read_known, write_known

KIND = "seals"
KEPT = 5000  # ids of a repository, the newest


def remember(home: Home, repo_id: str, ids: Iterable[str]) -> None:
    """Store the ids of seals of this repository."""
    fresh = dict.fromkeys(filter(is_hex_digest, ids))
    stored = _read(home, repo_id)
    if fresh.keys() <= {*stored}:
        return
    newest = [*(seal_id for seal_id in stored if seal_id not in fresh), *fresh][-KEPT:]
    lines = "".join(f"{seal_id}\n" for seal_id in newest)
    write_known(home, KIND, repo_id, lines.encode("ascii"))


def remembering(home: Home, repo_id: str, seals: Iterable[SealSummary]) -> Iterator[SealSummary]:
    """Yields the seals unchanged. When the iteration ends, stores the ids of the seals that were yielded."""
    seen: list[str] = []
    try:
        for seal in seals:
            seen.append(seal.id)
            yield seal
    finally:
        remember(home, repo_id, reversed(seen))


def beginning(home: Home, repo_id: str, prefix: str) -> list[str]:
    """Return the stored ids that begin with `prefix`."""
    return [seal_id for seal_id in _read(home, repo_id) if seal_id.startswith(prefix)]


def _read(home: Home, repo_id: str) -> list[str]:
    try:
        text = read_known(home, KIND, repo_id).decode("ascii")
    except (OSError, UnicodeError):
        return []
    return [line for line in text.split("\n")[-KEPT - 1 :] if is_hex_digest(line)]
