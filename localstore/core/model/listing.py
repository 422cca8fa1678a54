"""The listing of a repository: how the public catalog shows it. A repository has at most one listing."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict
from localstore.core.model.base import Model, visible
from localstore.core.model.limits import CATEGORY_CHARS, LISTING_NAME_CHARS, PATH_BYTES, SCREENSHOTS
from localstore.core.model.repo import ParentRepo


class NotListable(Conflict):
    """The repository is not public, and only public repositories can be listed in the catalog."""

    code = "not_listable"


Images = Literal["none", "upstream", "all"]
IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".gif", ".webp")

_Name = Annotated[str, visible(LISTING_NAME_CHARS)]
_Category = Annotated[str, visible(CATEGORY_CHARS)]
_Path = Annotated[str, msgspec.Meta(min_length=1, max_length=PATH_BYTES)]
_Screenshots = Annotated[list[_Path], msgspec.Meta(max_length=SCREENSHOTS)]


class ListingSet(Model, frozen=True, forbid_unknown_fields=True):
    """A whole listing, which replaces the present one. Members that are left out get their defaults.
    `screenshots`: paths of pictures in the repository. `readme_images`: which pictures of the README to show;
    `upstream` means the pictures of the upstream source, which is a repository that this one follows."""

    name: _Name
    category: _Category | None = None
    screenshots: _Screenshots = msgspec.field(default_factory=list)
    readme_images: Images = "none"


class Listing(ListingSet, frozen=True, kw_only=True):
    """A repository in the catalog. `screenshots`: the pictures that the caller may see. `installable`: a
    release of the repository has a signed publication."""

    id: str
    repo: ParentRepo
    installable: bool
    created_at: str
    updated_at: str


class SocialCounts(Model, frozen=True):
    """How many accounts star and watch the repository of a listing."""

    listing_id: str
    stars: int
    watchers: int


_LISTING = f"{REPO}/listing"
GET = Endpoint("GET", _LISTING, returns=Listing)
SET = Endpoint("PUT", _LISTING, body=ListingSet, returns=Listing)
REMOVE: Endpoint[None] = Endpoint("DELETE", _LISTING, status=204)
SOCIAL = Endpoint("GET", "/api/v1/social/{listing_id}", returns=SocialCounts)
