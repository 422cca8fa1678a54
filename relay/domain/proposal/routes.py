"""Routes of proposals, their versions, reviews and timeline, of threads on lines, and of suggestions that
become a seal.
"""

from __future__ import annotations

from localstore.core.model import proposal, review, thread
from localstore.core.model.issue import LabelAddQuery
from localstore.core.model.proposal import (
    Proposal,
)
from localstore.core.model.review import Review, ReviewPatch
from relay.caller import View
from relay.domain.discussion import timeline
from relay.domain.proposal import proposal as proposals
from relay.domain.proposal import review as reviews
from relay.domain.proposal import suggestion, versions
from relay.domain.proposal import thread as threads
from relay.http.routing import serves

serves(proposal.LIST, operation="proposal.list", name="proposal.list_proposals")(proposals.page)
serves(proposal.CREATE, operation="proposal.create", name="proposal.create_proposal", errors=(409,))(
    proposals.create
)
serves(proposal.UPDATE, operation="proposal.update", name="proposal.update_proposal", errors=(409,))(
    proposals.update
)


@serves(proposal.ADD_LABEL, operation="issue.label", errors=(409,))
async def add_label(view: View, n: str, name: str, query: LabelAddQuery) -> Proposal:
    """Put a label on a proposal"""
    return await proposals.add_label(view, n, name, query.create == "1")


serves(proposal.REMOVE_LABEL, operation="issue.label")(proposals.remove_label)
serves(proposal.VERSIONS, operation="proposal.versions", name="proposal.list_versions")(versions.page)
serves(proposal.TIMELINE, operation="issue.timeline", name="proposal.list_timeline")(timeline.page)
serves(review.LIST, operation="proposal.get", name="proposal.list_reviews")(reviews.page)
serves(review.CREATE, operation="review.create", name="proposal.create_review", errors=(409,))(reviews.create)


@serves(review.DISMISS, operation="review.dismiss", errors=(409,))
async def dismiss_review(view: View, n: str, review: str, body: ReviewPatch) -> Review:
    """Dismiss the verdict of a review"""
    return await reviews.dismiss(view, n, review)


serves(thread.LIST, operation="thread.list", name="thread.list_threads")(threads.page)
serves(thread.CREATE, operation="thread.create", name="thread.create_thread", errors=(409,))(threads.create)
serves(thread.UPDATE, operation="thread.resolve", name="thread.update_thread", errors=(409,))(threads.update)
serves(thread.COMMENT, operation="thread.comment", name="thread.comment_on_thread", errors=(409,))(
    threads.comment
)
serves(
    thread.PREPARE,
    operation="suggestion.prepare",
    name="thread.prepare_suggestions",
    flag="TR_REPO_SEALING",
    errors=(409, 413),
)(suggestion.prepare)
