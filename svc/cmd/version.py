"""The command `svc version`."""

from __future__ import annotations

from localstore.core.errors import SvcError
from localstore.core.model.node import VERSION
from svc import __version__
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

COLUMNS = (
    Column("version"),
    Column("server"),
    Column("server_version"),
    Column("edition"),
    Column("api_version"),
    Column("min_client"),
    Column("source_url"),
)


@answers(COLUMNS)
def version(ctx: Ctx) -> None:
    """Show the versions of this program and of the server

    `svc --version` shows only the program's version and sends no request.

    Examples:
    svc version
    svc version --jq .server_version
    """
    record: dict[str, object] = {column.name: None for column in COLUMNS} | {"version": __version__}
    try:
        node = ctx.reader.send(VERSION)
        record |= {
            "server": ctx.reader.origin,
            "server_version": node.version,
            "edition": node.edition,
            "api_version": node.api_version,
            "min_client": node.min_client,
            "source_url": node.source_url,
        }
    except SvcError as error:
        ctx.out.note(f"svc: {error.detail}")
    ctx.out.record(record, COLUMNS)
