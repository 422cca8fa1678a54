"""Finds the branch, tag or seal that a user named, in any of the supported notations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Literal, NoReturn

import msgspec

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import Invalid, NotFound, UsageError
from localstore.core.model import history
from localstore.core.model import proposal as proposals
from localstore.core.model import ref as refs
from localstore.core.model.history import CommitsQuery
from localstore.core.model.limits import PAGE_MAX
from localstore.core.model.ref import NoBranch, RefType
from localstore.core.model.repo import Repo
from localstore.core.names import ref_name
from localstore.core.words import first_line
from localstore.errors import LinkDamaged, NotLinked
from svc.flows.place.known_seals import beginning
from svc.flows.place.where import Where

ABBREVIATION = re.compile("[0-9a-f]{4,63}")
HEADS = ("HEAD", "@")  # the last seal of the folder
EARLIER = re.compile(r"(?P<name>[^~^]+)(?P<steps>(?:[~^][0-9]{0,9})+)")
STEP = re.compile("([~^])([0-9]*)")
GITS_RANGE = re.compile(r"(\S+?)\.{2,3}(\S+)")
OF_PROPOSAL = re.compile(r"pr:([1-9][0-9]{0,17})")
KINDS: Final[tuple[RefType, ...]] = ("branch", "tag")
CANDIDATES = 8  # seals that an error about a shortened id names


class ResolvedRef(msgspec.Struct, frozen=True):
    """A branch, tag or seal that was found. `head` is the id of its seal, or None for a branch without
    seals."""

    kind: Literal["branch", "tag", "seal"]
    name: str
    head: str | None


def find_ref(where: Where, repo: Repo, typed: str) -> ResolvedRef | None:
    """Return the branch, tag or seal (searched in this order) that the word `typed` names; None if there is
    none. There are several ways to name a seal: the beginning of its id (at least four characters), HEAD or
    @, a proposal (pr:12 is its newest seal), or a number of steps back from another seal (main~2).

    Raises UsageError if several seals match, NotFound if the steps lead back beyond the first seal."""
    if is_hex_digest(typed):
        return ResolvedRef("seal", typed, typed)
    proposal = OF_PROPOSAL.fullmatch(typed)
    if proposal is not None:
        with suppress(NotFound):
            newest = where.reader.send(proposals.GET, id=repo.id, n=proposal[1]).head_seal
            return ResolvedRef("seal", newest, newest)
        return None
    if typed == "-":
        raise UsageError("- is git's; svc repo branch lists the branches to name")
    between = re.fullmatch(GITS_RANGE, typed)
    if between and not (where.folder / typed).exists():
        old, new = between.groups()
        raise UsageError(
            f"{typed} names two; svc diff {old}..{new} compares them, svc log {old}..{new} lists what {new} "
            "has alone"
        )
    if typed in HEADS:
        return _head(where, repo)
    earlier = EARLIER.fullmatch(typed)
    if earlier is not None:
        start = find_ref(where, repo, earlier["name"])
        if start is None:
            return None
        if start.head is None:
            raise NotFound(f"{start.name} has no seals yet; make one: svc push -m MESSAGE")
        ancestor = _walk_back(where, repo, start.head, earlier["steps"], typed)
        return ResolvedRef("seal", ancestor, ancestor)
    if _may_name_ref(typed):
        for kind in KINDS:
            with suppress(NotFound):
                return ResolvedRef(
                    kind, typed, where.reader.send(refs.GET, id=repo.id, type=kind, name=typed).head
                )
    seal = find_abbreviated(where, repo, typed)
    return ResolvedRef("seal", seal, seal) if seal else None


def is_relative(typed: str) -> bool:
    """Return whether the text names a seal by its position: HEAD, @, or a number of steps back from another
    seal (main~2)."""
    return typed in HEADS or EARLIER.fullmatch(typed) is not None


def resolve_ref(where: Where, repo: Repo, typed: str) -> ResolvedRef:
    """Return the branch, tag or seal that the typed word names, as `find_ref` does. Raises NotFound if there
    is none."""
    return find_ref(where, repo, typed) or _raise_missing(repo, typed)


def seal_of(where: Where, repo: Repo, ref: str) -> str:
    """Return the id of the seal that `ref` names. `ref` is a branch, tag or seal. Raises NotFound if there is
    none, or if the branch has no seals."""
    target = resolve_ref(where, repo, ref)
    if target.head is None:
        raise NotFound(f"{ref} has no seals yet; make one: svc push -m MESSAGE")
    return target.head


def _head(where: Where, repo: Repo) -> ResolvedRef:
    """Return what HEAD means. In a folder that is linked to the repository, HEAD is the seal that the folder
    shows instead of a branch, else its last seal. If there is no such seal yet, it is the folder's branch.
    Elsewhere HEAD is the default branch."""
    linked = where.linked
    if linked is not None and linked[1].repo_id == repo.id:
        seal_id = linked[1].shown_seal or last_seal(where)
        if seal_id:
            return ResolvedRef("seal", seal_id, seal_id)
    name = default_ref(where, repo)
    with suppress(NotFound):
        return ResolvedRef(
            "branch", name, where.reader.send(refs.GET, id=repo.id, type="branch", name=name).head
        )
    raise NotFound(f"{repo.full_name} has no branch {name}; see: svc repo branch")


def _walk_back(where: Where, repo: Repo, seal: str, steps: str, typed: str) -> str:
    """Return the seal that is reached from `seal` by git's steps: ~N goes back N first parents, ^N goes to
    the N-th parent. Raises NotFound if there is none. `typed` is the whole word, for the error."""
    parents: list[tuple[int, int]] = []  # (which parent, how often)
    for sign, digits in STEP.findall(steps):
        number = int(digits or 1)
        if number:
            parents.append((0, number) if sign == "~" else (number - 1, 1))
    if not parents:
        return seal
    at, walked = seal, 0
    which, remaining = parents.pop(0)
    for summary in where.reader.items(history.COMMITS, CommitsQuery(sha=seal), id=repo.id):
        if summary.id != at:
            continue  # of another line, which a merge brought
        above = [*summary.parents[:1], *summary.merged]
        if which >= len(above):
            break
        at, walked, remaining = above[which], walked + 1, remaining - 1
        if remaining == 0:
            if not parents:
                return at
            which, remaining = parents.pop(0)
    if which:
        raise NotFound(f"there is no {typed}: the seal {at[:12]} has no parent {which + 1}")
    have = f"only {walked} before that one" if walked else "none before that one"
    raise NotFound(f"there is no {typed}: the history begins at {at[:12]}, with {have}; see: svc log")


def default_ref(where: Where, repo: Repo) -> str:
    """Return the ref to use if the user named none. In a folder that is linked to the repository, it is the
    seal that the folder shows instead of a branch, else the folder's branch. If that branch was deleted, it
    is the folder's last seal. Elsewhere it is the default branch."""
    linked = where.linked
    if linked is None or linked[1].repo_id != repo.id:
        return repo.default_branch
    if linked[1].shown_seal:
        return linked[1].shown_seal
    branch = linked[1].branch
    try:
        where.reader.send(refs.GET, id=repo.id, type="branch", name=branch)
    except NotFound:
        last = last_seal(where)
        if last is None:
            raise NoBranch(branch, repo.default_branch) from None
        where.note(f"branch {branch} was deleted; this starts from the last seal here, {last[:12]}")
        return last
    return branch


