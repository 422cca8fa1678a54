"""Arguments and columns that commands on documents share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.errors import Unauthorized, UsageError
from localstore.core.model.limits import JSON_BODY
from localstore.documents import is_local
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.text_options import text_of
from svc.console import Column
from svc.flows.document.offline import OfAccount
from svc.flows.document.place import Documents, OnDevice, OnServer
from svc.flows.document.text import parse_content

COLUMNS = (
    Column("id"),
    Column("title"),
    Column("mode", spare=2),
    Column("archived", spare=1),
    Column("frontier", spare=3),
    Column("updated_at", kind="time"),
)
ALL = (
    *COLUMNS,
    Column("owner", spare=4),
    Column("created_at", kind="time", spare=5),
    Column("content", spare=6),
)
Id = Annotated[str, typer.Argument(metavar="ID", help="From svc doc list")]
File = Annotated[
    str | None,
    typer.Option(
        "-F", "--file", metavar="FILE", help="The file with the content; JSON if .json; - is standard input"
    ),
]
AsJson = Annotated[bool, typer.Option("--as-json", help="The content is JSON, whatever the file is called")]


def content_of(file: str | None, as_json: bool) -> Any:
    """Return the content in a file, which is a text or JSON. None if no file is given. Raises UsageError if
    the file cannot be read, is too large, or is not JSON."""
    text = text_of(None, file, ("--file", "--file"), "the content", JSON_BODY)
    if text is None or file is None:
        return None
    return parse_content(text, names_json(file, as_json))


def names_json(file: str, as_json: bool) -> bool:
    """Return whether the name of the file, or --as-json, says that its content is JSON."""
    return as_json or file.endswith(".json")


def documents_of(ctx: Ctx, document_id: str) -> Documents:
    """Return the documents of this device if the id is one of this device's own ids. Otherwise return the
    documents of the server. Raises UsageError if `--queue` is used with a document of this device."""
    return on_device(ctx) if is_local(document_id) else on_server(ctx)


def on_device(ctx: Ctx) -> OnDevice:
    """Return the documents on this device. Raises UsageError if `--queue` is used."""
    if ctx.obj.queues:
        raise UsageError("a document of this device waits for no server; leave out --queue")
    return OnDevice(ctx.obj.home)


def on_server(ctx: Ctx) -> OnServer:
    """Return the documents of the signed-in account."""
    run = ctx.obj
    session = None if run.environment.get("SVC_TOKEN") else run.sessions.find(run.server)
    if session is None:
        return OnServer(lambda: ctx.api)
    return OfAccount(lambda: ctx.api, session, run.home, ctx.out.note)


def of_account(ctx: Ctx) -> OfAccount:
    """Return the documents of the account that this device is signed in to. Raises Unauthorized if this
    device is not signed in."""
    place = on_server(ctx)
    if not isinstance(place, OfAccount):
        raise Unauthorized(
            "edits wait for this machine's sign-in, not for SVC_TOKEN; unset it and run: "
            f"svc login --server {ctx.obj.server}"
        )
    return place
