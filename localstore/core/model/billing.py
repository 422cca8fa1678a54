"""Payments of an account to the operator of a relay: its subscription, its invoices, and pages of the payment
provider."""

from __future__ import annotations

from typing import Annotated, Literal

from localstore.core.endpoint import Endpoint
from localstore.core.errors import EditionLacks
from localstore.core.model.base import Count, Model, Page, PageQuery, Sent, visible


class BillingCapability(EditionLacks):
    """The edition has billing, but the relay has no payment provider."""

    code = "billing_capability"


Url = Annotated[str, visible(2000)]


class CheckoutCreate(Sent, frozen=True):
    """A request for a payment page. `plan` or `app_id`: what the account pays for. `return_to`: the URL to
    which the payment page leads back."""

    return_to: Url
    plan: Annotated[str, visible(100)] | None = None
    app_id: Annotated[str, visible(100)] | None = None


class Checkout(Model, frozen=True):
    """The payment provider's page for one payment."""

    id: str
    url: str
    expires_at: str


class PortalQuery(Model, frozen=True):
    """A request for the payment provider's page about plans and invoices. `return_to`: the URL to which that
    page leads back."""

    return_to: Url | None = None


class Portal(Model, frozen=True):
    """The payment provider's page for plans, cards and invoices of the account."""

    url: str
    expires_at: str


class Subscription(Model, frozen=True):
    """The plan that an account pays for."""

    id: str
    plan: str
    status: Literal["trialing", "active", "past_due", "canceled", "unpaid", "incomplete"]
    current_period_end: str
    cancel_at_period_end: bool


class Invoice(Model, frozen=True):
    """The bill of an account for one period. `amount_cents`: cents of `currency` (ISO 4217)."""

    id: str
    number: str
    status: Literal["draft", "open", "paid", "void", "uncollectible"]
    amount_cents: Count
    currency: str
    period_start: str
    period_end: str
    pdf_url: str


BILLING = "/api/v1/billing"
CHECKOUT = Endpoint("POST", f"{BILLING}/checkout", body=CheckoutCreate, returns=Checkout, status=201)
PORTAL = Endpoint("GET", f"{BILLING}/portal", query=PortalQuery, returns=Portal)
SUBSCRIPTION = Endpoint("GET", f"{BILLING}/subscription", returns=Subscription)
INVOICES = Endpoint("GET", f"{BILLING}/invoices", query=PageQuery, returns=Page[Invoice])
