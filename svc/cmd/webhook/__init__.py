"""Commands on webhooks."""

from svc.cmd.frame.registration import Registration

GROUPS = {"repo webhook": "Webhooks: addresses that are told what happens"}

COMMANDS: dict[str, Registration] = {
    "repo webhook create": Registration(
        "webhook.webhook:create", "Send the events of a repository to an address"
    ),
    "repo webhook list": Registration("webhook.webhook:list_webhooks", "List webhooks"),
    "repo webhook view": Registration("webhook.webhook:view", "Show a webhook"),
    "repo webhook edit": Registration(
        "webhook.webhook:edit", "Change what a webhook is told, or switch it on or off"
    ),
    "repo webhook delete": Registration("webhook.webhook:delete", "Delete a webhook and its deliveries"),
    "repo webhook ping": Registration("webhook.delivery:ping", "Send a webhook a message of type ping"),
    "repo webhook deliveries": Registration(
        "webhook.delivery:deliveries", "List what was sent to a webhook within the last week"
    ),
    "repo webhook delivery": Registration(
        "webhook.delivery:delivery", "Show one delivery: what was sent, and what was answered"
    ),
    "repo webhook redeliver": Registration(
        "webhook.delivery:redeliver", "Send the message of a delivery once more"
    ),
}
