"""The command `svc repo listing`."""

from __future__ import annotations

from typing import Annotated, get_args

import typer
from msgspec.structs import asdict

from localstore.core.errors import NotFound, UsageError
from localstore.core.model import listing as endpoints
from localstore.core.model.listing import Images, Listing, ListingSet
from svc.cmd.frame.context import Ctx
from svc.cmd.frame.options import Repository
from svc.console import Column, answers
from svc.flows.place.refs import explained_not_found
from svc.http.checked import require_valid


def _lines(record: dict[str, list[str]]) -> str:
    return ", ".join(record["screenshots"])


COLUMNS = (
    Column("name"),
    Column("category"),
    Column("pictures", _lines, kind="line"),
    Column("readme_images"),
    Column("installable"),
    Column("updated_at", kind="time"),
    Column("id"),
)


@answers(COLUMNS, Listing)
def listing(
    ctx: Ctx,
    repository: Repository = "",
    name: Annotated[
        str | None, typer.Option("--name", metavar="TEXT", help="What the catalog calls it")
    ] = None,
    category: Annotated[
        str | None, typer.Option("--category", metavar="TEXT", help="Its category; '' for none")
    ] = None,
    screenshot: Annotated[
        list[str] | None,
        typer.Option("--screenshot", metavar="PATH", help="A picture in the repository; again for more"),
    ] = None,
    no_screenshots: Annotated[bool, typer.Option("--no-screenshots", help="Show no pictures")] = False,
    readme_images: Annotated[
        str | None,
        typer.Option("--readme-images", metavar="none|upstream|all", help="Pictures of the README to show"),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the listing away")] = False,
) -> None:
    """Show or change the listing of a repository

    Without an option the listing is shown. Everybody may read the listing of a public repository, and only
    its owner may change it. Fields without an option stay unchanged. A new listing gets the repository's
    name.

    Examples:
    svc repo listing
    svc repo listing --name "Field notes" --category Writing
    svc repo listing --screenshot docs/app.png
    svc repo listing --remove --yes
    """
    ctx.obj.set_repository(repository)
    changes = [name, category, screenshot, readme_images]
    changing = no_screenshots or any(change is not None for change in changes)
    if remove and changing:
        raise UsageError("--remove takes the listing away; omit the other options")
    if no_screenshots and screenshot:
        raise UsageError("--screenshot and --no-screenshots contradict each other")
    if readme_images is not None and readme_images not in get_args(Images):
        raise UsageError(f"--readme-images is one of {', '.join(get_args(Images))}")
    if not (remove or changing):
        ctx.out.record(_get_listing(ctx), COLUMNS, Listing)
        return
    repo = ctx.repo
    if remove:
        with explained_not_found(repo, "listing", "svc repo listing --name NAME"):
            old = ctx.api.send(endpoints.GET, id=repo.id)
            ctx.confirm(f"Taking {repo.full_name} out of the catalog")
            ctx.api.send(endpoints.REMOVE, id=repo.id)
        ctx.out.done(f"Removed the listing of {repo.full_name}", old, COLUMNS, Listing, value=old.id)
        return
    try:
        fields = asdict(ctx.api.send(endpoints.GET, id=repo.id))
    except NotFound:
        fields = {"name": repo.name}
    if name is not None:
        fields["name"] = name
    if category is not None:
        fields["category"] = category or None
    if screenshot or no_screenshots:
        fields["screenshots"] = screenshot or []
    if readme_images is not None:
        fields["readme_images"] = readme_images
    body = require_valid(
        ListingSet(**{key: value for key, value in fields.items() if key in ListingSet.__struct_fields__})
    )
    record = ctx.api.send(endpoints.SET, body, id=repo.id)
    ctx.out.done(f"Listed {repo.full_name} as {record.name}", record, COLUMNS, Listing, value=record.id)


def _get_listing(ctx: Ctx) -> Listing:
    repo = ctx.readable_repo
    with explained_not_found(repo, "listing", "svc repo listing --name NAME"):
        return ctx.reader.send(endpoints.GET, id=repo.id)
