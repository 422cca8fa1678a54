"""What is noted of a request on its way: for its line in the log and the counters, and to give back."""

from __future__ import annotations

from relay.http.body import Incoming
from relay.http.buffers import Lease

UNKNOWN = "unknown"  # the route of a request that came to none
LEFT = 499  # in log and counters only: the client hung up before the end of its answer


class Context:
    """`began`: seconds on the clock of `perf_counter`; `sent`: bytes of a streamed answer; `upgraded`: to a
    WebSocket. What a class says need not be set for each request."""

    began: float
    request_id: str | None = None
    route = UNKNOWN
    status = LEFT
    sent = 0
    account_id: str | None = None
    upgraded = False
    incoming: Incoming | None = None
    lease: Lease | None = None
