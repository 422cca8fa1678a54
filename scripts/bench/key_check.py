"""Measures what it costs the relay to check an API key: a valid one, an unknown one, one of another account,
and a revoked one.

    python -m scripts.bench.key_check [ROUNDS]

Each round checks all of these keys, in changing order. It counts the CPU time of the process including the
thread of the database, because other programs disturb CPU time less than wall time. The figure is the median
over all rounds; its error is 1.25 · σ / √rounds, with σ from the quartiles. The check runs in a relay, but
without HTTP, because the code before and after it is the same for all keys. With TEST_DATABASE=postgres the
database is PostgreSQL, whose own work is not counted.
"""

from __future__ import annotations

import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from localstore.core.encoding import b64u
from localstore.core.model.api_key import PREFIX, ApiKeyCheck
from relay.caller import Caller, Principal
from relay.domain.api_key import api_key
from tests.relay.conftest import Account, Relay

ROUNDS = 20_000
WARM = 500  # rounds before those that count
BASE = "unknown"


def caller_of(relay: Relay, who: Account) -> Caller:
    principal = Principal(
        who.id,
        who.handle,
        "user",
        "local",
        who.session_id,
        "browser",
        2**60,
        frozenset({"admin"}),
        None,
        "cookie",
    )
    return Caller(relay.node, principal, "127.0.0.1")


def make_keys(relay: Relay, owner: Account) -> dict[str, ApiKeyCheck]:
    """Make API keys of each kind. Returns kind of key → the request that checks such a key."""

    def make_key(who: Account, revoked: bool = False, **more: object) -> str:
        with relay.client(who) as http:
            body = {"name": "bench", **more}
            key = http.post(f"/api/v1/apikeys/{who.id}", json=body).raise_for_status().json()
            if revoked:
                http.delete(f"/api/v1/apikeys/{who.id}/{key['id']}").raise_for_status()
        return str(key["secret"])

    found = {
        "valid": make_key(owner),
        "valid, all of it": make_key(
            owner, scopes=["read", "write", "admin"], expires_at="2099-01-01T00:00:00Z"
        ),
        BASE: PREFIX + b64u(secrets.token_bytes(32)),
        "of somebody else": make_key(relay.account("other")),
        "revoked": make_key(owner, revoked=True),
    }
    return {kind: ApiKeyCheck(key=secret) for kind, secret in found.items()}


async def measure(caller: Caller, checks: dict[str, ApiKeyCheck], rounds: int) -> dict[str, list[int]]:
    """Measure the checks in each round. Returns kind of key → CPU nanoseconds of each check."""
    times: dict[str, list[int]] = {kind: [] for kind in checks}
    order = list(checks)
    encoder = msgspec.json.Encoder()
    for number in range(WARM + rounds):
        order.append(order.pop(0))
        for kind in order:
            check = checks[kind]
            began = time.process_time_ns()
            encoder.encode(await api_key.validate(caller, check))
            spent = time.process_time_ns() - began
            if number >= WARM:
                times[kind].append(spent)
    return times


def summarise_times(values: list[Any]) -> tuple[float, float]:
    """The median of the values and its standard error. `values` are in nanoseconds, the result is in
    microseconds."""
    low, middle, high = statistics.quantiles(values, n=4)
    return middle / 1000, 1.25 * (high - low) / 1.349 / len(values) ** 0.5 / 1000


def main(rounds: int = ROUNDS) -> int:
    with tempfile.TemporaryDirectory(prefix="svc-bench-") as folder:
        relay = Relay(Path(folder), {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"})
        relay.start()
        try:
            owner = relay.account("keys")
            checks = make_keys(relay, owner)
            times = relay.run(measure(caller_of(relay, owner), checks, rounds))
        finally:
            relay.stop()
    for kind, spent in times.items():
        median, error = summarise_times(spent)
        differences = [mine - base for mine, base in zip(spent, times[BASE], strict=True)]
        more, more_error = summarise_times(differences)
        print(f"{kind:<18} {median:7.2f} ± {error:.2f} µs   minus {BASE}: {more:+6.2f} ± {more_error:.2f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
