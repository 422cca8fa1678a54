"""Arguments and columns that commands on documents share."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from localstore.core.limits import JSON_BODY
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.text_options import text_of
from svc.console import Column
from svc.flows.document.place import Documents, place_of
from svc.flows.document.text import parsed

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
    """The content that a file says; None without one. Raises UsageError."""
    text = text_of(None, file, ("--file", "--file"), "the content", JSON_BODY)
    if text is None or file is None:
        return None
    return parsed(text, as_json or file.endswith(".json"))


def documents_of(ctx: Ctx, document_id: str) -> Documents:
    return place_of(document_id, ctx.obj.home, lambda: ctx.api)
