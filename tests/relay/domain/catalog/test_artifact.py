"""Artifacts of a seal are listed as the caller sees them."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from tests.relay.conftest import Account
from tests.relay.histories import create, ok

Client = Callable[..., httpx.Client]
Someone = Callable[..., Account]


def test_artifacts_are_the_files_that_are_no_text(account: Someone, client: Client) -> None:
    owner = account()
    http, nobody = client(owner), client()
    repo = create(http, owner, "art")
    binary = {f"bin/{n:02}.dat": b"\x00\xff%d" % n for n in range(5)}
    (seal,) = repo.seal({"a.txt": b"text\n", "secret/x.dat": b"\x00\x01", **binary})
    ok(http.patch(repo.url, json={"visibility": "public"}))
    ok(http.put(f"{repo.url}/paths", json={"path": "secret", "visibility": "private"}))
    url, found, cursor = f"{repo.url}/seals/{seal}/artifacts", [], None
    while True:
        page = ok(http.get(url, params={"limit": 2, **({"cursor": cursor} if cursor else {})}))
        found += page["items"]
        if (cursor := page["next_cursor"]) is None:
            break
    assert [one["path"] for one in found] == [*sorted(binary), "secret/x.dat"]
    assert {one["kind"] for one in found} == {"blob"}
    assert [one["path"] for one in ok(nobody.get(url))["items"]] == sorted(binary)
    assert http.get(f"{repo.url}/seals/{'0' * 64}/artifacts").status_code == 404
