"""The command `svc doc edit`."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from localstore.core.document.content import check_content as checked_content
from localstore.core.document.content import encode
from localstore.core.errors import SvcError, UsageError
from localstore.core.model.document import Document, DocumentArchived
from localstore.core.model.limits import JSON_BODY
from svc.cmd.doc.words import COLUMNS, AsJson, File, Id, content_of, documents_of, names_json
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.editor import draft
from svc.cmd.frame.queueing import print_queued
from svc.console import answers
from svc.flows.document.place import explained_missing
from svc.flows.document.text import format_content, is_json, parse_content
from svc.flows.editor import editor, run
from svc.flows.outbox.actions import Queued


@answers(COLUMNS, Document)
def edit(
    ctx: Ctx,
    id: Id,
    title: Annotated[str | None, typer.Option("-t", "--title", metavar="TEXT", help="The new title")] = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Edit a document; what others change meanwhile stays

    Your editor (VISUAL, EDITOR) opens with the content, which is a text or JSON. Your changes are applied on
    top of the changes that others make meanwhile. --file takes the new content from a file. If the server
    cannot be reached, the edit waits on this device.

    Examples:
    svc doc edit 0198c0de
    svc doc edit 0198c0de -F plan.json
    svc doc edit 0198c0de --title "Plan for May"
    """
    place = documents_of(ctx, id)
    content = None if file is None else checked_content(content_of(file, as_json))
    with explained_missing(id):
        view = place.look(id)
    old = view.document
    if isinstance(content, str) and file is not None:
        content = _of_same_kind(content, old, parsed=names_json(file, as_json))
    if old.archived:
        raise DocumentArchived(old.title, old.id)
    queued: Queued | None = None
    with ExitStack() as stack:
        if file is None and title is not None:
            content = old.content
        elif file is None:
            content = _edit_content(ctx, stack.enter_context(_draft(ctx, old)), is_json(old.content))
        if file is None and title is None and encode(content) == encode(old.content):
            document = old
        else:
            with explained_missing(id):
                try:
                    document = place.change(view, content, title)
                except Queued as waits:  # it is kept: the draft is not needed any more
                    queued = waits
    if queued is not None:
        print_queued(ctx.out, ctx.obj.home, queued.entry)
        return
    if document.frontier == old.frontier:
        ctx.out.done(f"{document.title} did not change", document, COLUMNS, Document, value=document.id)
        return
    both = "; what others changed meanwhile is in it too" if _others_wrote(old, document) else ""
    ctx.out.done(f"Changed {document.title}{both}", document, COLUMNS, Document, value=document.id)


def _of_same_kind(text: str, old: Document, *, parsed: bool) -> object:
    """Return the content of a file that replaces the content of `old`. It is JSON if that is JSON: a text in
    its place would take what others change meanwhile with it. Raises UsageError if it is not JSON, or is only
    a JSON string, which is a text. `parsed`: `text` is such a string."""
    if old.content is None or not is_json(old.content):
        return text
    way = f"the document {old.title} is JSON: write an object or a list, or create another one"
    content: object = text
    if not parsed:
        try:
            content = checked_content(parse_content(text, json=True))
        except UsageError as error:
            error.detail = f"{error.detail}; {way}"
            raise
    if isinstance(content, str):
        raise UsageError(f"the file has a JSON string, which would make a text of it; {way}")
    return content


def _others_wrote(old: Document, new: Document) -> bool:
    return int(new.frontier) > int(old.frontier) + 1


def _draft(ctx: Ctx, old: Document) -> AbstractContextManager[Path]:
    """A context that yields a file with the content of a document, for the editor. If an error ends the
    context, the file is kept with what the user wrote. Its path is added to the error's sentence, or printed
    as a note."""

    def say_where(file: Path, error: BaseException) -> None:
        where = f"what you wrote is in {file}"
        if isinstance(error, SvcError):
            error.detail = f"{error.detail}; {where}"
        else:
            ctx.out.note(where)

    name = "DOCUMENT.json" if is_json(old.content) else "DOCUMENT.md"
    return draft(name, format_content(old.content).encode(), say_where)


def _edit_content(ctx: Ctx, file: Path, json: bool) -> Any:
    """Open an editor on the file, and return the content that the user wrote. Raises UsageError if there is
    no editor or the content is invalid, ClientError if the editor fails."""
    command = editor(ctx.obj.environment, "say the content with --file")
    run(command, file, "the document did not change; use --file")
    raw = file.read_bytes()
    if len(raw) > JSON_BODY:
        raise UsageError(f"the content has at most {JSON_BODY} bytes")
    try:
        return checked_content(parse_content(raw.decode("utf-8"), json))
    except UnicodeDecodeError:
        raise UsageError("this is not UTF-8 text") from None
