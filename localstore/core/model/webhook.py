"""Webhooks: URLs to which a relay sends signed messages about events of a repository. The relay records the
outcome of each delivery."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import urlsplit

import msgspec

from localstore.core.endpoint import REPO, Endpoint
from localstore.core.errors import Conflict, Invalid
from localstore.core.model.base import Count, Model, Page, PageQuery, Sent
from localstore.core.model.limits import WEBHOOK_SECRET_MAX, WEBHOOK_SECRET_MIN, WEBHOOK_URL_CHARS


class WebhookInactive(Conflict):
    """The webhook is switched off: by its owner, or because its URL failed for too long."""

    code = "webhook_inactive"


EventKind = Literal["push", "release", "proposal", "review", "comment", "issue", "run"]
KINDS: Final[tuple[EventKind, ...]] = get_args(EventKind)
DeliveryState = Literal["waiting", "delivered", "failed"]
Disabled = Literal["owner", "failing", "gone", "transferred"]
"""Why a webhook is not active: switched off by its owner; failing for days; its address answered 410; the
repository got another owner."""

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # no secret itself
Events = Annotated[
    list[EventKind],
    msgspec.Meta(min_length=1, max_length=len(KINDS), description=f"one or more of {', '.join(KINDS)}"),
]
Url = Annotated[
    str,
    msgspec.Meta(
        max_length=WEBHOOK_URL_CHARS,
        pattern=r"^[Hh][Tt][Tt][Pp][Ss]?://[A-Za-z0-9._~:\[\]-]+([/?][!\"$-~]*)?(?!\n)$",
        description="an http or https address without user name and fragment, "
        f"of at most {WEBHOOK_URL_CHARS} characters",
    ),
]
Secret = Annotated[
    str,
    msgspec.Meta(
        min_length=WEBHOOK_SECRET_MIN,
        max_length=WEBHOOK_SECRET_MAX,
        pattern=r"^[!-~]+(?!\n)$",
        description=f"{WEBHOOK_SECRET_MIN} to {WEBHOOK_SECRET_MAX} visible ASCII characters without a space",
    ),
]


class Webhook(Model, frozen=True):
    """A webhook. `events`: the kinds of events that it receives. `secret`: the key of the messages'
    signatures, present only in the answer that creates the webhook. `disabled`: why the webhook is switched
    off, None if it is on. `failing_since`: time of the first failure after the last success."""

    id: str
    url: str
    events: list[EventKind]
    active: bool
    disabled: Disabled | None
    failing_since: str | None
    created_at: str
    updated_at: str
    secret: str | None = None


class WebhookCreate(Sent, frozen=True):
    """A new webhook. `secret`: the key of the messages' signatures; by default the relay makes one."""

    url: Url
    events: Events
    secret: Secret | None = None
    active: bool = True


class WebhookEdit(Model, frozen=True, forbid_unknown_fields=True):
    """A change of a webhook; absent members change nothing."""

    events: Events | None = None
    active: bool | None = None


class Delivery(Model, frozen=True):
    """A message to one webhook, with its attempts. `event_id`: value of the header `webhook-id`, the same in
    each attempt and redelivery. `status`: HTTP status of the last answer; None if there was no answer, and
    then `reason` says why. `duration_ms`: duration of the last attempt. `next_at`: time of the next
    attempt."""

    id: str
    event_id: str
    event: str
    redelivery: bool
    state: DeliveryState
    attempts: Count
    status: int | None
    reason: str | None
    duration_ms: Count | None
    created_at: str
    attempted_at: str | None
    next_at: str | None


class DeliveryWhole(Delivery, frozen=True):
    """A delivery with the message that was sent, and the beginning of the last answer."""

    request_headers: dict[str, str]
    request_body: str
    answer_headers: dict[str, str]
    answer_body: str


class DeliveryQuery(PageQuery, frozen=True):
    """A filter of deliveries. `state`: only deliveries in this state."""

    state: DeliveryState | None = None


class Message(Model, frozen=True):
    """The body of a delivery. `type`: a kind of event, or `ping`. `data`: `repo`, `actor`, and the members
    that the guide lists for each type."""

    type: str
    timestamp: str
    data: dict[str, Any]


def check_url(url: str) -> tuple[str, int]:
    """Check the URL of a webhook. Returns (host, port). Raises Invalid if it is not valid for a webhook."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if ":" in host:
            ipaddress.IPv6Address(host)
    except ValueError:
        host, port = "", None
    if not host or port == 0 or len(host) > 253 or parts.username is not None or "%" in host:
        raise Invalid("the host or port of this address cannot be read", pointer="/url")
    return host, port or (443 if parts.scheme == "https" else 80)


def signing_key(secret: str) -> bytes:
    """The key that signs messages, from a webhook's secret: the base64 after `whsec_`, decoded; for a secret
    without that prefix, its UTF-8 bytes. Raises Invalid for `whsec_` without valid base64."""
    if not secret.startswith(SECRET_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not key:
        raise Invalid(f"what follows {SECRET_PREFIX} is base64 of at least one byte", pointer="/secret")
    return key


_HOOKS = f"{REPO}/webhooks"
_ONE = f"{_HOOKS}/{{hook}}"
_DELIVERY = f"{_ONE}/deliveries/{{delivery}}"
LIST = Endpoint("GET", _HOOKS, query=PageQuery, returns=Page[Webhook])
CREATE = Endpoint("POST", _HOOKS, body=WebhookCreate, returns=Webhook, status=201)
GET = Endpoint("GET", _ONE, returns=Webhook)
EDIT = Endpoint("PATCH", _ONE, body=WebhookEdit, returns=Webhook)
DELETE: Endpoint[None] = Endpoint("DELETE", _ONE, status=204)
PING = Endpoint("POST", f"{_ONE}/ping", returns=Delivery, status=202)
DELIVERIES = Endpoint("GET", f"{_ONE}/deliveries", query=DeliveryQuery, returns=Page[Delivery])
DELIVERY = Endpoint("GET", _DELIVERY, returns=DeliveryWhole)
REDELIVER = Endpoint("POST", f"{_DELIVERY}/redeliver", returns=Delivery, status=202)
