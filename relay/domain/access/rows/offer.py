"""What the statements of all offers share: invitations to a repository, invitations to an organisation, and
transfers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, and_, bindparam, case, select

from localstore.core.model.base import Actor
from relay.base.actors import to_actor
from relay.db.schema.account import account


@dataclass(slots=True, frozen=True)
class OfferRow:
    """The columns that every offer has. An offer that waits past its end has the state "expired"."""

    id: str
    account_id: str  # to whom it is made
    account_handle: str | None
    account_kind: str
    sender_id: str
    sender_handle: str | None
    sender_kind: str
    state: Any
    created_at: int
    valid_until: int

    @property
    def account(self) -> Actor:
        return to_actor(self.account_id, self.account_handle, self.account_kind)

    @property
    def sender(self) -> Actor:
        return to_actor(self.sender_id, self.sender_handle, self.sender_kind)


def select_offers(table: Any, sender: str, subject: Any, *more: Any) -> Select[Any]:
    """A SELECT of the offers in `table`: the columns of `OfferRow`, then the columns `more`. `sender`: the
    column with the id of the sender. `subject`: `table` joined with the repository or organisation that it is
    about."""
    to, by = account.alias("whom"), account.alias("by_whom")
    over = and_(table.c.state == "pending", table.c.valid_until <= bindparam("now"))
    return select(
        table.c.id,
        to.c.id.label("whom"),
        to.c.handle.label("whom_handle"),
        to.c.kind.label("whom_kind"),
        by.c.id.label("sender"),
        by.c.handle.label("sender_handle"),
        by.c.kind.label("sender_kind"),
        case((over, "expired"), else_=table.c.state).label("state_now"),
        table.c.created_at,
        table.c.valid_until,
        *more,
    ).select_from(subject.join(to, to.c.id == table.c.account_id).join(by, by.c.id == table.c[sender]))
