"""Proposals of a repository, their versions and reviews, and the timeline that they share with issues."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import proposal as endpoints
from localstore.core.model.collaboration import review as review_endpoints
from localstore.core.model.collaboration.issue import LabelAddQuery
from localstore.core.model.collaboration.proposal import (
    Proposal,
    ProposalCreate,
    ProposalPatch,
    ProposalQuery,
    TimelineItem,
    Version,
)
from localstore.core.model.collaboration.review import Review, ReviewCreate, ReviewPatch
from relay.caller import View
from relay.domain.discussion import timeline
from relay.domain.merging import trial
from relay.domain.proposal import proposal as proposals
from relay.domain.proposal import review as reviews
from relay.domain.proposal import versions
from relay.http.routing import serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="proposal.list", flag=FLAG)
async def list_proposals(view: View, query: ProposalQuery) -> Page[Proposal]:
    """Proposals, newest first"""
    return await proposals.page(view, query)


@serves(endpoints.CREATE, operation="proposal.create", flag=FLAG, errors=(409,))
async def create_proposal(view: View, body: ProposalCreate) -> Proposal:
    """Propose a branch for another"""
    return await proposals.create(view, body)


@serves(endpoints.GET, operation="proposal.get", flag=FLAG)
async def get_proposal(view: View, n: str) -> Proposal:
    """One proposal"""
    return await trial.get(view, n)


@serves(endpoints.UPDATE, operation="proposal.update", flag=FLAG, errors=(409,))
async def update_proposal(view: View, n: str, body: ProposalPatch) -> Proposal:
    """Edit, close, reopen, retarget, label or assign a proposal, or ask for reviews"""
    return await proposals.update(view, n, body)


@serves(endpoints.ADD_LABEL, operation="issue.label", flag=FLAG, errors=(409,))
async def add_label(view: View, n: str, name: str, query: LabelAddQuery) -> Proposal:
    """Put a label on a proposal"""
    return await proposals.add_label(view, n, name, query.create == "1")


@serves(endpoints.REMOVE_LABEL, operation="issue.label", flag=FLAG)
async def remove_label(view: View, n: str, name: str) -> Proposal:
    """Take a label off a proposal"""
    return await proposals.remove_label(view, n, name)


@serves(endpoints.VERSIONS, operation="proposal.versions", flag=FLAG)
async def list_versions(view: View, n: str, query: PageQuery) -> Page[Version]:
    """Versions of a proposal, oldest first"""
    return await versions.page(view, n, query)


@serves(endpoints.TIMELINE, operation="issue.timeline", flag=FLAG)
async def list_timeline(view: View, n: str, query: PageQuery) -> Page[TimelineItem]:
    """Events of an issue or a proposal, oldest first"""
    return await timeline.page(view, n, query)


@serves(review_endpoints.LIST, operation="proposal.get", flag=FLAG)
async def list_reviews(view: View, n: str, query: PageQuery) -> Page[Review]:
    """Reviews of a proposal, oldest first"""
    return await reviews.page(view, n, query)


@serves(review_endpoints.CREATE, operation="review.create", flag=FLAG, errors=(409,))
async def create_review(view: View, n: str, body: ReviewCreate) -> Review:
    """Review the newest version of a proposal"""
    return await reviews.create(view, n, body)


@serves(review_endpoints.DISMISS, operation="review.dismiss", flag=FLAG, errors=(409,))
async def dismiss_review(view: View, n: str, review: str, body: ReviewPatch) -> Review:
    """Dismiss the verdict of a review"""
    return await reviews.dismiss(view, n, review)
