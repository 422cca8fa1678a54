"""Rules of listings. Only public repositories have a listing, and their owners write it."""

from __future__ import annotations

from localstore.core import paths
from localstore.core.errors import Invalid, NotFound, PathInvalid
from localstore.core.model.listing import (
    IMAGE_ENDINGS,
    Listing,
    ListingSet,
    NotListable,
    SocialCounts,
)
from localstore.core.model.repo import ParentRepo
from relay.base.clock import now_ms, rfc3339
from relay.base.ids import new_id
from relay.caller import Caller, View
from relay.db.engine.database import Tx
from relay.domain.catalog.rows import listing as rows


async def get(view: View) -> Listing:
    """The listing of a repository"""
    async with view.read() as tx:
        return await _to_wire(tx, view)


async def put(view: View, body: ListingSet) -> Listing:
    """List a repository in the catalog, or change its listing

    Replaces an existing listing, which keeps its id.
    """
    for place, path in enumerate(body.screenshots):
        _require_picture(path, f"/screenshots/{place}")
    if len(set(body.screenshots)) < len(body.screenshots):
        raise Invalid("a screenshot is named twice", pointer="/screenshots")
    async with view.write() as tx:
        of_repo, now = {"of_repo": view.repo.id}, now_ms()
        if not view.repo.public:
            raise NotListable(
                f"{view.repo.full_name} is private, and a listing is for everybody; "
                "run: svc repo visibility public"
            )
        fields = {
            "name": body.name,
            "category": body.category,
            "screenshots": "\n".join(body.screenshots),
            "readme_images": body.readme_images,
        }
        new_values = {f"new_{key}": value for key, value in fields.items()}
        if not await tx.run(rows.SET, **of_repo, **new_values, now=now):
            await tx.run(
                rows.INSERT, id=new_id(), repo_id=view.repo.id, **fields, created_at=now, updated_at=now
            )
        await view.node.hub.announce(tx, view.repo.id, "listing.set")
        return await _to_wire(tx, view)


async def remove(view: View) -> None:
    """Remove the listing of a repository"""
    async with view.write() as tx:
        if not await tx.run(rows.DELETE, of_repo=view.repo.id):
            raise NotFound
        await view.node.hub.announce(tx, view.repo.id, "listing.remove")


async def counts(caller: Caller, listing_id: str) -> SocialCounts:
    """Stars and watchers of a listing

    Raises NotFound unless everybody sees the repository.
    """
    async with caller.read() as tx:
        row = await tx.one(rows.COUNTS, listing_id=listing_id)
    if row is None:
        raise NotFound
    stars, watchers = row
    return SocialCounts(listing_id=listing_id, stars=stars, watchers=watchers)


def _require_picture(path: str, pointer: str) -> None:
    """Raise Invalid unless the path is valid and has the file ending of a picture."""
    try:
        paths.check(path)
    except PathInvalid as error:
        raise Invalid(error.detail, pointer=pointer) from None
    if not path.lower().endswith(IMAGE_ENDINGS):
        raise Invalid(f"a screenshot ends in one of {', '.join(IMAGE_ENDINGS)}", pointer=pointer)
    if "\n" in path:
        raise Invalid("the path of a screenshot has one line", pointer=pointer)


async def _to_wire(tx: Tx, view: View) -> Listing:
    row = await tx.one(rows.ONE, of_repo=view.repo.id)
    if row is None:
        raise NotFound
    listing = rows.to_row(row)
    return Listing(
        id=listing.id,
        repo=ParentRepo(id=view.repo.id, full_name=view.repo.full_name),
        name=listing.name,
        category=listing.category,
        screenshots=[path for path in listing.screenshots.split("\n") if path and view.sees(path)],
        readme_images=listing.readme_images,  # type: ignore[arg-type]  # the database holds what the model allows
        installable=await tx.value(rows.INSTALLABLE, of_repo=view.repo.id) is not None,
        created_at=rfc3339(listing.created_at),
        updated_at=rfc3339(listing.updated_at),
    )
