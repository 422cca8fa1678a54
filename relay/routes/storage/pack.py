"""Packs: many objects in one request, beside the single payloads."""

from __future__ import annotations

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.limits import HAVE_DIGESTS, PACK_BYTES
from localstore.core.model.history import HaveAnswer, PackStored
from relay.caller import View
from relay.http.routing import Reply, Upload, route
from relay.routes.storage.payload import FLAG
from relay.service.storage import pack as packs
from relay.service.storage.chunked import BYTES

DIGESTS = HAVE_DIGESTS * DIGEST_SIZE


@route(
    "POST",
    "/api/v1/repos/{id}/have",
    operation="pack.have",
    flag=FLAG,
    returns=HaveAnswer,
    errors=(413, 422),
    max_body=DIGESTS,
    stream=True,
)
async def have(view: View, upload: Upload) -> HaveAnswer:
    """Which of these objects (32 bytes a digest) the repository lacks"""
    return await packs.have(view, await packs.read_digests(upload))


@route(
    "POST",
    "/api/v1/repos/{id}/packs",
    operation="pack.store",
    flag=FLAG,
    returns=PackStored,
    status=201,
    errors=(413, 422),
    max_body=PACK_BYTES,
    stream=True,
)
async def store_pack(view: View, upload: Upload) -> PackStored:
    """Store every object of a pack, or none"""
    return await packs.store(view, upload)


@route(
    "POST",
    "/api/v1/repos/{id}/packs/fetch",
    operation="pack.fetch",
    flag=FLAG,
    errors=(413, 422),
    max_body=DIGESTS,
    stream=True,
    media=BYTES,
)
async def fetch_pack(view: View, upload: Upload) -> Reply:
    """A pack of these objects (32 bytes a digest); Svc-Remaining counts those that did not fit"""
    made = await packs.fetch(view, await packs.read_digests(upload))
    return Reply(
        status=200,
        content_type=BYTES,
        headers={"svc-remaining": str(made.left)},
        stream=made.stream,
        length=made.length,
    )
