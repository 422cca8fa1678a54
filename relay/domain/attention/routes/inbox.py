"""The inbox of the caller."""

from __future__ import annotations

from localstore.core.model.base import Page
from localstore.core.model.collaboration import inbox as endpoints
from localstore.core.model.collaboration.inbox import (
    InboxChanged,
    InboxItem,
    InboxMarks,
    InboxQuery,
    InboxState,
)
from relay.caller import Caller
from relay.domain.attention import inbox
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="inbox.list", flag=FLAG)
async def list_inbox(caller: Caller, query: InboxQuery) -> Page[InboxItem]:
    """The caller's inbox, newest first"""
    return await inbox.page(caller, query)


@serves(endpoints.UPDATE, operation="inbox.update", flag=FLAG)
async def update_inbox(caller: Caller, id: str, body: InboxState) -> InboxItem:
    """Mark one row as read, done or unread"""
    return await inbox.update(caller, id, body)


@serves(endpoints.UPDATE_ALL, operation="inbox.update", flag=FLAG)
async def update_whole_inbox(caller: Caller, body: InboxMarks) -> InboxChanged:
    """Mark the rows that are named, or all that are not done"""
    return await inbox.update_all(caller, body)
