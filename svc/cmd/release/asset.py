"""The commands `svc repo release upload|download|delete-asset`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from localstore.core.errors import ServerMisbehaved
from localstore.core.model import release as releases
from localstore.core.model.release import Asset
from svc.cmd.frame.context import Ctx
from svc.cmd.release.release import LIST, Version, find
from svc.console import Column, answers
from svc.flows.place.refs import explained_not_found

COLUMNS = (
    Column("name", kind="name"),
    Column("size", kind="size"),
    Column("blake3", kind="id"),
    Column("uploaded"),
)
RECEIVED = (Column("path", kind="name"), Column("size", kind="size"), Column("downloaded"))


@answers(COLUMNS, Asset)
def upload(
    ctx: Ctx,
    version: Version,
    paths: Annotated[list[str], typer.Argument(metavar="FILE", help="The files")],
    clobber: Annotated[bool, typer.Option("--clobber", help="Replace assets of the same names")] = False,
) -> None:
    """Upload files to a release

    An asset has at most 128 MiB. A file that the release already has is not sent again. After an
    interruption, a file above 16 MiB continues where it stopped.

    Examples:
    svc repo release upload v1.0.0 dist/*.tar.gz
    svc repo release upload v1.0.0 dist/app.zip --clobber
    """
    from svc.flows.assets.local import local_files
    from svc.flows.assets.upload import upload as send

    files = local_files(paths)
    repo = ctx.repo
    with explained_not_found(repo, f"release {version}", LIST):
        ctx.api.send(releases.GET, id=repo.id, v=version)
    ctx.out.goes_on = True
    sent = list(send(ctx.api, repo.id, version, files, clobber, ctx.obj.progress))
    rows = [{**_to_record(result.asset), "uploaded": result.uploaded} for result in sent]
    ctx.out.rows(rows, COLUMNS, Asset)


@answers(RECEIVED, Asset)
def download(
    ctx: Ctx,
    version: Annotated[str, typer.Argument(metavar="[VERSION]", help="The version; else the newest")] = "",
    pattern: Annotated[
        list[str] | None,
        typer.Option("-p", "--pattern", metavar="GLOB", help="Only assets whose names match; repeatable"),
    ] = None,
    folder: Annotated[str, typer.Option("-D", "--dir", metavar="DIR", help="Where they go")] = ".",
    clobber: Annotated[bool, typer.Option("--clobber", help="Overwrite files of the same names")] = False,
) -> None:
    """Download assets into a folder

    Each file gets its name when it is complete and verified. If the download is interrupted, run the command
    again, and it continues where it stopped. If a signature does not verify, nothing is downloaded.

    Examples:
    svc repo release download v1.0.0 -R alice/notes -D dist
    svc repo release download --pattern '*.tar.gz'
    """
    from svc.flows.assets.download import download as receive
    from svc.flows.assets.download import select_assets
    from svc.flows.catalog import publication

    repo = ctx.readable_repo
    release = find(ctx, repo, version)
    if (fault := publication.fault_of(repo.id, release)) is not None:
        raise ServerMisbehaved(f"{fault}; nothing was downloaded")
    assets = select_assets(release, pattern or [])
    ctx.out.goes_on = True
    received = receive(ctx.reader, repo.id, release.version, assets, Path(folder), clobber, ctx.obj.progress)
    rows = [
        {**_to_record(result.asset), "path": str(result.path), "downloaded": result.downloaded}
        for result in received
    ]
    ctx.out.rows(rows, RECEIVED, Asset)


@answers((Column("version"), Column("name")))
def delete_asset(ctx: Ctx, version: Version, name: Annotated[str, typer.Argument(help="The asset")]) -> None:
    """Remove an asset of a release

    Examples:
    svc repo release delete-asset v1.0.0 app.zip --yes
    """
    repo = ctx.repo
    with explained_not_found(repo, f"asset {name} in release {version}", f"svc repo release view {version}"):
        release = ctx.api.send(releases.GET, id=repo.id, v=version)
        if any(asset.name == name for asset in release.assets):
            ctx.confirm(f"Removing {name} from release {version} of {repo.full_name}")
        ctx.api.send(releases.DELETE_ASSET, id=repo.id, v=version, name=name)
    done = {"version": version, "name": name}
    columns = (Column("version"), Column("name"))
    ctx.out.done(f"Removed {name} from release {version}", done, columns, value=name)


def _to_record(asset: Asset) -> dict[str, Any]:
    import msgspec

    built: dict[str, Any] = msgspec.to_builtins(asset)
    return built
