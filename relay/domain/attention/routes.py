"""The inbox of the caller; stars and watches of repositories."""

from __future__ import annotations

from localstore.core.model import inbox, social
from relay.caller import View
from relay.domain.attention import inbox as inboxes
from relay.domain.attention import social as socials
from relay.http.routing import REPOSITORIES, behind

serves_repositories = behind(REPOSITORIES)

serves_repositories(inbox.LIST, operation="inbox.list", name="inbox.list_inbox")(inboxes.page)
serves_repositories(inbox.UPDATE, operation="inbox.update", name="inbox.update_inbox")(inboxes.update)
serves_repositories(inbox.UPDATE_ALL, operation="inbox.update", name="inbox.update_whole_inbox")(
    inboxes.update_all
)


@serves_repositories(social.STAR, operation="star.set", name="social.star")
async def star(view: View) -> None:
    """Star a repository"""
    await socials.put(view, "star")


@serves_repositories(social.UNSTAR, operation="star.clear", name="social.unstar")
async def unstar(view: View) -> None:
    """Remove the caller's star"""
    await socials.remove(view, "star")


@serves_repositories(social.WATCH, operation="watch.set", name="social.watch")
async def watch(view: View) -> None:
    """Watch a repository: the inbox shows what happens in its issues and proposals"""
    await socials.put(view, "watch")


@serves_repositories(social.UNWATCH, operation="watch.clear", name="social.unwatch")
async def unwatch(view: View) -> None:
    """Stop watching a repository"""
    await socials.remove(view, "watch")
