"""`svc doc edit`."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from localstore.core.document.content import checked as checked_content
from localstore.core.errors import SvcError, UsageError
from localstore.core.limits import JSON_BODY
from localstore.core.model.document import Document, DocumentArchived, DocumentPut
from svc.cmd.doc.words import COLUMNS, AsJson, File, Id, content_of, documents_of
from svc.cmd.frame.context import Ctx
from svc.console import answers
from svc.flows.document.place import explained_missing
from svc.flows.document.text import is_json, parsed, written
from svc.flows.editor import editor, run
from svc.http.checked import checked


@answers(COLUMNS, Document)
def edit(
    ctx: Ctx,
    id: Id,
    title: Annotated[str | None, typer.Option("-t", "--title", metavar="TEXT", help="The new title")] = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Edit a document; what others change meanwhile stays

    Your editor opens (VISUAL, EDITOR) on the content: a text, or JSON. What you change becomes operations on
    the version that you saw, so that both stay if somebody else changes the document meanwhile. With --file
    the content is that of the file.

    Examples:
    svc doc edit 0198c0de
    svc doc edit 0198c0de -F plan.json
    svc doc edit 0198c0de --title "Plan for May"
    """
    place = documents_of(ctx, id)
    content = None if file is None else checked_content(content_of(file, as_json))
    with explained_missing(id):
        old = place.get(id)
        if old.archived:
            raise DocumentArchived(
                f"the document {old.title} is archived; to change it, run: svc doc unarchive {old.id}"
            )
        if file is None and title is not None:
            content = old.content
        draft = None
        if file is None and title is None:
            draft, content = _typed(ctx, old)
        body = checked(DocumentPut(content=content, title=title, base=old.frontier))
        try:
            document = place.put(id, body)
        except SvcError as error:
            raise _with_draft(error, draft) from None
    if draft is not None:
        shutil.rmtree(draft.parent, ignore_errors=True)
    if document.frontier == old.frontier:
        ctx.out.done(f"{document.title} did not change", document, COLUMNS, Document, value=document.id)
        return
    both = "; what others changed meanwhile is in it too" if _others_wrote(old, document) else ""
    ctx.out.done(f"Changed {document.title}{both}", document, COLUMNS, Document, value=document.id)


def _others_wrote(old: Document, new: Document) -> bool:
    return int(new.frontier) > int(old.frontier) + 1


def _typed(ctx: Ctx, old: Document) -> tuple[Path, Any]:
    """(the file that the user edited, its content). Raises UsageError without an editor, ClientError if it
    fails or leaves what is no content; the file then stays."""
    file = _edited(written(old.content), is_json(old.content), ctx.obj.environment)
    try:
        raw = file.read_bytes()
        if len(raw) > JSON_BODY:
            raise UsageError(f"the content has at most {JSON_BODY} bytes")
        return file, checked_content(parsed(raw.decode("utf-8"), is_json(old.content)))
    except UnicodeDecodeError:
        raise _with_draft(UsageError("this is not UTF-8 text"), file) from None
    except SvcError as error:
        raise _with_draft(error, file) from None


def _edited(text: str, json: bool, environment: Mapping[str, str]) -> Path:
    """The file in which the user edited the text, in a folder of its own."""
    command = editor(environment, "say the content with --file")
    folder = Path(tempfile.mkdtemp(prefix="svc-"))
    file = folder / ("DOCUMENT.json" if json else "DOCUMENT.md")
    try:
        file.write_text(text, "utf-8")
        run(command, file, "nothing was changed; use --file")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return file


def _with_draft(error: SvcError, file: Path | None) -> SvcError:
    """The error, which also says where the edited file is."""
    if file is None:
        return error
    error.detail = f"{error.detail}; what you wrote is in {file}"
    return error
