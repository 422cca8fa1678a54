"""The commands `svc doc create|list|view|history|archive|unarchive|delete`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.document.content import check_content as checked_content
from localstore.core.model.document import (
    LOCAL,
    STORED,
    Document,
    DocumentCreate,
    DocumentSummary,
    DocumentUpdate,
)
from svc.cmd.doc.words import (
    ALL,
    COLUMNS,
    AsJson,
    File,
    Id,
    content_of,
    documents_of,
    of_account,
    on_device,
    on_server,
)
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.cmd.frame.queueing import queueable_anywhere
from svc.console import Column, answers
from svc.flows.document.place import Documents, explained_missing
from svc.flows.document.text import format_content
from svc.http.checked import require_valid

CHANGES = (
    Column("number"),
    Column("base"),
    Column("first", spare=1),
    Column("bytes"),
    Column("created_at", kind="time"),
)
Local = Annotated[bool, typer.Option("--local", help="On this device only; it is never sent")]


@queueable_anywhere
@answers(ALL, Document)
def create(
    ctx: Ctx,
    title: Annotated[str, typer.Argument(help="Its title")],
    file: File = None,
    as_json: AsJson = False,
    local: Local = False,
) -> None:
    """Create a document

    The content is a text or JSON. With --local it is stored only on this device, otherwise on your account's
    server.

    Examples:
    svc doc create "Shopping" -F list.md
    svc doc create settings -F settings.json --local
    echo '{"open": 3}' | svc doc create counters -F - --as-json
    """
    content = checked_content(content_of(file, as_json))
    body = require_valid(DocumentCreate(title=title, mode=LOCAL if local else STORED, content=content))
    document = _place(ctx, local).create(body)
    ctx.out.done(f"Created {title} ({document.id})", document, ALL, Document, value=document.id)


def _place(ctx: Ctx, local: bool) -> Documents:
    return on_device(ctx) if local else on_server(ctx)


@answers(COLUMNS, DocumentSummary)
def list_documents(
    ctx: Ctx,
    local: Local = False,
    archived: Annotated[bool, typer.Option("--archived", help="Only those that are archived")] = False,
    limit: Limit = 30,
) -> None:
    """List your documents

    Examples:
    svc doc list
    svc doc list --local --archived
    """
    rows = _place(ctx, local).items(archived or None, limit)
    create_one = "svc doc create TITLE --local" if local else "svc doc create TITLE"
    ctx.out.rows(rows, COLUMNS, DocumentSummary, empty=f"no documents; make one: {create_one}")


@answers(ALL, Document)
def view(
    ctx: Ctx,
    id: Id,
    queued: Annotated[
        bool, typer.Option("--queued", help="What you wrote here that waits or was refused")
    ] = False,
) -> None:
    """Show a document

    On a terminal the title and the content are printed, in a pipe only the content. A text is printed
    unchanged, any other content as JSON. If the server cannot be reached, the last version that this device
    has seen is shown, with your waiting edits.

    Examples:
    svc doc view 0198c0de
    svc doc view 0198c0de > plan.json
    svc doc view 0198c0de --queued > mine.json
    """
    if queued:
        document = of_account(ctx).written(id)
    else:
        with explained_missing(id):
            document = documents_of(ctx, id).look(id).document
    if ctx.out.format.as_data:
        ctx.out.record(document, ALL, Document)
    elif ctx.out.terminal:
        ctx.out.record(document, COLUMNS, Document, body=format_content(document.content))
    else:
        ctx.out.text(format_content(document.content))


@answers(CHANGES, DocumentUpdate)
def history(ctx: Ctx, id: Id, limit: Limit = 30) -> None:
    """List the changes of a document

    The newest change comes first. `base` is the number of the newest change that the author had seen. If it
    is smaller than `first - 1`, others changed the document meanwhile. Old changes are joined: `number` is
    then the number of the newest of them, and `first` that of the oldest.

    Examples:
    svc doc history 0198c0de
    """
    with explained_missing(id):
        changes = list(documents_of(ctx, id).history(id, limit))
    ctx.out.rows(changes, CHANGES, DocumentUpdate, empty="no changes")


@queueable_anywhere
@answers(COLUMNS, Document)
def archive(ctx: Ctx, id: Id) -> None:
    """Archive a document, so that it takes no changes

    Examples:
    svc doc archive 0198c0de
    """
    _archive(ctx, id, True)


@queueable_anywhere
@answers(COLUMNS, Document)
def unarchive(ctx: Ctx, id: Id) -> None:
    """Let an archived document take changes again

    Examples:
    svc doc unarchive 0198c0de
    """
    _archive(ctx, id, False)


def _archive(ctx: Ctx, id: str, archived: bool) -> None:
    with explained_missing(id):
        document = documents_of(ctx, id).archive(id, archived)
    done = "Archived" if archived else "Unarchived"
    ctx.out.done(f"{done} {document.title}", document, COLUMNS, Document, value=document.id)


@answers((Column("id"),))
def delete(ctx: Ctx, id: Id) -> None:
    """Delete a document with its history

    Examples:
    svc doc delete 0198c0de --yes
    """
    place = documents_of(ctx, id)
    with explained_missing(id):
        title = place.look(id).document.title
        ctx.confirm(f"Deleting {title} removes its content and history for ever")
        place.delete(id)
    ctx.out.done(f"Deleted {title}", {"id": id}, (Column("id"),), value=id)
