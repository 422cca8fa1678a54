"""Finds the seals that `svc log` lists: the history of a ref, or only the seals in it that changed certain
paths."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

import msgspec

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import NotFound, ServerMisbehaved, UsageError
from localstore.core.model import history
from localstore.core.model.history import CommitsQuery, SealSummary, TreeQuery
from localstore.core.model.repo import Repo
from localstore.core.paths import is_inside
from localstore.core.pathspec import GLOB, matching
from localstore.folder.link import read_state
from svc.flows.history.compare import span_of
from svc.flows.place.refs import HEADS, ResolvedRef, default_ref, find_ref, resolve_ref, seal_of
from svc.flows.place.where import Where

GLOBBED_MAX = 100  # files that a pattern may name; for more, a folder is the better question


class SealFilter(msgspec.Struct, frozen=True):
    """A filter for seals. `author` is part of the author's name; upper and lower case are equal. `since` and
    `until` limit the time of sealing; None means no limit."""

    author: str = ""
    since: datetime | None = None
    until: datetime | None = None

    def __bool__(self) -> bool:
        return bool(self.author or self.since or self.until)

    def has(self, seal: SealSummary) -> bool:
        if self.author.casefold() not in author_of(seal).casefold():
            return False
        at = _sealed_at(seal)
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)


def author_of(seal: SealSummary) -> str:
    """Return the author of a seal. For an imported commit it is the author that the commit names, else the
    handle of the account that made the seal."""
    who = seal.provenance.who
    return seal.provenance.author or who.handle or who.id


def _sealed_at(seal: SealSummary) -> datetime:
    """Return the time at which the seal was made, as the server states it. Raises ServerMisbehaved if the
    server states something that is not a time."""
    try:
        at = datetime.fromisoformat(seal.created_at)
        return at if at.tzinfo else at.replace(tzinfo=UTC)
    except ValueError:
        raise ServerMisbehaved(f"the server says that {seal.id[:12]} was sealed at no time") from None


class SealsQuery(msgspec.Struct, frozen=True):
    """Which seals to list: at most `limit`, going back from the seal `start`. If `paths` are given, only
    seals that changed one of them are listed. With `follow`, seals that changed the file under an earlier
    name are listed, too. `which` selects by author and time. The seal `without` and its ancestors are left
    out. With `first_parent`, seals that merges brought in are left out."""

    start: ResolvedRef
    paths: list[str]
    limit: int
    follow: bool = False
    which: SealFilter = msgspec.field(default_factory=lambda: SealFilter())
    without: str | None = None
    first_parent: bool = False


def query_of(
    where: Where,
    repo: Repo,
    words: list[str],
    path: str,
    limit: int,
    follow: bool,
    which: SealFilter,
    *,
    first_parent: bool = False,
) -> SealsQuery | None:
    """Return the query that the arguments of `svc log` describe. The first of `words` is a ref, A..B or a
    path. The others are paths. Returns None if the branch has no seal. Raises NotFound for an unknown ref or
    path, and UsageError for `--follow` if there is not exactly one file."""
    start, without = _parse_first_word(where, repo, words[0]) if words else (None, None)
    typed = [*(words[1:] if start else words), *([path] if path else [])]
    if start is None:
        start = resolve_ref(where, repo, default_ref(where, repo))
    if start.head is None:
        return None
    paths = (
        [path_in_repo for path_in_repo in map(where.path_in_repo, typed) if path_in_repo != "."]
        if "." not in map(where.path_in_repo, typed)
        else []
    )
    if follow and (len(paths) != 1 or GLOB.search(paths[0])):
        raise UsageError("--follow takes one file: svc log --follow PATH")
    files = _expand_patterns(where, repo, start.head, paths)
    return SealsQuery(start, files, limit, follow, which, without, first_parent)


def _parse_first_word(where: Where, repo: Repo, word: str) -> tuple[ResolvedRef | None, str | None]:
    """Parse the first word of `svc log`, which names a ref, a range A..B or a path. Returns (ref to list,
    seal to leave out with its ancestors). For A..B these are B and A; for a ref the second is None; for a
    path both are None. Raises UsageError for A...B."""
    span = None if _is_here(where, word) else span_of(where, word)
    if span is None:
        return _find_named_ref(where, repo, word), None
    old, new = span.base or HEADS[0], span.head or HEADS[0]
    if not span.direct:
        raise UsageError(
            f"svc log takes two dots: svc log {old}..{new} lists what {new} has and {old} has not"
        )
    return resolve_ref(where, repo, new), seal_of(where, repo, old)


def _find_named_ref(where: Where, repo: Repo, word: str) -> ResolvedRef | None:
    """Return the ref that the first argument of `svc log` names; None if the argument is a path. Raises
    NotFound if it is neither."""
    ref = find_ref(where, repo, word)
    exists_here = _is_here(where, word)
    if ref is None and not exists_here and not _is_path(where, word):
        resolve_ref(where, repo, word)
    shortened = ref is not None and ref.kind == "seal" and not is_hex_digest(word)
    return None if shortened and exists_here else ref


def _is_path(where: Where, word: str) -> bool:
    """Return whether the word can only be a path in the linked folder. That is so if it begins with a dot, or
    contains a slash or a pattern."""
    return where.linked is not None and (word.startswith(".") or "/" in word or bool(GLOB.search(word)))


def _is_here(where: Where, typed: str) -> bool:
    """Return whether this file or folder exists in the linked folder or in its last seal."""
    if where.linked is None or where.named_repo is not None:
        return False
    if (where.folder / typed).exists():
        return True
    named = where.path_in_repo(typed)
    return any(is_inside(path, named) for path in read_state(where.linked[0]).tree)


def _expand_patterns(where: Where, repo: Repo, head: str, paths: list[str]) -> list[str]:
    """Return the paths. Each pattern is replaced by the files of the seal `head` that match it."""
    patterns = [path for path in paths if GLOB.search(path)]
    if not patterns:
        return paths
    tree = where.reader.send(history.TREE, query=TreeQuery(recursive=True), id=repo.id, sha=head)
    matches = [entry.path for entry in tree.entries if matching(entry.path, patterns)]
    if not matches:
        raise NotFound(f"no file of the seal {head[:12]} matches {', '.join(patterns)}")
    if len(matches) > GLOBBED_MAX:
        raise UsageError(
            f"{', '.join(patterns)} names {len(matches)} files, over {GLOBBED_MAX}; name a folder instead"
        )
    return [*(path for path in paths if path not in patterns), *matches]


def seals_of(where: Where, repo: Repo, query: SealsQuery) -> Iterator[SealSummary]:
    """Yields the seals that the query describes, newest first. If the query has several paths, a seal must
    have changed one of them."""
    if not query.which:
        return _walk_seals(where, repo, query, query.limit)
    walked = _walk_seals(where, repo, query, None)
    if query.which.since is not None and not query.paths:
        walked = _until_older(walked, query.which.since)
    return islice((seal for seal in walked if query.which.has(seal)), query.limit)


def _until_older(walked: Iterator[SealSummary], since: datetime) -> Iterator[SealSummary]:
    """Yields the seals that are not older than `since`. Ends as soon as all further seals are older."""
    awaited: set[str] | None = None
    for seal in walked:
        awaited = {seal.id} if awaited is None else awaited
        awaited.discard(seal.id)
        if _sealed_at(seal) >= since:
            awaited.update(seal.parents, seal.merged)
            yield seal
        if not awaited:
            return


def _walk_seals(where: Where, repo: Repo, query: SealsQuery, limit: int | None) -> Iterator[SealSummary]:
    head = query.start.head

    def walk(path: str | None, limit: int | None) -> Iterator[SealSummary]:
        return where.reader.items(
            history.COMMITS,
            CommitsQuery(sha=head, path=path, follow=query.follow, first_parent=query.first_parent),
            limit=limit,
            id=repo.id,
        )

    if query.without is not None:
        range_query = CommitsQuery(sha=head, without=query.without, first_parent=query.first_parent)
        if not query.paths:
            return where.reader.items(history.COMMITS, range_query, limit=limit, id=repo.id)
        alone = list(where.reader.items(history.COMMITS, range_query, id=repo.id))
        changed = {seal.id for path in query.paths for seal in walk(path, None)}
        return islice((seal for seal in alone if seal.id in changed), limit)
    if len(query.paths) < 2:
        return walk(query.paths[0] if query.paths else None, limit)
    touching = {seal.id for path in query.paths for seal in walk(path, limit)}
    remaining = len(touching)

    def walk_touching() -> Iterator[SealSummary]:
        nonlocal remaining
        for seal in walk(None, None):
            if seal.id in touching:
                remaining -= 1
                yield seal
            if not remaining:
                return

    return islice(walk_touching() if touching else iter(()), limit)
