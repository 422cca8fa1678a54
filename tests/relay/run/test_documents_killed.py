"""A relay that is killed while documents are written loses no update that it acknowledged."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx

from tests.depth import rounds
from tests.patience import PATIENCE
from tests.relay.histories import ok
from tests.relay.run.test_start import Served, served

WRITERS = 3


def _guest(relay: Served) -> tuple[dict[str, str], str]:
    """(cookies of a new guest, path of a new document)."""
    with httpx.Client(base_url=relay.url, trust_env=False, timeout=PATIENCE) as http:
        own = {"Origin": relay.url}
        ok(http.post("/auth/guest-login", headers=own))
        made = ok(http.post("/api/v1/documents", headers=own, json={"title": "Plan", "content": {}}))
        return dict(http.cookies), f"/api/v1/documents/{made['id']}"


def _write_until_killed(
    relay: Served, cookies: dict[str, str], path: str, names: list[str], acknowledged: list[str], after: int
) -> None:
    """Add members with several writers at once; kill the relay after so many answers, while others wait."""
    counting = threading.Lock()

    def write(who: int) -> None:
        with httpx.Client(base_url=relay.url, cookies=cookies, trust_env=False, timeout=PATIENCE) as http:
            for name in names[who::WRITERS]:
                body = {"content": {name: 1}, "base": "1"}
                try:
                    answer = http.put(path, json=body, headers={"Origin": relay.url})
                except httpx.TransportError:
                    return
                if answer.status_code == 200:
                    with counting:
                        acknowledged.append(name)
                        if len(acknowledged) >= after:
                            relay.process.kill()

    with ThreadPoolExecutor(WRITERS) as threads:
        list(threads.map(write, range(WRITERS)))


def test_no_acknowledged_update_is_lost(tmp_path: Path) -> None:
    data, acknowledged = tmp_path / "data", list[str]()
    for kill in range(1, rounds(4, 10)):
        names = [f"{kill}.{number}" for number in range(60)]
        with served(data, "--dev") as relay:
            if kill == 1:
                cookies, path = _guest(relay)
            _write_until_killed(relay, cookies, path, names, acknowledged, len(acknowledged) + kill)
    with (
        served(data, "--dev") as relay,
        httpx.Client(base_url=relay.url, cookies=cookies, trust_env=False, timeout=PATIENCE) as http,
    ):
        document = ok(http.get(path))
        history = ok(http.get(f"{path}/history", params={"limit": 100}))["items"]
        assert document["content"].keys() >= set(acknowledged)
        again = http.put(path, json={"content": {"last": 1}, "base": "1"}, headers={"Origin": relay.url})
        assert ok(again)["content"] == document["content"] | {"last": 1}
    assert len(acknowledged) >= 3
    assert [update["number"] for update in history] == list(range(int(document["frontier"]), 0, -1))
