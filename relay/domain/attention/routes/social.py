"""Stars and watches of repositories."""

from __future__ import annotations

from localstore.core.model.collaboration import social as endpoints
from relay.caller import View
from relay.domain.attention import social
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.STAR, operation="star.set", flag=FLAG)
async def star(view: View) -> Reply:
    """Star a repository"""
    await social.put(view, "star")
    return Reply(status=204)


@serves(endpoints.UNSTAR, operation="star.clear", flag=FLAG)
async def unstar(view: View) -> Reply:
    """Remove the caller's star"""
    await social.remove(view, "star")
    return Reply(status=204)


@serves(endpoints.WATCH, operation="watch.set", flag=FLAG)
async def watch(view: View) -> Reply:
    """Watch a repository: changes of its issues and proposals come to the inbox"""
    await social.put(view, "watch")
    return Reply(status=204)


@serves(endpoints.UNWATCH, operation="watch.clear", flag=FLAG)
async def unwatch(view: View) -> Reply:
    """Stop watching a repository"""
    await social.remove(view, "watch")
    return Reply(status=204)