def last_seal(where: Where) -> str | None:
    """Return the id of the last seal of the linked folder; None if there is none."""
    from localstore.folder.link import read_last_seal

    if where.linked is None:
        return None
    with suppress(NotLinked, LinkDamaged):
        return read_last_seal(where.linked[0])
    return None


def find_abbreviated(where: Where, repo: Repo, typed: str) -> str | None:
    """Return the id of the only seal whose id begins with `typed`; None if there is none. Seals of all
    branches and tags are searched, and the folder's last seal, and seals that this machine has printed.
    Raises UsageError, which lists them, if several match."""
    if not ABBREVIATION.fullmatch(typed):
        return None
    seals = where.reader.items(history.COMMITS, CommitsQuery(prefix=typed), limit=PAGE_MAX, id=repo.id)
    messages = {seal.id: seal.message for seal in seals if seal.id.startswith(typed)}
    mine = last_seal(where) if where.linked and where.linked[1].repo_id == repo.id else None
    if mine is not None and mine.startswith(typed):
        messages.setdefault(mine, "the last seal of this folder")
    for seal in beginning(where.home, repo.id, typed):
        messages.setdefault(seal, "printed here")
    if len(messages) > 1:
        candidates = [
            f"{seal[:16]} ({first_line(message)[:40]})"
            for seal, message in list(messages.items())[:CANDIDATES]
        ]
        more = f" and {len(messages) - CANDIDATES} more" if len(messages) > CANDIDATES else ""
        raise UsageError(
            f"{len(messages)} seals begin with {typed}: {', '.join(candidates)}{more}; give more of the id"
        )
    return next(iter(messages), None)


def _may_name_ref(typed: str) -> bool:
    try:
        ref_name(typed)
    except Invalid:
        return False
    return True


def _raise_missing(repo: Repo, ref: str) -> NoReturn:
    raise NotFound(
        f"{repo.full_name} has no branch, tag or seal {ref}; see: svc repo branch, svc repo tag list, svc log"
    )


@contextmanager
def explained_not_found(repo: Repo, what: str, remedy: str) -> Iterator[None]:
    """A context that explains why something was not found in a repository. If the server gave no reason for a
    NotFound, the error says instead that `repo` has no `what`, and names the command `remedy`."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise NotFound(f"{repo.full_name} has no {what}; see: {remedy}") from None
