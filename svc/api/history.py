"""Sealed history: read, never written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import IO, cast

import msgspec

from localstore.core.errors import ServerMisbehaved
from localstore.core.limits import GIB, MIB
from localstore.core.model.history import Blame, Blob, Compare, Seal, SealSummary, Tree
from svc.api.repo import at
from svc.http.client import Http
from svc.http.target import segment, segments

TREE_MAX = 512 * MIB
ARCHIVE_MAX = 64 * GIB


class HistoryCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def commits(
        self,
        repo_id: str,
        *,
        ref: str | None = None,
        sha: str | None = None,
        path: str | None = None,
        follow: bool = False,
        limit: int | None = None,
    ) -> Iterator[SealSummary]:
        """Seals from a branch, tag or seal back to the first; with `path` only those that changed it, and
        with `follow` those that changed the file when it had other names."""
        query = {"ref": ref, "sha": sha, "path": path, "follow": 1 if follow else None}
        return self._http.pages(f"{at(repo_id)}/commits", SealSummary, query=query, limit=limit)

    def beginning(self, repo_id: str, prefix: str) -> list[SealSummary]:
        """Seals that branches and tags lead to and whose ids begin with `prefix`, the first hundred."""
        query = {"prefix": prefix}
        return list(self._http.pages(f"{at(repo_id)}/commits", SealSummary, query=query, limit=100))

    def log(self, repo_id: str, ref: str | None = None, limit: int | None = None) -> Iterator[Seal]:
        """Seals with signatures and the relay's own verdict; needs a session."""
        return self._http.pages(f"{at(repo_id)}/log", Seal, query={"ref": ref}, limit=limit)

    def seal(self, repo_id: str, seal_id: str) -> Seal:
        """One seal with its signed bytes. Without a session it is read off the front of a history pack, which
        public repositories give to everybody."""
        if self._http.credential is None:
            with self.pack(repo_id, start=seal_id, limit=1) as pieces:
                return first_seal(pieces)
        return self._http.call("GET", f"{at(repo_id)}/seals/{segment(seal_id)}", Seal)

    def tree(self, repo_id: str, sha: str, path: str = "", *, recursive: bool = False) -> Tree:
        query = {"path": path or None, "recursive": 1 if recursive else None}
        return self._http.call("GET", f"{at(repo_id)}/tree/{segment(sha)}", Tree, query=query, cap=TREE_MAX)

    def blob(self, repo_id: str, sha: str, path: str) -> Blob:
        return self._http.call("GET", f"{at(repo_id)}/blob/{segment(sha)}/{segments(path)}", Blob)

    def raw(self, repo_id: str, sha: str, path: str, cap: int) -> bytes:
        """A file's bytes, at most `cap`."""
        return self._http.read(f"{at(repo_id)}/raw/{segment(sha)}/{segments(path)}", cap)

    def compare(self, repo_id: str, base: str | None, head: str, *, direct: bool = False) -> Compare:
        """From the merge base to the head, `direct` from the base itself; without a base what the seal `head`
        brought."""
        query = {"base": base, "head": head, "direct": 1 if direct else None}
        return self._http.call("GET", f"{at(repo_id)}/compare", Compare, query=query)

    def blame(self, repo_id: str, seal_id: str, path: str) -> Blame:
        return self._http.call("GET", f"{at(repo_id)}/seals/{segment(seal_id)}/blame/{segments(path)}", Blame)

    def pack(
        self, repo_id: str, *, start: str | None = None, limit: int | None = None, skip: int | None = None
    ) -> AbstractContextManager[Iterator[bytes]]:
        """History and its bytes as one tar, streamed."""
        query = {"from": start, "limit": limit, "skip": skip}
        return self._http.stream("GET", f"{at(repo_id)}/history-pack", ARCHIVE_MAX, query=query)

    def archive(self, repo_id: str, sha: str) -> AbstractContextManager[Iterator[bytes]]:
        """One tree as .tar.gz, streamed."""
        return self._http.stream("GET", f"{at(repo_id)}/archive/{segment(sha)}.tar.gz", ARCHIVE_MAX)


def first_seal(pieces: Iterator[bytes]) -> Seal:
    """The seal on the first line of a history pack's manifest; the rest is left unread."""
    import tarfile

    try:
        with tarfile.open(fileobj=cast(IO[bytes], _Pieces(pieces)), mode="r|") as pack:
            member = pack.next()
            file = pack.extractfile(member) if member and member.name == "manifest.jsonl" else None
            if file is None:
                raise ServerMisbehaved("the server sent a history pack without a manifest")
            line = file.readline(TREE_MAX)
        return msgspec.json.decode(line, type=Seal)
    except (tarfile.TarError, msgspec.MsgspecError, UnicodeDecodeError, OSError):
        raise ServerMisbehaved("the server sent a history pack that cannot be read") from None


class _Pieces:
    """A stream of pieces as the file that tarfile reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def read(self, size: int) -> bytes:
        while len(self._held) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._held += piece
        taken, self._held = self._held[:size], self._held[size:]
        return taken
