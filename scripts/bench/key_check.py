"""The time that `validate` takes to answer for a valid API key, and for one that nobody has.

    python -m scripts.bench.key_check [ROUNDS]

Both are asked in turn, over one connection each, in pairs; the figure is the median of the differences. The
relay runs in this process, so that nothing but the question differs.
"""

from __future__ import annotations

import secrets
import statistics
import sys
import tempfile
import time
from pathlib import Path

from localstore.core.encoding import b64u
from localstore.core.model.api_key import PREFIX, VALIDATE
from tests.relay.conftest import Relay

ROUNDS = 2000


def main(rounds: int = ROUNDS) -> int:
    with tempfile.TemporaryDirectory() as folder:
        relay = Relay(Path(folder), {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"})
        relay.start()
        try:
            owner = relay.account("keys")
            with relay.client(owner) as http:
                key = http.post(f"/api/v1/apikeys/{owner.id}", json={"name": "bench"}).json()["secret"]
                unknown = PREFIX + b64u(secrets.token_bytes(32))

                def ask(secret: str) -> float:
                    began = time.perf_counter()
                    answer = http.post(VALIDATE.path, json={"key": secret})
                    seconds = time.perf_counter() - began
                    answer.raise_for_status()
                    return seconds

                for _ in range(200):
                    ask(key), ask(unknown)
                differences = []
                for number in range(rounds):  # whichever is asked first has the warmer caches
                    if number % 2:
                        valid, other = ask(key), ask(unknown)
                    else:
                        other, valid = ask(unknown), ask(key)
                    differences.append(valid - other)
        finally:
            relay.stop()
    median = statistics.median(differences) * 1e6
    spread = statistics.stdev(differences) * 1e6 / rounds**0.5
    print(f"valid − unknown: median {median:+.1f} µs (mean's error ±{spread:.1f} µs) of {rounds} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
