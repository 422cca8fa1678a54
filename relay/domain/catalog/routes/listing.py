"""The listing of a repository, and what people think of it."""

from __future__ import annotations

from localstore.core.model.catalog import listing as endpoints
from localstore.core.model.catalog.listing import Listing, ListingSet, SocialCounts
from relay.caller import Caller, View
from relay.domain.catalog import listing as listings
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.GET, operation="listing.get", flag=FLAG)
async def get_listing(view: View) -> Listing:
    """The listing of a repository"""
    return await listings.get(view)


@serves(endpoints.SET, operation="listing.set", flag=FLAG, errors=(409,))
async def set_listing(view: View, body: ListingSet) -> Listing:
    """List a repository in the catalog, or change its listing"""
    return await listings.put(view, body)


@serves(endpoints.REMOVE, operation="listing.remove", flag=FLAG, errors=(409,))
async def remove_listing(view: View) -> Reply:
    """Take the listing of a repository away"""
    await listings.remove(view)
    return Reply(status=204)


@serves(endpoints.SOCIAL, operation="social.listing", flag="TR_SOCIAL_ENABLED")
async def social_counts(caller: Caller, listing_id: str) -> SocialCounts:
    """Stars and watchers of a listing"""
    return await listings.counts(caller, listing_id)
