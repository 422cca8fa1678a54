"""Routes of billing. In editions without billing the gate refuses the requests. In editions with billing
these routes answer that billing is not implemented.
"""

from __future__ import annotations

from typing import NoReturn

from localstore.core.model import billing as endpoints
from localstore.core.model.base import Page, PageQuery
from localstore.core.model.billing import (
    BillingCapability,
    Checkout,
    CheckoutCreate,
    Invoice,
    Portal,
    PortalQuery,
    Subscription,
)
from relay.caller import Caller
from relay.http.routing import serves


@serves(endpoints.CHECKOUT, operation="billing.checkout", errors=(501,))
async def checkout(caller: Caller, body: CheckoutCreate) -> Checkout:
    """Open a page of the payment provider for one payment"""
    _refuse()


@serves(endpoints.PORTAL, operation="billing.portal", errors=(501,))
async def portal(caller: Caller, query: PortalQuery) -> Portal:
    """The payment provider's page where the caller manages payments"""
    _refuse()


@serves(endpoints.SUBSCRIPTION, operation="billing.subscription", errors=(501,))
async def subscription(caller: Caller) -> Subscription:
    """The plan that the caller pays for"""
    _refuse()


@serves(endpoints.INVOICES, operation="billing.invoices", errors=(501,))
async def invoices(caller: Caller, query: PageQuery) -> Page[Invoice]:
    """Invoices of the caller, newest first"""
    _refuse()


def _refuse() -> NoReturn:
    raise BillingCapability("this node has no payment provider", missing=["billing"])
