"""Sealed history: seals, trees, files, archives, blame, comparison."""

from __future__ import annotations

from localstore.core.errors import Invalid
from localstore.core.model import history as endpoints
from localstore.core.model.base import Page
from localstore.core.model.history import (
    Blame,
    BlameQuery,
    Blob,
    CommitsQuery,
    Compare,
    CompareQuery,
    LogQuery,
    PackQuery,
    PathUpdates,
    Seal,
    SealLine,
    SealSummary,
    SealUpdate,
    Tree,
    TreeQuery,
    UpdatesQuery,
)
from relay.caller import View
from relay.domain.history import archive as archives
from relay.domain.history import blame as blames
from relay.domain.history import compare as comparisons
from relay.domain.history import following, history, live_updates
from relay.domain.history import history_pack as packs
from relay.domain.history import proof as proofs
from relay.http.routing import Reply, serves

FLAG, SEALING = "TR_REPOS_ENABLED", "TR_REPO_SEALING"


@serves(endpoints.COMMITS, operation="history.commits", flag=FLAG)
async def commits(view: View, query: CommitsQuery) -> Page[SealSummary]:
    """Seals from a ref or seal back"""
    if query.prefix is not None:
        if (query.ref, query.sha, query.path, query.without) != (None, None, None, None):
            raise Invalid("prefix searches all seals; omit ref, sha, path and without", pointer="/prefix")
        return await history.beginning(view, query.prefix, query.limit)
    if query.without is not None:
        if query.path is not None or query.follow:
            raise Invalid("without lists whole seals; omit path and follow", pointer="/without")
        return await history.apart(view, query)
    if query.follow:
        return await following.commits(view, query)
    return await history.commits(
        view, query.ref, query.sha, query.path, query.cursor, query.limit, first_parent=query.first_parent
    )


@serves(endpoints.LOG, operation="history.log", flag=FLAG, cost=5)
async def log(view: View, query: LogQuery) -> Page[Seal] | Page[SealLine]:
    """Seal history of a ref, each seal verified"""
    if query.unverified:
        return await history.lines(view, query)
    return await history.log(view, query)


@serves(endpoints.SEAL, operation="seal.get", flag=FLAG)
async def get_seal(view: View, seal_id: str) -> Seal:
    """One seal with its provenance, signature and key"""
    return await history.seal(view, seal_id)


@serves(endpoints.SEAL_UPDATES, operation="seal.updates", flag=FLAG, cost=10)
async def get_updates(view: View, seal_id: str, query: UpdatesQuery) -> Page[SealUpdate] | Page[PathUpdates]:
    """The live updates that a seal contains: author, device, path, time; edits as signed"""
    if query.by == "path":
        return await live_updates.by_path(view, seal_id, query.cursor, query.limit)
    return await live_updates.page(view, seal_id, query.cursor, query.limit)


@serves(endpoints.TREE, operation="history.tree", flag=FLAG)
async def get_tree(view: View, sha: str, query: TreeQuery) -> Tree:
    """A directory at a seal, or every file below it"""
    return await history.tree(view, sha, query.path, query.recursive)


@serves(endpoints.PROOF, operation="history.proof", flag=FLAG, media="application/octet-stream", cost=10)
async def get_proof(view: View, sha: str) -> Reply:
    """The directories of a seal that the caller sees, with which its tree is verified"""
    return await proofs.proof(view, sha)


@serves(endpoints.BLOB, operation="history.blob", flag=FLAG)
async def get_blob(view: View, sha: str, path: str) -> Blob:
    """A file at a seal with its content"""
    return await history.blob(view, sha, path)


@serves(endpoints.RAW, operation="history.raw", flag=FLAG, media="*/*", others=(206, 304), errors=(416,))
async def get_raw(view: View, sha: str, path: str) -> Reply:
    """The bytes of a file at a seal"""
    return await history.raw(view, sha, path)


@serves(
    endpoints.ARCHIVE,
    operation="history.archive",
    flag=FLAG,
    media="application/gzip",
    others=(304,),
    cost=20,
)
async def get_archive(view: View, sha: str) -> Reply:
    """The whole tree at a seal as one gzip tarball"""
    return await archives.archive(view, sha)


@serves(endpoints.HISTORY_PACK, operation="history.pack", flag=FLAG, media="application/x-tar", cost=20)
async def get_history_pack(view: View, query: PackQuery) -> Reply:
    """A slice of history: manifest.jsonl, then every file once"""
    return await packs.history_pack(view, query.from_, query.limit, query.skip)


@serves(endpoints.COMPARE, operation="history.compare", flag=SEALING, cost=10)
async def get_compare(view: View, query: CompareQuery) -> Compare:
    """Changes of head since the merge base"""
    return await comparisons.compare(view, query)


@serves(endpoints.BLAME, operation="history.blame", flag=SEALING, cost=10)
async def get_blame(view: View, seal_id: str, path: str, query: BlameQuery) -> Blame:
    """The seal that each line of a file comes from"""
    return await blames.blame(view, seal_id, path, first_parent=query.first_parent)
