"""The command `svc upgrade`."""

from __future__ import annotations

from typing import Annotated

import typer

from localstore.core.errors import Conflict
from svc import __version__
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

COLUMNS = (
    Column("version"),
    Column("newest"),
    Column("behind"),
    Column("verified"),
    Column("signed"),
    Column("artifact"),
    Column("sha256", kind="id"),
    Column("source_commit", kind="id"),
    Column("server"),
)


@answers(COLUMNS)
def upgrade(
    ctx: Ctx,
    check: Annotated[bool, typer.Option("--check", help="Say what there is; change nothing")] = False,
) -> None:
    """Upgrade this program, or only check

    The builds come from the server to which you are signed in, or that --server or SVC_SERVER names. The
    server of the current folder is never used. The new file replaces this one only if a release key built
    into this program has signed it, its SHA-256 is right, and it prints its version. If anything fails, the
    old file stays. The command refuses to run while another svc command or the watcher runs.

    `verified` says whether the file of this program is identical to the build that the server has of this
    version. `signed` says whether a trusted key has signed the new build.

    Examples:
    svc upgrade --check
    svc upgrade
    """
    from svc.flows.catalog import upgrade as flow
    from svc.flows.place import in_use

    ctx.obj.use_server(ctx.obj.chosen_server)
    standing = flow.compare_builds(ctx.reader, __version__)
    record = {
        "version": standing.version,
        "newest": standing.newest,
        "behind": standing.behind,
        "verified": standing.verified,
        "signed": standing.signed,
        "artifact": standing.build and standing.build.name,
        "sha256": standing.build and standing.build.sha256,
        "source_commit": standing.build and standing.build.source_commit,
        "server": ctx.reader.origin,
    }
    if check:
        ctx.out.record(record, COLUMNS)
        return
    if not standing.behind:
        ctx.out.done(f"svc {standing.version} is the newest", record, COLUMNS, value=standing.version)
        return
    if not in_use.is_alone(ctx.obj.held):
        raise Conflict("another command, or a watcher, runs on this machine; end it and try again")
    file = flow.install(ctx.reader, standing, ctx.obj.progress)
    ctx.out.done(f"Upgraded {file} to svc {standing.newest}", record, COLUMNS, value=standing.newest)
