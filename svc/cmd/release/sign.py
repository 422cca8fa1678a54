"""The command `svc repo release sign`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.model import release as releases
from localstore.core.model.release import Release
from svc.cmd.frame.context import Ctx
from svc.cmd.release.release import COLUMNS, LIST, Version
from svc.console import answers
from svc.flows.place.refs import explained_not_found


@answers(COLUMNS, Release)
def sign(
    ctx: Ctx,
    version: Version,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[FILE]...", help="The files here that it has to have")
    ] = None,
) -> None:
    """Sign a release with the files that it has

    Signs with this machine's device key; you need the role write. With FILES the release is signed only if it
    has exactly these files. The signature becomes invalid when a file is added or removed later.

    Examples:
    svc repo release sign v1.0.0 dist/*
    """
    from svc.flows.assets.local import local_files
    from svc.flows.catalog import publication

    local = local_files(paths) if paths else None
    repo = ctx.repo
    with explained_not_found(repo, f"release {version}", LIST):
        release = ctx.api.send(releases.GET, id=repo.id, v=version)
    signed = publication.sign(ctx.api, repo.id, release, ctx.obj.sessions.signing_key(), local)
    ctx.out.done(f"Signed release {signed.version}", signed, COLUMNS, Release, value=signed.version)
