"""Decides which repositories git may read, builds their bare repositories, and deletes these when they are
not needed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from localstore.core.errors import NotFound, TooLarge, Unauthorized, Unavailable
from localstore.core.model.limits import MIB
from localstore.core.model.rights import OPERATIONS
from relay.base import git
from relay.base.logs import logger
from relay.caller import Caller, View
from relay.db import repo as repos
from relay.db.engine.database import Tx
from relay.domain.git import process
from relay.domain.git.build import Unfinished, build, refs_of
from relay.domain.git.cache import Cache, fingerprint_of, list_caches, size_of
from relay.domain.git.reading import PackStream, read
from relay.domain.git.rows import reading as rows
from relay.domain.history import sealed
from relay.events import log
from relay.events.jobs import SECOND, Pace
from relay.events.log import Logged
from relay.gate.gate import view_at
from relay.node import Node
from relay.objects.backend import PackGone
from relay.objects.frames import BytesDamaged

BUILD, SWEEP, NAME = "git.build", "git.sweep", "git"
KINDS = ("seal.create", *sorted(log.ACCESS))
OFTEN = 50  # looks after which a job is added again, should the first have been lost
PAUSES = (
    0.02,
    0.05,
    0.1,
    0.2,
    0.4,
)  # seconds between two looks whether it is ready; the last one from then on
MUCH = 1 * MIB  # that a build added
DEADLINE = 3600 * SECOND  # of a build: one seal may bring many GiB, and is exported in one go
WAITED = 600.0  # seconds after which nobody waits any more; who still wants it asks again
_READS = OPERATIONS["history.pack"]  # what git is given is a part of history, with all that it names
LISTS_LATER = "version=2"  # of the protocol: the refs are asked for in a request of its own
SIGN_IN = (
    "what is private here asks for a sign-in: svc login, then svc auth setup-git; "
    "the password is a token that svc gives to git"
)
_ANNOUNCED = b"001e# service=git-upload-pack\n0000"
_REFS_ASKED = b"command=ls-refs"


def register(node: Node) -> None:
    """Register the jobs and the follower of the event log. Call it before the node's jobs start."""

    async def build_job(data: dict[str, Any]) -> None:
        await carry_on(node, str(data["repo_id"]))

    async def sweep_job(_: dict[str, Any]) -> None:
        await sweep(node)

    async def follow(tx: Tx, events: Sequence[Logged]) -> None:
        """Add jobs for the git caches of the repositories that these events are about. After new seals, a job
        continues the build of the cache. After a change of access, a job deletes caches that git may no
        longer read."""
        for repo_id in sorted(
            {event.repo_id for event in events if event.kind == "seal.create" and event.repo_id}
        ):
            if _cache_of(node, repo_id).exists():
                await node.jobs.add(tx, BUILD, {"repo_id": repo_id}, lane=repo_id)
        if any(
            event.changes_access and event.repo_id and _cache_of(node, event.repo_id).exists()
            for event in events
        ):
            await node.jobs.add(tx, SWEEP, {})

    node.jobs.register(BUILD, build_job, Pace(slots=2, deadline=DEADLINE, each=1))
    node.jobs.register(SWEEP, sweep_job, Pace(slots=1, deadline=270 * SECOND), hourly=True)
    node.followers.register(NAME, follow, KINDS)


async def find_view(caller: Caller, owner: str, name: str) -> View:
    """The repository as the caller reads it with git. Raises NotFound if it is missing, hidden or end-to-end
    encrypted. Raises NotFound also if some paths are hidden from the caller, because a commit without them
    would have another id. A caller without credentials gets Unauthorized in all these cases."""
    try:
        readable = await view_at(_READS, caller, owner, name.removesuffix(".git"))
        _require_readable(readable)
    except NotFound:
        if caller.principal is None:
            raise Unauthorized(SIGN_IN) from None
        raise
    return readable


async def list_refs(view: View, protocol: str) -> PackStream:
    """The answer to git's first request: the capabilities and the refs. The refs are left out in the version
    of git's protocol in which git asks for them in a later request."""
    _require_git()
    cache = _cache_of(view.node, view.repo.id)
    if protocol != LISTS_LATER or cache.read_fingerprint() is None:
        await _await_current(view, cache)
    words = ("upload-pack", "--stateless-rpc", "--advertise-refs")
    first = b"" if protocol == LISTS_LATER else _ANNOUNCED
    return await _read(view, cache, words, b"", protocol, first)


async def fetch(view: View, body: bytes, protocol: str) -> PackStream:
    """The answer to git's second request: the current refs, or a pack. The pack contains what git requested,
    even if a branch has moved since git saw the refs."""
    _require_git()
    cache = _cache_of(view.node, view.repo.id)
    if _asks_refs(body) or cache.read_fingerprint() is None:
        await _await_current(view, cache)
    return await _read(view, cache, ("upload-pack", "--stateless-rpc"), body, protocol)


