"""Sealed history: seals, trees, files, archives, blame, comparison."""

from __future__ import annotations

from typing import Literal

import msgspec

from localstore.core.errors import Invalid
from localstore.core.model.base import Model, Page
from localstore.core.model.history import (
    Blame,
    Blob,
    Compare,
    PathUpdates,
    Seal,
    SealLine,
    SealSummary,
    SealUpdate,
    Tree,
)
from relay.caller import View
from relay.http.routing import Reply, route
from relay.service.history import archive as archives
from relay.service.history import blame as blames
from relay.service.history import compare as comparisons
from relay.service.history import following, history, live_updates
from relay.service.history import history_pack as packs

FLAG, SEALING = "TR_REPOS_ENABLED", "TR_REPO_SEALING"
REPO = "/api/v1/repos/{id}"


class CommitsQuery(Model, frozen=True):
    """From `ref` or seal `sha`, else the default branch; `path` keeps the seals that touched it. `follow` 1:
    the one file at `path`, under the names that it had before too. With `prefix` those whose ids begin so, of
    all that branches and tags lead to."""

    ref: str | None = None
    sha: str | None = None
    path: str | None = None
    prefix: str | None = None
    follow: str | None = None
    cursor: str | None = None
    limit: int | None = None


class LogQuery(Model, frozen=True):
    """`unverified` 1: ids and messages only."""

    ref: str | None = None
    unverified: str | None = None
    cursor: str | None = None
    limit: int | None = None


class UpdatesQuery(Model, frozen=True):
    """`by` path: how many updates each path had from each device, and when; else the updates themselves."""

    by: Literal["path"] | None = None
    cursor: str | None = None
    limit: int | None = None


class TreeQuery(Model, frozen=True):
    path: str = ""
    recursive: str | None = None


class PackQuery(Model, frozen=True):
    """`from` is a seal, else the head of the default branch; `skip` continues the same walk."""

    from_: str | None = msgspec.field(default=None, name="from")
    limit: int | None = None
    skip: int | None = None


class CompareQuery(Model, frozen=True):
    """Branches, tags or seal ids. `direct` 1: from the base itself, not from the merge base. Without `base`:
    what the head has other than its first parent."""

    head: str
    base: str | None = None
    direct: str | None = None


@route("GET", REPO + "/commits", operation="history.commits", flag=FLAG, returns=Page[SealSummary])
async def commits(view: View, query: CommitsQuery) -> Page[SealSummary]:
    """Seals from a ref or seal back"""
    if query.prefix is not None:
        if query.ref is not None or query.sha is not None or query.path is not None:
            raise Invalid("prefix looks everywhere; leave ref, sha and path away", pointer="/prefix")
        return await history.beginning(view, query.prefix, query.limit)
    if _switch("follow", query.follow):
        return await following.commits(view, query.ref, query.sha, query.path, query.cursor, query.limit)
    return await history.commits(view, query.ref, query.sha, query.path, query.cursor, query.limit)


@route("GET", REPO + "/log", operation="history.log", flag=FLAG, returns=Page[Seal] | Page[SealLine], cost=5)
async def log(view: View, query: LogQuery) -> Page[Seal] | Page[SealLine]:
    """Seal history of a ref, each seal verified"""
    if _switch("unverified", query.unverified):
        return await history.lines(view, query.ref, query.cursor, query.limit)
    return await history.log(view, query.ref, query.cursor, query.limit)


@route("GET", REPO + "/seals/{seal_id}", operation="seal.get", flag=FLAG, returns=Seal)
async def get_seal(view: View, seal_id: str) -> Seal:
    """One seal with its provenance, signature and key"""
    return await history.seal(view, seal_id)


@route(
    "GET",
    REPO + "/seals/{seal_id}/updates",
    operation="seal.updates",
    flag=FLAG,
    returns=Page[SealUpdate] | Page[PathUpdates],
    cost=10,
)
async def get_updates(view: View, seal_id: str, query: UpdatesQuery) -> Page[SealUpdate] | Page[PathUpdates]:
    """The live updates that a seal took in: who, from which device, which path, when; edits as signed"""
    if query.by == "path":
        return await live_updates.by_path(view, seal_id, query.cursor, query.limit)
    return await live_updates.page(view, seal_id, query.cursor, query.limit)


@route("GET", REPO + "/tree/{sha}", operation="history.tree", flag=FLAG, returns=Tree)
async def get_tree(view: View, sha: str, query: TreeQuery) -> Tree:
    """A directory at a seal, or every file below it"""
    return await history.tree(view, sha, query.path, _switch("recursive", query.recursive))


@route("GET", REPO + "/blob/{sha}/{path...}", operation="history.blob", flag=FLAG, returns=Blob)
async def get_blob(view: View, sha: str, path: str) -> Blob:
    """A file at a seal with its content"""
    return await history.blob(view, sha, path)


@route(
    "GET",
    REPO + "/raw/{sha}/{path...}",
    operation="history.raw",
    flag=FLAG,
    media="*/*",
    others=(206, 304),
    errors=(416,),
)
async def get_raw(view: View, sha: str, path: str) -> Reply:
    """The bytes of a file at a seal"""
    return await history.raw(view, sha, path)


@route(
    "GET",
    REPO + "/archive/{sha}.tar.gz",
    operation="history.archive",
    flag=FLAG,
    media="application/gzip",
    others=(304,),
    cost=20,
)
async def get_archive(view: View, sha: str) -> Reply:
    """The whole tree at a seal as one gzip tarball"""
    return await archives.archive(view, sha)


@route("GET", REPO + "/history-pack", operation="history.pack", flag=FLAG, media="application/x-tar", cost=20)
async def get_history_pack(view: View, query: PackQuery) -> Reply:
    """A slice of history: manifest.jsonl, then every file once"""
    return await packs.history_pack(view, query.from_, query.limit, query.skip)


@route("GET", REPO + "/compare", operation="history.compare", flag=SEALING, returns=Compare, cost=10)
async def get_compare(view: View, query: CompareQuery) -> Compare:
    """What head brought since the merge base"""
    return await comparisons.compare(view, query.base, query.head, _switch("direct", query.direct))


@route(
    "GET",
    REPO + "/seals/{seal_id}/blame/{path...}",
    operation="history.blame",
    flag=SEALING,
    returns=Blame,
    cost=10,
)
async def get_blame(view: View, seal_id: str, path: str) -> Blame:
    """Which seal each line of a file came with"""
    return await blames.blame(view, seal_id, path)


def _switch(name: str, value: str | None) -> bool:
    """`1` or `true` is on, `0`, `false` or nothing is off."""
    if value not in (None, "0", "1", "true", "false"):
        raise Invalid(f"{name} is 1 or 0", pointer=f"/{name}")
    return value in ("1", "true")
