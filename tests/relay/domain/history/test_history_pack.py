"""What a slice of history may cost."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from relay.domain.history import history_pack
from tests.relay.conftest import Account, Relay
from tests.relay.domain.history.test_history import unpack
from tests.relay.histories import create


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("sliced")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Iterator[httpx.Client]:
    with relay.client(owner) as client:
        yield client


def test_a_slice_ends_where_side_branches_change_everything_with_each_line(
    http: httpx.Client, owner: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = create(http, owner, "sides")
    (root,) = mine.seal({"f": b"0\n"})
    mine.branch("side", root)
    mine.seal({f"main-{n}": b"1\n" for n in range(40)})
    mine.seal({f"side-{n}": b"2\n" for n in range(40)}, branch="side")
    for n in range(5):
        mine.seal({"f": b"main %d\n" % n})
        side = mine.seal({"f": b"side %d\n" % n}, branch="side")
    mine.seal({"f": b"both\n"}, parents=side)
    monkeypatch.setattr(history_pack, "HISTORY_PACK_LINES", 20_000)
    url: str | None = f"{mine.url}/history-pack"
    found: list[str] = []
    slices = 0
    while url:
        answer = http.get(url)
        lines, _, _ = unpack(answer.content)
        assert sum(len(json.dumps(line)) for line in lines[1:]) < 2 * 20_000
        found += [one["id"] for one in lines]
        slices += 1
        url = answer.links.get("next", {}).get("url")
    assert found == [one["id"] for one in mine.get("/commits")["items"]]
    assert slices > 2
