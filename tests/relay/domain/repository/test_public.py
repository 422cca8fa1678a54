"""Public coordinates: OWNER/NAME of any kind to the repository behind it."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from tests.relay.conftest import Account
from tests.relay.histories import compared, ok, own

Maker = Callable[..., Account]
Client = Callable[..., httpx.Client]


def test_public_coordinates(account: Maker, client: Client) -> None:
    mine = own(account, client, visibility="public", kind="model")
    (head,) = mine.seal({"f": b"x"})
    name = mine.body["full_name"]
    anonymous = client()
    found = ok(anonymous.get(f"/api/v1/public/model/{name}"))
    assert (found["id"], found["head"], found["archived"]) == (mine.id, head, False)
    assert found["page_url"].endswith(f"/model/{name}")
    assert ok(anonymous.get(f"/api/v1/public/apps/{name}")) == found
    assert ok(anonymous.get(f"/api/v1/public/model/{name.upper()}")) == found
    wrong = anonymous.get(f"/api/v1/public/dataset/{name}")
    assert (wrong.status_code, wrong.headers["location"]) == (307, f"/api/v1/public/model/{name}")
    assert anonymous.get(f"/api/v1/public/novel/{name}").status_code == 404
    hidden = own(account, client)
    for kind in ("app", "dataset", "apps"):
        answer = anonymous.get(f"/api/v1/public/{kind}/{hidden.body['full_name']}")
        assert compared(answer) == compared(anonymous.get(f"/api/v1/public/{kind}/nobody/nothing"))
    assert ok(hidden.http.get(f"/api/v1/public/app/{hidden.body['full_name']}"))["id"] == hidden.id
