"""Payloads: stored bytes, identified by their BLAKE3 and sent one by one or in packs. A client can also ask
which of them a repository lacks."""

from __future__ import annotations

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.model.base import Count, Model


class HaveAnswer(Model, frozen=True):
    """Which of the requested digests the repository lacks. `missing`: indices in the list of the request."""

    missing: list[Count]


class PackStored(Model, frozen=True):
    """The answer to an uploaded pack. `objects`: how many objects it contains. `stored_bytes`: the compressed
    size of its frames."""

    objects: Count
    stored_bytes: Count


class PayloadStored(Model, frozen=True):
    blake3: str
    size: Count


class ChunkedStored(Model, frozen=True):
    """The answer to the upload of a large file. `blake3` and `size` (bytes) describe the whole file;
    `chunks`: how many chunks it has."""

    blake3: str
    size: Count
    chunks: Count


class AtQuery(Model, frozen=True):
    """A query for bytes by their digest. `at`: id of a seal. If paths are hidden from the caller, the bytes
    are returned only if the visible part of this seal's tree contains them."""

    at: str | None = None


# Bytes are kept by their digest: sent twice they are there once, without an Idempotency-Key.
_ONE = f"{REPO}/payloads/{{blake3}}"
PUT = Endpoint("PUT", _ONE, returns=PayloadStored, status=201, repeatable=True, keyed=False)
GET = Endpoint("GET", _ONE, query=AtQuery, returns=bytes)
PUT_MANIFEST = Endpoint(
    "PUT", f"{_ONE}/manifest", returns=ChunkedStored, status=201, repeatable=True, keyed=False
)
GET_MANIFEST = Endpoint("GET", f"{_ONE}/manifest", query=AtQuery, returns=bytes)
HAVE = Endpoint("POST", f"{REPO}/have", returns=HaveAnswer, repeatable=True, keyed=False)
PUT_PACK = Endpoint("POST", f"{REPO}/packs", returns=PackStored, status=201, repeatable=True, keyed=False)
GET_PACK = Endpoint("POST", f"{REPO}/packs/fetch", query=AtQuery, returns=bytes, repeatable=True, keyed=False)
