"""SQL statements on listings."""

from __future__ import annotations

import msgspec
from sqlalchemy import bindparam, delete, func, insert, select, update

from relay.db.engine.database import Row
from relay.db.repo import ALIVE, PUBLIC
from relay.db.schema.catalog.listing import listing
from relay.db.schema.catalog.publication import publication
from relay.db.schema.collaboration.attention import social
from relay.db.schema.repo import repo


class ListingRow(msgspec.Struct, frozen=True):
    """A listing in the catalog. `screenshots`: paths, one per line."""

    id: str
    name: str
    category: str | None
    screenshots: str
    readme_images: str
    created_at: int
    updated_at: int


_OF_REPO = listing.c.repo_id == bindparam("of_repo")
ONE = select(*(listing.c[name] for name in ListingRow.__struct_fields__)).where(_OF_REPO)
ID = select(listing.c.id).where(_OF_REPO)
INSTALLABLE = select(publication.c.release_id).where(publication.c.repo_id == bindparam("of_repo")).limit(1)
INSERT = insert(listing)
SET = (
    update(listing)
    .where(_OF_REPO)
    .values({name: bindparam(f"new_{name}") for name in ListingRow.__struct_fields__[1:5]})
    .values(updated_at=bindparam("now"))
)
DELETE = delete(listing).where(_OF_REPO)
COUNTS = (
    select(func.coalesce(social.c.stars, 0), func.coalesce(social.c.watchers, 0))
    .select_from(
        listing.join(repo, repo.c.id == listing.c.repo_id).outerjoin(social, social.c.repo_id == repo.c.id)
    )
    .where(listing.c.id == bindparam("listing_id"), PUBLIC, ALIVE)
)


def to_row(values: Row) -> ListingRow:
    return ListingRow(*values)
