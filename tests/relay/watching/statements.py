"""Counts the statements that requests run, without those of the jobs and followers beside them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from relay.http import app
from tests.relay.conftest import Relay

_in_request: ContextVar[bool] = ContextVar("in_request", default=False)


@contextmanager
def statements_of_requests(relay: Relay) -> Iterator[list[str]]:
    """A list that grows by the text of each query that a request runs in the block; streams do not count."""
    ran: list[str] = []
    entry: Any = app._Server  # every request passes it
    transaction = relay.run(_transaction_type(relay))
    answer, query = entry._answer, transaction.all

    async def answer_marked(self: Any, request: Any) -> Any:
        token = _in_request.set(True)
        try:
            return await answer(self, request)
        finally:
            _in_request.reset(token)

    def query_noted(self: Any, statement: Any, **values: Any) -> Any:
        if _in_request.get():
            ran.append(str(statement))
        return query(self, statement, **values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(entry, "_answer", answer_marked)
        patch.setattr(transaction, "all", query_noted)
        yield ran


async def _transaction_type(relay: Relay) -> Any:
    async with relay.node.db.read() as tx:
        return next(one for one in type(tx).__mro__ if "all" in vars(one))
