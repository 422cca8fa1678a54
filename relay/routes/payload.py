"""Payloads: the bytes of one object by its BLAKE3."""

from __future__ import annotations

from localstore.core.limits import BLOB_FILE
from localstore.core.model.history import PayloadStored
from relay.caller import View
from relay.routing import Read, Reply, Upload, Write, route
from relay.service import payload as payloads

FLAG = "TR_REPOS_ENABLED"
BYTES = "application/octet-stream"


@route(
    "PUT",
    "/api/v1/repos/{id}/payloads/{blake3}",
    access=Write(),
    flag=FLAG,
    returns=PayloadStored,
    status=201,
    others=(200,),
    errors=(413, 422),
    max_body=BLOB_FILE,
    stream=True,
)
async def put_payload(view: View, blake3: str, upload: Upload) -> Reply:
    """Store bytes under their BLAKE3; 200 when the repository has them already"""
    stored, new = await payloads.put(view, blake3, upload)
    return Reply(stored, 201 if new else 200)


@route(
    "GET",
    "/api/v1/repos/{id}/payloads/{blake3}",
    access=Read(anonymous=False),
    flag=FLAG,
    others=(206, 304),
    errors=(416,),
    media=BYTES,
)
async def get_payload(view: View, blake3: str) -> Reply:
    """Bytes by their BLAKE3; with ETag and ranges"""
    data = await payloads.get(view, blake3)
    return Reply(data, content_type=BYTES, etag=f'"{blake3}"')
