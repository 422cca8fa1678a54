"""Routes of sealed history: seals, trees, files, archives, blame, comparison, and objects by digest."""

from __future__ import annotations

from functools import partial

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.errors import Invalid
from localstore.core.model import history, payload
from localstore.core.model.base import Page
from localstore.core.model.history import (
    Blame,
    BlameQuery,
    CommitsQuery,
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
from localstore.core.model.limits import BLOB_FILE, CHUNK_MANIFEST, HAVE_DIGESTS, PACK_BYTES
from localstore.core.model.payload import AtQuery, HaveAnswer
from relay.caller import View
from relay.domain.history import archive as archives
from relay.domain.history import blame as blames
from relay.domain.history import compare as comparisons
from relay.domain.history import files, following, history_pack, live_updates, proof
from relay.domain.history import history as histories
from relay.domain.storage import pack as packs
from relay.domain.storage import payload as payloads
from relay.domain.storage.chunked import BYTES
from relay.http.routing import Reply, Upload, serves

DIGESTS = HAVE_DIGESTS * DIGEST_SIZE


@serves(history.COMMITS, operation="history.commits")
async def commits(view: View, query: CommitsQuery) -> Page[SealSummary]:
    """Seals in the history of a ref or seal, newest first"""
    if query.prefix is not None:
        if (query.ref, query.sha, query.path, query.without) != (None, None, None, None):
            raise Invalid("prefix searches all seals; omit ref, sha, path and without", pointer="/prefix")
        return await histories.by_prefix(view, query.prefix, query.limit)
    if query.without is not None:
        if query.path is not None or query.follow:
            raise Invalid("without lists whole seals; omit path and follow", pointer="/without")
        return await histories.only_in(view, query)
    if query.follow:
        return await following.list_seals_of_file(view, query)
    return await histories.list_seals(
        view, query.ref, query.sha, query.path, query.cursor, query.limit, first_parent=query.first_parent
    )


@serves(history.LOG, operation="history.log", cost=5)
async def log(view: View, query: LogQuery) -> Page[Seal] | Page[SealLine]:
    """Seal history of a ref, each seal verified"""
    if query.unverified:
        return await histories.list_lines(view, query)
    return await histories.list_verified(view, query)


serves(history.SEAL, operation="seal.get", name="history.get_seal")(histories.seal)


@serves(history.SEAL_UPDATES, operation="seal.updates", cost=10)
async def get_updates(view: View, seal_id: str, query: UpdatesQuery) -> Page[SealUpdate] | Page[PathUpdates]:
    """The live updates that a seal contains: author, device, path and time; edits also as they were signed"""
    if query.by == "path":
        return await live_updates.by_path(view, seal_id, query.cursor, query.limit)
    return await live_updates.page(view, seal_id, query.cursor, query.limit)


@serves(history.TREE, operation="history.tree")
async def get_tree(view: View, sha: str, query: TreeQuery) -> Tree:
    """A directory at a seal, or every file below it"""
    return await files.list_tree(view, sha, query.path, query.recursive)


serves(
    history.PROOF,
    operation="history.proof",
    name="history.get_proof",
    media="application/octet-stream",
    cost=10,
)(proof.proof)
serves(history.BLOB, operation="history.blob", name="history.get_blob")(files.blob)
serves(
    history.RAW,
    operation="history.raw",
    name="history.get_raw",
    media="*/*",
    others=(206, 304),
    errors=(416,),
)(files.raw)
serves(
    history.ARCHIVE,
    operation="history.archive",
    name="history.get_archive",
    media="application/gzip",
    others=(304,),
    cost=20,
)(archives.archive)


@serves(history.HISTORY_PACK, operation="history.pack", media="application/x-tar", cost=20)
async def get_history_pack(view: View, query: PackQuery) -> Reply:
    """A slice of the history as a tar stream: manifest.jsonl, then every file once"""
    return await history_pack.history_pack(view, query.from_, query.limit, query.skip)


serves(
    history.COMPARE, operation="history.compare", name="history.get_compare", flag="TR_REPO_SEALING", cost=10
)(comparisons.compare)


@serves(history.BLAME, operation="history.blame", flag="TR_REPO_SEALING", cost=10)
async def get_blame(view: View, seal_id: str, path: str, query: BlameQuery) -> Blame:
    """The seal that each line of a file comes from"""
    return await blames.blame(view, seal_id, path, first_parent=query.first_parent)


@serves(
    payload.HAVE, operation="pack.have", name="pack.have", errors=(413, 422), max_body=DIGESTS, stream=True
)
async def have(view: View, upload: Upload) -> HaveAnswer:
    """Find which of these digests (32 bytes each) the repository lacks"""
    return await packs.have(view, await packs.read_digests(upload))


serves(
    payload.PUT_PACK,
    operation="pack.store",
    name="pack.store_pack",
    errors=(413, 422),
    max_body=PACK_BYTES,
    stream=True,
)(packs.store)


@serves(
    payload.GET_PACK,
    operation="pack.fetch",
    name="pack.fetch_pack",
    errors=(413, 422),
    max_body=DIGESTS,
    stream=True,
    media=BYTES,
)
async def fetch_pack(view: View, query: AtQuery, upload: Upload) -> Reply:
    """A pack of the objects with these digests (32 bytes each); Svc-Remaining counts those that did not
    fit"""
    pack = await packs.fetch(
        view, await packs.read_digests(upload), partial(proof.require_named, view, query.at)
    )
    return Reply(
        status=200,
        content_type=BYTES,
        headers={"svc-remaining": str(pack.left)},
        stream=pack.stream,
        length=pack.length,
    )


@serves(
    payload.PUT,
    operation="payload.put",
    name="payload.put_payload",
    others=(200,),
    errors=(413, 422),
    max_body=BLOB_FILE,
    stream=True,
)
async def put_payload(view: View, blake3: str, upload: Upload) -> Reply:
    """Store bytes under their BLAKE3; 200 when the repository has them already"""
    stored, new = await payloads.put(view, blake3, upload)
    return Reply(stored, 201 if new else 200)


@serves(
    payload.GET,
    operation="payload.get",
    name="payload.get_payload",
    others=(206, 304),
    errors=(416,),
    media=BYTES,
)
async def get_payload(view: View, blake3: str, query: AtQuery) -> Reply:
    """Bytes by their BLAKE3; with ETag and ranges"""
    return await payloads.get(view, blake3, partial(proof.require_named, view, query.at))


@serves(
    payload.PUT_MANIFEST,
    operation="payload.put_manifest",
    name="payload.put_manifest",
    errors=(413, 422),
    others=(200,),
    max_body=CHUNK_MANIFEST,
    stream=True,
)
async def put_manifest(view: View, blake3: str, upload: Upload) -> Reply:
    """Declare which stored chunks make up a large file; 200 when the repository has it already"""
    stored, new = await payloads.put_manifest(view, blake3, upload)
    return Reply(stored, 201 if new else 200)


@serves(payload.GET_MANIFEST, operation="payload.get_manifest", name="payload.get_manifest", errors=(422,))
async def get_manifest(view: View, blake3: str, query: AtQuery) -> Reply:
    """The chunks of a large file, in order"""
    return await payloads.get_manifest(view, blake3, partial(proof.require_named, view, query.at))
