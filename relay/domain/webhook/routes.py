"""Routes of webhooks and of their deliveries."""

from __future__ import annotations

from localstore.core.model import webhook
from relay.domain.webhook import webhook as webhooks
from relay.http.routing import serves

serves(webhook.LIST, operation="webhook.list", name="webhook.list_webhooks")(webhooks.page)
serves(webhook.CREATE, operation="webhook.create", name="webhook.create_webhook", errors=(409,))(
    webhooks.create
)
serves(webhook.GET, operation="webhook.get", name="webhook.get_webhook")(webhooks.get)
serves(webhook.EDIT, operation="webhook.edit", name="webhook.edit_webhook")(webhooks.edit)
serves(webhook.DELETE, operation="webhook.delete", name="webhook.delete_webhook")(webhooks.delete)
serves(webhook.PING, operation="webhook.ping", name="webhook.ping_webhook", errors=(409,))(webhooks.ping)
serves(webhook.DELIVERIES, operation="webhook.deliveries", name="webhook.list_deliveries")(
    webhooks.deliveries
)
serves(webhook.DELIVERY, operation="webhook.deliveries")(webhooks.get_delivery)
serves(webhook.REDELIVER, operation="webhook.redeliver", errors=(409,))(webhooks.redeliver)
