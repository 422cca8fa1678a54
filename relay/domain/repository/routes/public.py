"""Public coordinates: an address OWNER/NAME of any kind → the repository behind it."""

from __future__ import annotations

from localstore.core.model import repo as endpoints
from localstore.core.model.repo import Coordinates
from relay.caller import Caller
from relay.domain.repository import public
from relay.http.routing import Reply, serves


@serves(endpoints.COORDINATES, operation="repo.coordinates", flag="TR_REPOS_ENABLED", others=(307,))
async def coordinates(caller: Caller, kind: str, owner: str, name: str) -> Coordinates | Reply:
    """Public coordinates of a repository; a wrong kind is redirected"""
    found, right = await public.coordinates(caller, kind, owner, name)
    if right is not None:
        return Reply(status=307, headers={"location": f"/api/v1/public/{right}/{found.full_name}"})
    return found
