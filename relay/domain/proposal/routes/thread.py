"""Threads on lines of a proposal, and suggestions that become a seal."""

from __future__ import annotations

from localstore.core.model.base import Page
from localstore.core.model.collaboration import thread as endpoints
from localstore.core.model.collaboration.issue import Comment
from localstore.core.model.collaboration.thread import (
    SuggestionsPrepareRequest,
    Thread,
    ThreadComment,
    ThreadCreate,
    ThreadPatch,
    ThreadQuery,
)
from localstore.core.model.seal import PreparedSeals
from relay.caller import View
from relay.domain.proposal import suggestion
from relay.domain.proposal import thread as threads
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"
SEALING = "TR_REPO_SEALING"


@serves(endpoints.LIST, operation="thread.list", flag=FLAG)
async def list_threads(view: View, n: str, query: ThreadQuery) -> Page[Thread]:
    """Threads on lines of a proposal, the oldest first"""
    return await threads.page(view, n, query)


@serves(endpoints.CREATE, operation="thread.create", flag=FLAG, errors=(409,))
async def create_thread(view: View, n: str, body: ThreadCreate) -> Thread:
    """Comment on lines of a proposal, or suggest other lines"""
    return await threads.create(view, n, body)


@serves(endpoints.UPDATE, operation="thread.resolve", flag=FLAG, errors=(409,))
async def update_thread(view: View, n: str, thread: str, body: ThreadPatch) -> Thread:
    """Resolve a thread, or open it again"""
    return await threads.update(view, n, thread, body)


@serves(endpoints.COMMENT, operation="thread.comment", flag=FLAG, errors=(409,))
async def comment_on_thread(view: View, n: str, thread: str, body: ThreadComment) -> Comment:
    """Answer in a thread"""
    return await threads.comment(view, n, thread, body)


@serves(endpoints.PREPARE, operation="suggestion.prepare", flag=SEALING, errors=(409, 413))
async def prepare_suggestions(view: View, n: str, body: SuggestionsPrepareRequest) -> PreparedSeals:
    """Fix the bytes of one seal of suggestions, to be signed and landed by seals/finalize"""
    return await suggestion.prepare(view, n, body)
