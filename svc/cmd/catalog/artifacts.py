"""The command `svc repo artifacts`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.encoding import is_hex_digest
from localstore.core.model import artifact as endpoints
from localstore.core.model.artifact import Artifact
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Limit
from svc.console import Column, answers
from svc.flows.place.refs import default_ref, explained_not_found, find_abbreviated, seal_of

COLUMNS = (
    Column("path", kind="name"),
    Column("size", kind="size"),
    Column("kind"),
    Column("blake3", kind="id"),
)


@answers(COLUMNS, Artifact)
def artifacts(
    ctx: Ctx,
    seal: Annotated[
        str, typer.Argument(metavar="[SEAL]", help="A seal, branch or tag; else the newest of this branch")
    ] = "",
    limit: Limit = 100,
) -> None:
    """List the binary files of a seal

    Binary files are all files that are not text: pictures, weights, builds. Large ones are stored in chunks.

    Examples:
    svc repo artifacts
    svc repo artifacts 3f2a91 --json path,blake3
    """
    repo = ctx.readable_repo
    at = seal if is_hex_digest(seal) else find_abbreviated(ctx.obj, repo, seal) if seal else None
    at = at or seal_of(ctx.obj, repo, seal or default_ref(ctx.obj, repo))
    with explained_not_found(repo, f"seal {at[:12]}", "svc log"):
        rows = list(ctx.reader.items(endpoints.LIST, limit=limit, id=repo.id, seal_id=at))
    ctx.out.rows(rows, COLUMNS, Artifact, empty="no binary files")
