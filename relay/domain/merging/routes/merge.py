"""Merges of proposals, of a base into a proposal's branch, and of two refs."""

from __future__ import annotations

from localstore.core.limits import MIB
from localstore.core.model.collaboration import merge as endpoints
from localstore.core.model.collaboration.merge import (
    MergeFinalizeRequest,
    MergePrepareRequest,
    MergeRequest,
    PreparedMerge,
    Preview,
    PreviewRequest,
    UpdateFinalizeRequest,
    UpdatePrepareRequest,
)
from localstore.core.model.collaboration.proposal import Proposal
from localstore.core.model.history import Seal
from relay.caller import View
from relay.domain.merging import auto, prepare
from relay.domain.merging import merge as finalize
from relay.http.routing import serves

FLAG = "TR_REPO_SEALING"
GUARDED = "TR_REPO_MERGE_ENABLED"


@serves(endpoints.PREPARE, operation="proposal.merge_prepare", flag=FLAG, errors=(409, 413))
async def prepare_merge(view: View, n: str, body: MergePrepareRequest) -> PreparedMerge:
    """Compute the merge of a proposal and fix the bytes to sign"""
    return await prepare.merge(view, n, body)


@serves(endpoints.FINALIZE, operation="proposal.merge_finalize", flag=FLAG, max_body=MIB, errors=(409, 410))
async def finalize_merge(view: View, n: str, body: MergeFinalizeRequest) -> Proposal:
    """Land the signed merge of a proposal"""
    return await finalize.merge(view, n, body)


@serves(endpoints.AUTO, operation="proposal.auto_merge", flag=FLAG, max_body=MIB, errors=(409, 410))
async def enable_auto_merge(view: View, n: str, body: MergeFinalizeRequest) -> Proposal:
    """Keep the signed merge of a proposal until nothing blocks it"""
    return await auto.enable(view, n, body)


@serves(endpoints.AUTO_OFF, operation="proposal.auto_merge", flag=FLAG)
async def disable_auto_merge(view: View, n: str) -> Proposal:
    """Drop the signed merge of a proposal that waits"""
    return await auto.disable(view, n)


@serves(endpoints.UPDATE_PREPARE, operation="proposal.update_branch", flag=FLAG, errors=(409, 413))
async def prepare_update(view: View, n: str, body: UpdatePrepareRequest) -> PreparedMerge:
    """Compute the merge of the base into the branch of a proposal"""
    return await prepare.update(view, n, body)


@serves(endpoints.UPDATE_FINALIZE, operation="proposal.update_branch", flag=FLAG, errors=(409, 410))
async def finalize_update(view: View, n: str, body: UpdateFinalizeRequest) -> Proposal:
    """Land the signed merge of the base into the branch of a proposal"""
    return await finalize.update(view, n, body)


@serves(endpoints.PREVIEW, operation="merge.preview", flag=GUARDED, errors=(409, 413))
async def preview(view: View, body: PreviewRequest) -> Preview:
    """Preview of the guarded two-parent merge"""
    return await prepare.preview(view, body)


@serves(endpoints.MERGE, operation="merge.merge", flag=GUARDED, errors=(409, 410))
async def merge(view: View, body: MergeRequest) -> Seal:
    """Guarded two-parent merge"""
    return await finalize.guarded(view, body)
