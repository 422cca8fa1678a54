"""Labels of a repository."""

from __future__ import annotations

from localstore.core.model import label as endpoints
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.label import Label, LabelCreate
from relay.caller import View
from relay.http.routing import serves
from relay.service import label as labels


@serves(endpoints.LIST, operation="label.list", flag="TR_REPOS_ENABLED")
async def list_labels(view: View, query: PageQuery) -> Page[Label]:
    """Labels by name"""
    return await labels.page(view, query)


@serves(endpoints.CREATE, operation="label.create", flag="TR_REPOS_ENABLED", errors=(409,))
async def create_label(view: View, body: LabelCreate) -> Label:
    """Create a label"""
    return await labels.create(view, body)
