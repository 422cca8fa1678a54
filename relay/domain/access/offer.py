"""Finds offers: invitations to a repository, invitations to an organisation, and transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from localstore.core.errors import NotFound
from localstore.core.model import limits
from localstore.core.model.access import AlreadyDecided, InviteExpired
from relay.base.clock import now_ms
from relay.db.engine.database import Look, Row
from relay.domain.access.rows.offer import OfferRow

OFFER_MS = limits.OFFER * 1000

R = TypeVar("R", bound=OfferRow)


class Offers(Generic[R]):
    """The offers of one kind. `word`: what a message calls one of them. `statement`: the SQL statement that
    reads one by its id, and `to_row` the function that turns its columns into a row."""

    def __init__(self, word: str, statement: Any, to_row: Callable[[Row], R]) -> None:
        self._word, self._statement, self._to_row = word, statement, to_row

    async def find(self, look: Look, offer_id: str, *, to: str | None = None) -> R:
        """Find an offer by its id. Raises NotFound if there is none, or if it is made to another account than
        `to`. Without `to`, it may be made to any account."""
        values = await look(self._statement, id=offer_id, now=now_ms())
        if values is None:
            raise NotFound
        row = self._to_row(values)
        if to is not None and row.account_id != to:
            raise NotFound
        return row

    async def find_open(self, look: Look, offer_id: str, *, to: str | None = None) -> R:
        """Find an offer that waits for an answer. Raises NotFound as `find` does, and AlreadyDecided or
        InviteExpired if the offer waits no more."""
        row = await self.find(look, offer_id, to=to)
        self.require_open(row)
        return row

    def require_open(self, row: R) -> None:
        """Raise AlreadyDecided or InviteExpired unless the offer waits for an answer."""
        if row.state == "expired":
            raise InviteExpired(
                f"this {self._word} was not answered in {limits.OFFER // 86400} days and has expired"
            )
        if row.state != "pending":
            raise AlreadyDecided(f"this {self._word} was {row.state} before")
