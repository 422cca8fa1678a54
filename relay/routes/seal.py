"""Sealing: prepare fixes the bytes, finalize takes the signature."""

from __future__ import annotations

from localstore.core.limits import MIB
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
from relay.http.routing import route
from relay.service.once import Once
from relay.service.sealing import seal, trees

FLAG = "TR_REPO_SEALING"
REPO = "/api/v1/repos/{id}"
BRANCH = REPO + "/branches/{branch}/seal"
TREES_BODY = 16 * MIB


@route("POST", f"{BRANCH}/prepare", operation="seal.prepare", flag=FLAG, returns=Prepared, errors=(409, 413))
async def prepare(view: View, branch: str, body: PrepareRequest) -> Prepared:
    """Fix the frontier's tree and the bytes to sign"""
    return await seal.prepare(view, branch, body)


@route(
    "POST",
    f"{BRANCH}/finalize",
    operation="seal.finalize",
    flag=FLAG,
    returns=Seal,
    status=201,
    errors=(409, 410),
)
async def finalize(view: View, branch: str, body: FinalizeRequest, once: Once) -> Seal:
    """Record the signed seal and move the branch's head"""
    return await seal.finalize(view, branch, body, once)


@route(
    "POST",
    f"{REPO}/seals/prepare",
    operation="seals.prepare",
    flag=FLAG,
    returns=PreparedSeals,
    max_body=TREES_BODY,
    errors=(409, 413),
)
async def prepare_seals(view: View, body: PrepareSealsRequest) -> PreparedSeals:
    """Fix the bytes of seals made from explicit trees"""
    return await trees.prepare(view, body)


@route(
    "POST",
    f"{REPO}/seals/finalize",
    operation="seals.finalize",
    flag=FLAG,
    returns=Page[Seal],
    status=201,
    errors=(409, 410),
)
async def finalize_seals(view: View, body: FinalizeSealsRequest, once: Once) -> Page[Seal]:
    """Record signed seals and move the branch's head once"""
    return await trees.finalize(view, body, once)
