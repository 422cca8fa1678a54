"""Reads sealed history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, cast

import msgspec
from msgspec.structs import replace

from localstore.core.errors import ServerMisbehaved
from localstore.core.model import history
from localstore.core.model.history import ChangedFile, Compare, CompareQuery, LogQuery, PackQuery, Seal
from localstore.core.model.limits import GIB, LARGE_ANSWER, TREE_ENTRIES
from svc.http.client import Http

ARCHIVE_MAX = 64 * GIB


class HistoryCalls:
    def __init__(self, http: Http) -> None:
        self._http = http

    def seal(self, repo_id: str, seal_id: str) -> Seal:
        """Return one seal with its signed bytes."""
        if self._http.credential is None:
            return self._seals_of_pack(repo_id, seal_id, 1)[0]
        return self._http.send(history.SEAL, id=repo_id, seal_id=seal_id)

    def log(self, repo_id: str, seal_id: str, limit: int) -> list[Seal]:
        """Return a seal and the newest seals of its history, at most `limit` in all, each with its signed
        bytes."""
        if self._http.credential is None:
            return self._seals_of_pack(repo_id, seal_id, limit)
        query = LogQuery(ref=seal_id, limit=limit)
        return list(self._http.send(history.LOG, query=query, id=repo_id).items)

    def _seals_of_pack(self, repo_id: str, seal_id: str, limit: int) -> list[Seal]:
        """Return the first seals of a history pack (an archive of seals), which anybody may fetch from a
        public repository, also without a session."""
        query = PackQuery(from_=seal_id, limit=limit)
        with self._http.stream(history.HISTORY_PACK, ARCHIVE_MAX, query=query, id=repo_id) as pieces:
            return first_seals(pieces, limit)

    def proof(self, repo_id: str, seal_id: str) -> bytes:
        """Return the encoded directories of a seal that the user may see. The caller must verify them against
        the signed root."""
        return self._http.read(history.PROOF, LARGE_ANSWER, id=repo_id, sha=seal_id)

    def compare(self, repo_id: str, query: CompareQuery) -> Compare:
        """Return the comparison of two seals, with the changed files of all its pages. Raises
        ServerMisbehaved if the server keeps announcing further pages."""
        first, *rest = self._compare_pages(repo_id, query)
        files = [*first.files, *(file for page in rest for file in page.files)]
        return replace(first, files=files, next_cursor=None)

    def list_changed(self, repo_id: str, query: CompareQuery) -> Iterator[ChangedFile]:
        """Yields the changed files between two seals. Each page is requested when the iteration reaches
        it."""
        for page in self._compare_pages(repo_id, query):
            yield from page.files

    def _compare_pages(self, repo_id: str, query: CompareQuery) -> Iterator[Compare]:
        page = self._http.send(history.COMPARE, query=query, id=repo_id)
        yield page
        count, cursor = len(page.files), page.next_cursor
        while cursor is not None:
            page = self._http.send(history.COMPARE, query=replace(query, cursor=cursor), id=repo_id)
            count += len(page.files)
            if not page.files or page.next_cursor == cursor or count > TREE_ENTRIES:
                raise ServerMisbehaved("the server sent a comparison whose pages do not end")
            yield page
            cursor = page.next_cursor

    def raw(self, repo_id: str, sha: str, path: str, cap: int) -> bytes:
        """Return the bytes of the file `path` in a seal. Raises an error if the file has more than `cap`
        bytes."""
        return self._http.read(history.RAW, cap, id=repo_id, sha=sha, path=path)


def first_seals(pieces: Iterator[bytes], limit: int) -> list[Seal]:
    """Return the seals of a history pack, at least one and at most `limit`. A history pack is a tar archive
    that begins with a list of its seals; the rest of it is not read. Raises ServerMisbehaved for anything
    else."""
    import tarfile

    try:
        with tarfile.open(fileobj=cast(IO[bytes], _Pieces(pieces)), mode="r|") as pack:
            member = pack.next()
            file = pack.extractfile(member) if member and member.name == "manifest.jsonl" else None
            if file is None:
                raise ServerMisbehaved("the server sent a history pack without a manifest")
            lines = [file.readline(LARGE_ANSWER)]  # the first line also lists the files of its seal
            while len(lines) < limit and (line := file.readline(LARGE_ANSWER)):
                lines.append(line)
        return [msgspec.json.decode(line, type=Seal) for line in lines]
    except (tarfile.TarError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError, OSError):
        raise ServerMisbehaved("the server sent a history pack that cannot be read") from None


class _Pieces:
    """Lets tarfile read a stream of byte pieces like a file."""

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
