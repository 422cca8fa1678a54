"""Routes of documents. A document of another account gets the same answer as a document that does not
exist.
"""

from __future__ import annotations

from sanic.request import Request

from localstore.core.model import document as endpoints
from localstore.core.model.document import Document, DocumentCreate, DocumentPut
from relay.caller import Caller
from relay.domain.document import document
from relay.http.routing import Reply, serves

serves(endpoints.LIST, operation="document.list")(document.page)


@serves(endpoints.CREATE, operation="document.create", cost=8, errors=(409, 413, 503, 507))
async def create(caller: Caller, body: DocumentCreate) -> Document | Reply:
    """Create a document"""
    return _with_etag(await document.create(caller, body), 201)


@serves(endpoints.GET, operation="document.get", errors=(404,), others=(304,))
async def get(caller: Caller, id: str) -> Document | Reply:
    """One document of the caller, with ETag"""
    return _with_etag(await document.get(caller, id))


@serves(endpoints.PUT, operation="document.put", cost=8, errors=(404, 409, 412, 413, 503, 507))
async def put(caller: Caller, id: str, body: DocumentPut, request: Request) -> Document | Reply:
    """Change a document to the given content

    The change is stored as operations, so that changes by others since the version `base` stay. With
    If-Match, the document changes only if its ETag still matches.
    """
    conditions = request.headers.getall("if-match", ())
    if_match = ",".join(conditions) if conditions else None
    return _with_etag(await document.put(caller, id, body, if_match))


serves(endpoints.DELETE, operation="document.delete", errors=(404,))(document.delete)
serves(endpoints.HISTORY, operation="document.history", errors=(404,))(document.history)


@serves(endpoints.ARCHIVE, operation="document.archive", errors=(404,))
async def archive(caller: Caller, id: str) -> Document | Reply:
    """Archive a document, which then takes no writes; a repeated request changes nothing"""
    return _with_etag(await document.archive(caller, id))


@serves(endpoints.UNARCHIVE, operation="document.unarchive", errors=(404,))
async def unarchive(caller: Caller, id: str) -> Document | Reply:
    """Let an archived document take writes again; a repeated request changes nothing"""
    return _with_etag(await document.unarchive(caller, id))


def _with_etag(answer: Document, status: int = 200) -> Reply:
    """The answer that contains this document, with its ETag in a header."""
    return Reply(answer, status, etag=document.tag_of(answer))
