"""Data that is kept about a request while it is handled. It is needed for the log line and the counters, and
to release the request's memory."""

from __future__ import annotations

from relay.http.body import Incoming
from relay.http.buffers import Lease

UNKNOWN = "unknown"  # the route of a request that matched none
LEFT = 499  # in log and counters only: the client hung up before the end of its answer


class Context:
    """Data about one request. `began`: seconds on the clock of `perf_counter`; `sent`: bytes of a streamed
    answer; `upgraded`: the connection became a WebSocket. Class attributes are the defaults."""

    began: float
    request_id: str | None = None
    route = UNKNOWN
    status = LEFT
    sent = 0
    account_id: str | None = None
    upgraded = False
    incoming: Incoming | None = None
    lease: Lease | None = None
