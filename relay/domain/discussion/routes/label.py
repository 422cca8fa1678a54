"""Labels of a repository."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import label as endpoints
from localstore.core.model.collaboration.label import Label, LabelClone, LabelCreate, LabelPatch, LabelsCloned
from relay.caller import View
from relay.domain.discussion import label as labels
from relay.http.routing import Reply, serves


@serves(endpoints.LIST, operation="label.list")
async def list_labels(view: View, query: PageQuery) -> Page[Label]:
    """Labels by name"""
    return await labels.page(view, query)


@serves(endpoints.CREATE, operation="label.create", errors=(409,))
async def create_label(view: View, body: LabelCreate) -> Label:
    """Create a label"""
    return await labels.create(view, body)


@serves(endpoints.CLONE, operation="label.clone", errors=(409,))
async def clone_labels(view: View, body: LabelClone) -> LabelsCloned:
    """Copy the labels of another repository"""
    return await labels.clone(view, body)


@serves(endpoints.UPDATE, operation="label.edit", errors=(409,))
async def update_label(view: View, name: str, body: LabelPatch) -> Label:
    """Change a label everywhere"""
    return await labels.update(view, name, body)


@serves(endpoints.DELETE, operation="label.delete")
async def delete_label(view: View, name: str) -> Reply:
    """Delete a label and remove it from everything"""
    await labels.delete(view, name)
    return Reply(status=204)
