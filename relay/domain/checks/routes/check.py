"""Checks: those a repository knows, and their states on a seal."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import check as endpoints
from localstore.core.model.collaboration.check import Check, SealChecks
from relay.caller import View
from relay.domain.checks import check as checks
from relay.http.routing import Reply, serves


@serves(endpoints.LIST, operation="check.list")
async def list_checks(view: View, query: PageQuery) -> Page[Check]:
    """Checks that are enabled or have reported, by name"""
    return await checks.page(view, query)


@serves(endpoints.ENABLE, operation="check.enable", errors=(409,))
async def enable_check(view: View, name: str) -> Check:
    """Enable a check: it has to pass before a proposal is merged"""
    return await checks.enable(view, name)


@serves(endpoints.DISABLE, operation="check.disable")
async def disable_check(view: View, name: str) -> Reply:
    """Disable a check"""
    await checks.disable(view, name)
    return Reply(status=204)


@serves(endpoints.OF_SEAL, operation="check.list")
async def list_seal_checks(view: View, seal_id: str) -> SealChecks:
    """States of the checks on a seal"""
    return await checks.of_seal(view, seal_id)
