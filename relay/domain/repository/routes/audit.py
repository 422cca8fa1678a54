"""The audit of a repository."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import audit as endpoints
from localstore.core.model.collaboration.audit import AuditEntry
from relay.caller import View
from relay.domain.repository import audit
from relay.http.routing import serves


@serves(endpoints.LIST, operation="audit.list", flag="TR_REPOS_ENABLED")
async def list_audit(view: View, query: PageQuery) -> Page[AuditEntry]:
    """Events of a repository, newest first"""
    return await audit.page(view, query)
