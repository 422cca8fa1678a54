"""Security advisories; everybody reads them."""

from __future__ import annotations

from localstore.core.model.base import Page
from localstore.core.model.catalog import advisory as endpoints
from localstore.core.model.catalog.advisory import Advisory, AdvisoryQuery
from relay.caller import Caller
from relay.domain.catalog import advisory as advisories
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="advisory.list", flag=FLAG)
async def list_advisories(caller: Caller, query: AdvisoryQuery) -> Page[Advisory]:
    """Security advisories, newest first"""
    return await advisories.page(caller, query)


@serves(endpoints.GET, operation="advisory.get", flag=FLAG)
async def get_advisory(caller: Caller, advisory: str) -> Advisory:
    """One security advisory, as an OSV record"""
    return await advisories.get(caller, advisory)
