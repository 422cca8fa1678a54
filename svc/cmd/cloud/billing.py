"""The command `svc billing`."""

from __future__ import annotations

from localstore.core.model import billing as endpoints
from localstore.core.model.billing import Subscription
from svc.cmd.frame.context import Ctx
from svc.console import Column, answers

COLUMNS = (
    Column("plan"),
    Column("status"),
    Column("current_period_end", kind="time"),
    Column("cancel_at_period_end", spare=1),
)


@answers(COLUMNS, Subscription)
def billing(ctx: Ctx) -> None:
    """Show your subscription of the server

    Fails with a message if the server has no billing.

    Examples:
    svc billing
    """
    ctx.out.record(ctx.api.send(endpoints.SUBSCRIPTION), COLUMNS, Subscription)
