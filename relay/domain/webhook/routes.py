"""Webhooks, and what was delivered to them."""

from __future__ import annotations

from localstore.core.model.base import Page, PageQuery
from localstore.core.model.collaboration import webhook as endpoints
from localstore.core.model.collaboration.webhook import (
    Delivery,
    DeliveryQuery,
    DeliveryWhole,
    Webhook,
    WebhookCreate,
    WebhookEdit,
)
from relay.caller import View
from relay.domain.webhook import webhook as webhooks
from relay.http.routing import Reply, serves

FLAG = "TR_REPOS_ENABLED"


@serves(endpoints.LIST, operation="webhook.list", flag=FLAG)
async def list_webhooks(view: View, query: PageQuery) -> Page[Webhook]:
    """Webhooks of a repository, the oldest first"""
    return await webhooks.page(view, query)


@serves(endpoints.CREATE, operation="webhook.create", flag=FLAG, errors=(409,))
async def create_webhook(view: View, body: WebhookCreate) -> Webhook:
    """Send the events of a repository to an address; only this answer has the secret"""
    return await webhooks.create(view, body)


@serves(endpoints.GET, operation="webhook.get", flag=FLAG)
async def get_webhook(view: View, hook: str) -> Webhook:
    """One webhook"""
    return await webhooks.get(view, hook)


@serves(endpoints.EDIT, operation="webhook.edit", flag=FLAG)
async def edit_webhook(view: View, hook: str, body: WebhookEdit) -> Webhook:
    """Change what a webhook is told, or switch it on or off"""
    return await webhooks.edit(view, hook, body)


@serves(endpoints.DELETE, operation="webhook.delete", flag=FLAG)
async def delete_webhook(view: View, hook: str) -> Reply:
    """Delete a webhook and its deliveries"""
    await webhooks.delete(view, hook)
    return Reply(status=204)


@serves(endpoints.PING, operation="webhook.ping", flag=FLAG, errors=(409,))
async def ping_webhook(view: View, hook: str) -> Delivery:
    """Send a webhook a message of type ping"""
    return await webhooks.ping(view, hook)


@serves(endpoints.DELIVERIES, operation="webhook.deliveries", flag=FLAG)
async def list_deliveries(view: View, hook: str, query: DeliveryQuery) -> Page[Delivery]:
    """What was sent to a webhook within the last days, the newest first"""
    return await webhooks.deliveries(view, hook, query)


@serves(endpoints.DELIVERY, operation="webhook.deliveries", flag=FLAG)
async def get_delivery(view: View, hook: str, delivery: str) -> DeliveryWhole:
    """One delivery with its request and the beginning of its answer"""
    return await webhooks.get_delivery(view, hook, delivery)


@serves(endpoints.REDELIVER, operation="webhook.redeliver", flag=FLAG, errors=(409,))
async def redeliver(view: View, hook: str, delivery: str) -> Delivery:
    """Send the message of a delivery once more, under the same id"""
    return await webhooks.redeliver(view, hook, delivery)
