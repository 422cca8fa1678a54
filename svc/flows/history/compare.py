"""Makes the comparisons that a user requests: two seals, one seal and its parent, or this folder and a
seal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from localstore.core.diff import line_diff
from localstore.core.errors import UsageError
from localstore.core.model.history import ChangedFile, CompareQuery
from localstore.core.model.limits import TEXT_FILE
from localstore.core.model.repo import Repo
from localstore.core.pathspec import matching, without_match
from svc.flows.diff import diff
from svc.flows.place.folder import copy_for_reading
from svc.flows.place.refs import HEADS, find_ref, seal_of
from svc.flows.place.where import Where


class Span(msgspec.Struct, frozen=True):
    """Two branches, tags or seals to compare; "" means the last seal of the folder (HEAD). If `direct` is
    True, the two are compared with each other. Otherwise the second is compared with their common
    ancestor."""

    base: str
    head: str
    direct: bool


def span_of(where: Where, word: str) -> Span | None:
    """Return the two refs that the user typed as `A..B`, compared directly, or `A...B`, compared since their
    common ancestor. Returns None for any other word, and if a file of this name exists."""
    if ".." not in word or "../" in word or word.endswith("/..") or (where.folder / word).exists():
        return None
    base, _, head = word.partition("..")
    return Span(base, head.removeprefix("."), direct=not head.startswith("."))


def compare_refs(
    where: Where, span: Span, paths: Sequence[str] = (), space: bool = True
) -> list[ChangedFile]:
    """Return the files that differ between the two refs of a `Span`. If `paths` are given, only files at or
    below them are compared. With `space` False, differences in white space do not count. Raises NotFound for
    an unknown ref."""
    repo = where.readable_repo
    base, head = (seal_of(where, repo, ref or HEADS[0]) for ref in (span.base, span.head))
    query = CompareQuery(base=base, head=head, direct=span.direct)
    comparison = where.reader.history.compare(repo.id, query)
    patterns = [where.path_in_repo(path) for path in paths]
    files = [file for file in comparison.files if not patterns or _matches(file, patterns)]
    if space:
        return files
    start = base if span.direct else comparison.merge_base
    again = (_without_space(where, repo, file, start, head) for file in files)
    return [file for file in again if file is not None]


def _without_space(
    where: Where, repo: Repo, file: ChangedFile, base: str | None, head: str
) -> ChangedFile | None:
    """Return the changed file without differences in white space; None if nothing else changed. A file is
    returned unchanged if it is not text in both seals, or if the server did not compare it."""
    if file.patch is None or file.status not in ("modified", "renamed") or base is None:
        return file
    before = file.old_path or file.path
    old = where.reader.history.raw(repo.id, base, before, TEXT_FILE)
    new = where.reader.history.raw(repo.id, head, file.path, TEXT_FILE)
    patch = line_diff.unified_diff(old, new, before, file.path, similarity=file.similarity, space=False)
    if not patch:
        return None
    added, deleted = line_diff.stat(old, new, space=False)
    return replace(file, patch=patch.decode("utf-8", "replace"), additions=added, deletions=deleted)


def compare_folder(where: Where, words: Sequence[str] = (), space: bool = True) -> list[ChangedFile]:
    """Return the files of this folder that differ from a seal. The first word may name a branch, tag or seal;
    without one, the folder's last seal is used. The other words are paths to compare. `space` is False to
    ignore white space. Raises NotFound for an unknown path."""
    seal: str | None = None
    if words and where.linked is not None and not (where.folder / words[0]).exists():
        link = where.linked[1]
        repo = where.reader.repo.find_linked(link.repo_id, link.repo)
        if _may_be_ref(where, words[0]) and find_ref(where, repo, words[0]) is not None:
            seal, words = seal_of(where, repo, words[0]), words[1:]
    with copy_for_reading(where) as copy:
        return list(diff(copy, [where.path_in_repo(path) for path in words], seal, space))


def changes_of_seal(where: Where, repo: Repo, seal: str) -> list[ChangedFile]:
    """Return the files that a seal changed compared with its first parent. For a seal without parents these
    are all its files."""
    return where.reader.history.compare(repo.id, CompareQuery(head=seal)).files


def _may_be_ref(where: Where, word: str) -> bool:
    """Return whether the word can name a branch, tag or seal. It cannot if the last seal has a file or folder
    of this name."""
    from localstore.folder.link import read_state

    assert where.linked is not None  # noqa: S101 - the caller looked
    try:
        path = where.path_in_repo(word)
    except UsageError:
        return False
    return bool(without_match(read_state(where.linked[0]).tree, [path]))


def _matches(file: ChangedFile, patterns: Sequence[str]) -> bool:
    return any(matching(path, patterns) for path in (file.path, file.old_path) if path is not None)