async def _read(
    view: View, cache: Cache, words: tuple[str, ...], body: bytes, protocol: str, first: bytes = b""
) -> PackStream:
    cache.mark_read()
    node = view.node
    readers = node.git_refs if _asks_refs(body) or not body else node.git_packs
    return await read(readers, view.network, cache, words, body=body, protocol=protocol, first=first)


def _asks_refs(body: bytes) -> bool:
    return body[4 : 4 + len(_REFS_ASKED)] == _REFS_ASKED


async def _await_current(view: View, cache: Cache) -> None:
    """Wait until the cache has the current refs. Raises Unavailable if this takes longer than a request may.
    The build then continues without the request."""
    if not await _is_current(view, cache):
        await view.node.git_builds.join((view.repo.id, b""), _make_current(view, cache))


async def _make_current(view: View, cache: Cache) -> None:
    """Wait until jobs have built the cache with the current branches and tags. Queues such a job when needed.
    Raises TimeoutError if this takes too long, for example because git may no longer read the repository."""
    built, looks = cache.read_fingerprint(), 0
    async with asyncio.timeout(WAITED):
        while not await _is_current(view, cache):
            if looks % OFTEN == 0 or cache.read_fingerprint() != built:  # the refs moved while it was built
                await _add_job(view.node, view.repo.id)
                built = cache.read_fingerprint()
            await asyncio.sleep(PAUSES[min(looks, len(PAUSES) - 1)])
            looks += 1


async def _add_job(node: Node, repo_id: str) -> None:
    async with node.db.write() as tx:
        await node.jobs.add(tx, BUILD, {"repo_id": repo_id}, lane=repo_id)


async def _is_current(view: View, cache: Cache) -> bool:
    if (why := cache.refusal()) is not None:
        raise TooLarge(why)
    async with view.read() as tx:
        refs = await refs_of(tx, view)
    if cache.read_fingerprint() == fingerprint_of(view.repo.default_branch, refs):
        return True
    if (fault := cache.read_fault()) is not None:
        raise Unavailable(f"this repository cannot be made ready for git: {fault}")
    return False


async def carry_on(node: Node, repo_id: str) -> None:
    """Run a job that adds the missing seals to a repository's cache. If the time for one job is over, queues
    another. Does nothing if git may not read the repository."""
    cache = _cache_of(node, repo_id)
    try:
        view = await whole_view(node, repo_id)
        added = await build(view, cache, node.config.git_cache)
        await process.in_build(cache.record_fault, None)
    except Unfinished:
        await process.in_build(cache.record_fault, None)
        await _add_job(node, repo_id)
    except TooLarge as error:
        await process.in_build(cache.refuse, error.detail)
    except NotFound:
        return
    except (PackGone, BytesDamaged) as error:  # the job is tried again, as after any error
        await process.in_build(cache.record_fault, error.detail)
        raise
    else:
        if added > MUCH:  # what is little is left to the hourly sweep, which looks at all of them
            await process.in_build(_make_room, node, repo_id)


async def whole_view(node: Node, repo_id: str) -> View:
    """A view of the repository with which the relay itself exports it for git. The work is charged to a
    budget that this repository has for itself; the rights of readers are checked in each request. Raises
    NotFound if git may not read the repository."""
    row = await node.db.lookup(repos.ALIVE_ONE, id=repo_id, account="")
    if row is None:
        raise NotFound
    payer = f"git of {repo_id}"  # else all repositories would wait for those that used up one budget
    readable = View(node=node, principal=None, address=payer, repo=repos.to_row(row), operation=_READS)
    _require_readable(readable)
    return readable


async def sweep(node: Node) -> None:
    """Delete caches of repositories that git may no longer read. Then delete the least recently read ones
    until the total size is within the limit."""
    by_repo = {cache.repo_id: cache for cache in await process.in_build(list_caches, node.config.data)}
    async with node.db.read() as tx:
        readable = {row[0] for row in await tx.all(rows.READABLE, ids=list(by_repo))} if by_repo else set()
    for repo_id in by_repo.keys() - readable:
        if await process.in_build(by_repo[repo_id].evict):
            await process.in_build(by_repo[repo_id].forget)
    await process.in_build(_make_room, node, "")


def _make_room(node: Node, but: str) -> None:
    """Delete the least recently read caches until the total size is within the limit. Never deletes the cache
    of the repository `but`."""
    listed = list_caches(node.config.data)
    sizes = {cache.repo_id: size_of(cache) for cache in listed}
    total = sum(sizes.values())
    for cache in listed:
        if total <= node.config.git_cache:
            return
        if cache.repo_id != but and cache.exists() and cache.evict():
            logger().info("git cache deleted", repo=cache.repo_id, bytes=sizes[cache.repo_id])
            total -= sizes[cache.repo_id]


def _require_git() -> None:
    if git.find_program() is None:
        raise Unavailable("this server has no git; clone with svc, or ask its operator to install git")


def _require_readable(view: View) -> None:
    if not sealed.shows_all(view):
        raise NotFound
    sealed.require_plaintext(view)


def _cache_of(node: Node, repo_id: str) -> Cache:
    return Cache(node.config.data, repo_id)
