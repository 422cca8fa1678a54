"""Signed publications of releases."""

from __future__ import annotations

from localstore.core.model.catalog import publication as endpoints
from localstore.core.model.catalog.publication import PublicationCreate
from localstore.core.model.release import Release
from relay.caller import View
from relay.domain.release import publication as publications
from relay.http.routing import serves


@serves(endpoints.CREATE, operation="publication.create", flag="TR_REPOS_ENABLED", errors=(409,))
async def create_publication(view: View, body: PublicationCreate) -> Release:
    """Sign what a release hands out"""
    return await publications.create(view, body)
