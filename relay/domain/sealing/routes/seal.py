"""Sealing: prepare fixes the bytes, finalize takes the signature."""

from __future__ import annotations

from localstore.core.limits import MIB
from localstore.core.model import seal as endpoints
from localstore.core.model.base import Page
from localstore.core.model.history import Seal
from localstore.core.model.seal import (
    FinalizeRequest,
    FinalizeSealsRequest,
    Prepared,
    PreparedSeals,
    PrepareRequest,
    PrepareSealsRequest,
)
from relay.caller import View
from relay.domain.sealing import seal, trees
from relay.http.routing import serves

FLAG = "TR_REPO_SEALING"
TREES_BODY = 16 * MIB


@serves(endpoints.PREPARE, operation="seal.prepare", flag=FLAG, errors=(409, 413))
async def prepare(view: View, branch: str, body: PrepareRequest) -> Prepared:
    """Fix the frontier's tree and the bytes to sign"""
    return await seal.prepare(view, branch, body)


@serves(endpoints.FINALIZE, operation="seal.finalize", flag=FLAG, errors=(409, 410))
async def finalize(view: View, branch: str, body: FinalizeRequest) -> Seal:
    """Record the signed seal and move the branch's head"""
    return await seal.finalize(view, branch, body)


@serves(endpoints.PREPARE_SEALS, operation="seals.prepare", flag=FLAG, max_body=TREES_BODY, errors=(409, 413))
async def prepare_seals(view: View, body: PrepareSealsRequest) -> PreparedSeals:
    """Fix the bytes of seals made from explicit trees"""
    return await trees.prepare(view, body)


@serves(endpoints.FINALIZE_SEALS, operation="seals.finalize", flag=FLAG, errors=(409, 410))
async def finalize_seals(view: View, body: FinalizeSealsRequest) -> Page[Seal]:
    """Record signed seals and move the branch's head once"""
    return await trees.finalize(view, body)
