"""Makes seals from the commits of a git repository, by the relay's own routes."""

from __future__ import annotations

from typing import Any

from blake3 import blake3

from localstore.core.storage.file_kind import kind_of
from scripts.campaign.git.source import Commit, Source
from tests.relay.histories import Repository

LOT = 100  # seals of one request
MAIN = "main"


class Importer:
    """Makes a seal for each commit, on top of the seal of its first parent. The seal is on main, or on
    another branch that the importer creates. `seal_of`: id of a commit → id of its seal."""

    def __init__(self, source: Source, repository: Repository) -> None:
        self.seal_of: dict[str, str] = {}
        self._source, self._repository = source, repository
        self._payloads: dict[str, tuple[str, str, int]] = {}
        self._heads: dict[str, str | None] = {}  # branch → commit
        self._branch_at: dict[str, str] = {}  # commit → branch other than main
        self._lot: list[tuple[str, dict[str, Any]]] = []
        self._lot_branch = MAIN
        self._numbered = 0

    def run(self, commits: list[Commit], texts: dict[str, tuple[str, str]], first_parents: set[str]) -> None:
        """Import these commits, whose parents come before them. Commits in `first_parents` go onto main.
        Parents that are not among the commits are ignored. `texts`: id of a commit → (author line,
        message)."""
        known = {commit.id: commit for commit in commits}
        for commit in commits:
            parents = [parent for parent in commit.parents if parent in known]
            self._add(commit, known, parents, texts[commit.id], commit.id in first_parents)
        self._flush()

    def _add(
        self, commit: Commit, known: dict[str, Commit], parents: list[str], text: tuple[str, str], main: bool
    ) -> None:
        first = parents[0] if parents else None
        branch = MAIN if main else self._branch_for(first)
        waiting = {commit_id for commit_id, _ in self._lot}
        if branch != self._lot_branch or len(self._lot) >= LOT or waiting & set(parents[1:]):
            self._flush()
        if branch not in self._heads and branch != MAIN:
            self._flush()
            self._repository.branch(branch, self.seal_of[first or ""])
            self._heads[branch] = first
        self._lot_branch = branch
        old = known[first].tree if first else None
        delta = [self._entry(path, blob) for path, blob in self._source.changes(old, commit.tree).items()]
        more = [self.seal_of[parent] for parent in parents[1:]]
        author, message = text
        body = {
            "message": message or "(no message)",
            "changes": sorted(delta),
            "parents": more,
            "author": author,
        }
        self._lot.append((commit.id, body))
        self._heads[branch] = commit.id
        if branch != MAIN:
            self._branch_at.pop(first or "", None)
            self._branch_at[commit.id] = branch

    def _branch_for(self, first: str | None) -> str:
        if first in self._branch_at:
            return self._branch_at[first]
        self._numbered += 1
        return f"line-{self._numbered}"

    def _entry(self, path: str, blob: str | None) -> list[Any]:
        if blob is None:
            return [path, None, "", 0]
        if blob not in self._payloads:
            data = self._source.blob(blob)
            self._repository.put(data)
            self._payloads[blob] = (kind_of(data), blake3(data).hexdigest(), len(data))
        return [path, *self._payloads[blob]]

    def _flush(self) -> None:
        if not self._lot:
            return
        made = self._repository.sign(self._lot_branch, [body for _, body in self._lot])
        for (commit, _), seal in zip(self._lot, made, strict=True):
            self.seal_of[commit] = seal
        self._lot.clear()
