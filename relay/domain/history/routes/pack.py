"""Packs: many objects in one request, beside the single payloads."""

from __future__ import annotations

from functools import partial

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.limits import HAVE_DIGESTS, PACK_BYTES
from localstore.core.model import payload as endpoints
from localstore.core.model.payload import AtQuery, HaveAnswer, PackStored
from relay.caller import View
from relay.domain.history import proof
from relay.domain.history.routes.payload import FLAG
from relay.domain.storage import pack as packs
from relay.domain.storage.chunked import BYTES
from relay.http.routing import Reply, Upload, serves

DIGESTS = HAVE_DIGESTS * DIGEST_SIZE


@serves(endpoints.HAVE, operation="pack.have", flag=FLAG, errors=(413, 422), max_body=DIGESTS, stream=True)
async def have(view: View, upload: Upload) -> HaveAnswer:
    """The digests (32 bytes each) that the repository lacks"""
    return await packs.have(view, await packs.read_digests(upload))


@serves(
    endpoints.PUT_PACK, operation="pack.store", flag=FLAG, errors=(413, 422), max_body=PACK_BYTES, stream=True
)
async def store_pack(view: View, upload: Upload) -> PackStored:
    """Store every object of a pack, or none"""
    return await packs.store(view, upload)


@serves(
    endpoints.GET_PACK,
    operation="pack.fetch",
    flag=FLAG,
    errors=(413, 422),
    max_body=DIGESTS,
    stream=True,
    media=BYTES,
)
async def fetch_pack(view: View, query: AtQuery, upload: Upload) -> Reply:
    """A pack of these objects (32 bytes a digest); Svc-Remaining counts those that did not fit"""
    made = await packs.fetch(
        view, await packs.read_digests(upload), partial(proof.require_named, view, query.at)
    )
    return Reply(
        status=200,
        content_type=BYTES,
        headers={"svc-remaining": str(made.left)},
        stream=made.stream,
        length=made.length,
    )
