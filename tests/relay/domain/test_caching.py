"""What caches may keep of what a seal names, and until when."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from relay.run import operator_commands
from tests.relay.conftest import Account, Relay
from tests.relay.histories import create


@pytest.fixture(scope="module")
def owner(relay: Relay) -> Account:
    return relay.account("publisher")


@pytest.fixture(scope="module")
def http(relay: Relay, owner: Account) -> Iterator[httpx.Client]:
    with relay.client(owner) as client:
        yield client


@pytest.mark.parametrize("way", ["suspend", "hide"])
def test_what_caches_hold_of_a_public_repository_ends_when_it_is_taken_off(
    relay: Relay, http: httpx.Client, owner: Account, way: str
) -> None:
    """Nothing is kept for longer than a minute without asking again, and asking again meets the gate."""
    mine = create(http, owner, f"taken-off-{way}", visibility="public")
    (made,) = mine.seal({"a.txt": b"a\n", "big.bin": b"\0" * 700_000})
    urls = [
        f"{mine.url}/raw/{made}/a.txt",
        f"{mine.url}/raw/{made}/big.bin",
        f"{mine.url}/archive/{made}.tar.gz",
    ]
    with relay.client() as reader:
        tags = {}
        for url in urls:
            answer = reader.get(url)
            assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=60")
            tags[url] = {"If-None-Match": answer.headers["etag"]}
            again = reader.get(url, headers=tags[url])
            assert (again.status_code, again.content) == (304, b"")
            assert again.headers["cache-control"] == "public, max-age=60"
        if way == "suspend":
            full_name = f"{owner.handle}/taken-off-{way}"
            relay.run(operator_commands.set_state(relay.node.config.database_url, full_name, "suspend"))
        else:
            assert http.patch(mine.url, json={"visibility": "private"}).is_success
        assert {reader.get(url, headers=tags[url]).status_code for url in urls} == {404}
    if way == "hide":
        assert {http.get(url).headers["cache-control"] for url in urls} == {"private, no-cache"}
