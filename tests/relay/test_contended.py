"""A transaction that the database gave up is carried out again, if its request can be."""

from __future__ import annotations

import dataclasses

import pytest

from localstore.core.errors import Unavailable
from relay import domain
from relay.caller import Caller
from relay.db.engine.database import Contended
from relay.gate import gate
from relay.http.routing import TABLE


def route(failures, stream=False):
    """A real route whose handler fails so many times, and what it was called with."""
    domain.load()
    called = []

    async def handler(**wanted):
        called.append(wanted)
        if len(called) <= failures:
            raise Contended("deadlock detected")
        return  # 204

    return dataclasses.replace(TABLE[0], handler=handler, stream=stream), called


def caller():
    """Somebody whose request has no Idempotency-Key."""
    return Caller(node=None, principal=None, address="192.0.2.1")


async def test_a_handler_runs_again_with_the_same_arguments():
    found, called = route(failures=2)
    answer = await gate._run_handler(found, None, caller(), {"name": "main"})
    assert answer.response.status == 204
    assert called == [{"name": "main"}] * 3


@pytest.mark.parametrize(("stream", "times"), [(False, len(gate.RETRY_PAUSES) + 1), (True, 1)])
async def test_it_ends_with_503_and_a_streamed_body_is_not_read_twice(stream, times):
    found, called = route(failures=99, stream=stream)
    with pytest.raises(Unavailable):
        await gate._run_handler(found, None, caller(), {})
    assert len(called) == times
