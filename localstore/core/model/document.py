"""Documents of an account: a title and JSON content, which several people may change at the same time.

A client sends the whole new content, and as `base` the frontier (version number) of the content that it had
read. The relay stores the difference between the two contents as operations, so that changes that others made
meanwhile remain."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from localstore.core.endpoint import Endpoint
from localstore.core.errors import Conflict, Invalid, SvcError
from localstore.core.model.base import Model, Page, PageQuery, Sent, visible
from localstore.core.model.limits import DOCUMENT_TITLE_CHARS

STORED = 2  # the mode of documents on a server
LOCAL = 1  # the mode of documents of one device


class DocumentMoved(SvcError):
    """The document has changed and no longer matches If-Match; read it again."""

    code, status, title = "document_moved", 412, "Precondition Failed"


class DocumentArchived(Conflict):
    """The document is archived and cannot be changed; unarchive it first."""

    code = "document_archived"

    def __init__(self, title: str, id: str) -> None:
        super().__init__(f"the document {title} is archived; to change it, run: svc doc unarchive {id}")


class DocumentBaseGone(Conflict):
    """The version on which an edit is based is too old: its operations are now stored only joined with later
    ones."""

    code = "document_base_gone"


class DocumentModeRefused(Invalid):
    """A server does not store documents of this mode."""

    code = "document_mode"


class DocumentDamaged(SvcError):
    """The stored operations of a document cannot be read."""

    code = "document_damaged"


Title = Annotated[str, visible(DOCUMENT_TITLE_CHARS)]
Frontier = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,14}$", description="a frontier of a document")]


class DocumentSummary(Model, frozen=True):
    """A document in lists. `mode`: where it is stored, see `DocumentCreate`. `owner`: the account's id.
    `frontier`: the version number of title and content. `at_head`, `checkpoint_id`: say which version is
    shown, which is always the newest."""

    id: str
    title: str
    mode: int
    owner: str
    archived: bool
    frontier: str
    at_head: bool
    checkpoint_id: str | None
    created_at: str
    updated_at: str


class Document(DocumentSummary, frozen=True):
    """A document with its content, in which the members of objects are sorted."""

    content: Any


class DocumentCreate(Sent, frozen=True):
    """A new document. `mode`: where it is stored. 2 means on a server. A server refuses the mode 1 (only on
    the device) and the modes 3 to 5, which it does not support."""

    title: Title
    mode: Annotated[int, msgspec.Meta(ge=1, le=5)] = STORED
    content: Any = None


class DocumentPut(Sent, frozen=True):
    """The content that a document should get, and its title if that changes. `base`: the frontier (version
    number) of the content that was edited. Without `base` the new content replaces the newest one,
    including everything that others wrote."""

    content: Any
    title: Title | None = None
    base: Frontier | None = None


class DocumentQuery(PageQuery, frozen=True):
    """A filter of documents. `archived`: True for only the archived ones, False for only the others, None for
    all."""

    archived: bool | None = None


class DocumentUpdate(Model, frozen=True):
    """A stored change of a document. `number`: the frontier (version number) after the change. `first`: the
    number of the oldest change in it, smaller than `number` if several were joined. `bytes`: size of its
    operations. `base`: the frontier of the content that was edited. It is `first - 1`, or less if others
    changed the document meanwhile."""

    number: int
    first: int
    base: int
    bytes: int
    created_at: str


DOCUMENTS = "/api/v1/documents"
ONE = f"{DOCUMENTS}/{{id}}"
LIST = Endpoint("GET", DOCUMENTS, query=DocumentQuery, returns=Page[DocumentSummary])
CREATE = Endpoint("POST", DOCUMENTS, body=DocumentCreate, returns=Document, status=201)
GET = Endpoint("GET", ONE, returns=Document)
PUT = Endpoint("PUT", ONE, body=DocumentPut, returns=Document)
DELETE: Endpoint[None] = Endpoint("DELETE", ONE, status=204)
ARCHIVE = Endpoint("POST", f"{ONE}/archive", returns=Document)
UNARCHIVE = Endpoint("POST", f"{ONE}/unarchive", returns=Document)
HISTORY = Endpoint("GET", f"{ONE}/history", query=PageQuery, returns=Page[DocumentUpdate])
