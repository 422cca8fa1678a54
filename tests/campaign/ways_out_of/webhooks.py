"""Ways out of errors about webhooks."""

from __future__ import annotations

from tests.campaign.conftest import Place
from tests.campaign.ways_out import first_push, refused, row


@row("webhook_inactive", "repo webhook edit")
def _a_webhook_that_is_switched_off(place: Place) -> None:
    first_push(place)
    url = "http://127.0.0.1:9/"
    hook = place.ann.ok("repo", "webhook", "create", url, "--events", "push", "--inactive").out.strip()
    said = refused(place.ann, "repo", "webhook", "ping", hook, says="repo webhook edit").err
    words = said.partition("svc repo webhook edit ")[2].split()
    place.ann.ok("repo", "webhook", "edit", *words)
    place.ann.ok("repo", "webhook", "ping", hook)
