"""Payloads: the bytes of one object by its BLAKE3."""

from __future__ import annotations

from functools import partial

from localstore.core.limits import BLOB_FILE, CHUNK_MANIFEST
from localstore.core.model import payload as endpoints
from localstore.core.model.payload import AtQuery
from relay.caller import View
from relay.domain.history import proof
from relay.domain.storage import payload as payloads
from relay.domain.storage.chunked import BYTES
from relay.http.routing import Reply, Upload, serves

FLAG = "TR_REPOS_ENABLED"


@serves(
    endpoints.PUT,
    operation="payload.put",
    flag=FLAG,
    others=(200,),
    errors=(413, 422),
    max_body=BLOB_FILE,
    stream=True,
)
async def put_payload(view: View, blake3: str, upload: Upload) -> Reply:
    """Store bytes under their BLAKE3; 200 when the repository has them already"""
    stored, new = await payloads.put(view, blake3, upload)
    return Reply(stored, 201 if new else 200)


@serves(endpoints.GET, operation="payload.get", flag=FLAG, others=(206, 304), errors=(416,), media=BYTES)
async def get_payload(view: View, blake3: str, query: AtQuery) -> Reply:
    """Bytes by their BLAKE3; with ETag and ranges"""
    return await payloads.get(view, blake3, partial(proof.require_named, view, query.at))


@serves(
    endpoints.PUT_MANIFEST,
    operation="payload.put_manifest",
    flag=FLAG,
    errors=(413, 422),
    others=(200,),
    max_body=CHUNK_MANIFEST,
    stream=True,
)
async def put_manifest(view: View, blake3: str, upload: Upload) -> Reply:
    """Declare which stored chunks make a large file; 200 when the repository has it already"""
    stored, new = await payloads.put_manifest(view, blake3, upload)
    return Reply(stored, 201 if new else 200)


@serves(endpoints.GET_MANIFEST, operation="payload.get_manifest", flag=FLAG, errors=(422,))
async def get_manifest(view: View, blake3: str, query: AtQuery) -> Reply:
    """The chunks of a large file, in order"""
    return await payloads.get_manifest(view, blake3, partial(proof.require_named, view, query.at))
