"""Cloud compute and billing answer in every edition: what the caller lacks, then what the node lacks."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from localstore.core.model.rights import EDITIONS
from relay.gate import gate
from tests.relay.conftest import Account, Relay

Client = Callable[..., httpx.Client]

LAUNCHES = {
    ("POST", "/api/v1/cloud/launch/app/context"): {"gpu": "H100", "mode": "inference", "region": "eu"},
    ("POST", "/api/v1/cloud/launch/app"): {"context_id": "c"},
}
INSTANCES = {
    ("POST", "/api/v1/cloud/instances/i/stop"): None,
    ("GET", "/api/v1/cloud/instances/i/status"): None,
}
LIST = {("GET", "/api/v1/cloud/instances"): None}
BILLING = {
    ("POST", "/api/v1/billing/checkout"): {"plan": "pro", "return_to": "https://node.example/"},
    ("GET", "/api/v1/billing/portal"): None,
    ("GET", "/api/v1/billing/subscription"): None,
    ("GET", "/api/v1/billing/invoices"): None,
}
ALL = {**LAUNCHES, **INSTANCES, **LIST, **BILLING}


def _code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def _ask(http: httpx.Client, named: tuple[str, str]) -> httpx.Response:
    body = ALL[named]
    return http.request(*named, **({} if body is None else {"json": body}))


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("named", ALL, ids=" ".join)
def test_each_caller_gets_the_first_reason(
    relay: Relay,
    account: Callable[..., Account],
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    named: tuple[str, str],
    edition: str,
) -> None:
    monkeypatch.setattr(gate, "EDITION", edition)
    assert _code(_ask(client(), named)) == (401, "sign_in_required")
    assert _code(_ask(client(account(kind="guest")), named)) == (403, "identity_level")
    answer = _ask(client(account()), named)
    if named in LIST:
        assert (answer.status_code, answer.json()) == (200, {"items": [], "next_cursor": None})
    elif named in INSTANCES:
        assert _code(answer) == (404, "not_found")
    elif named in LAUNCHES:
        assert _code(answer) == (501, "cloud_capability")
        assert answer.json()["missing"] == ["billing", "credential", "provider"]
        assert "no billing" in answer.json()["detail"]
    elif edition == "managed":
        assert _code(answer) == (501, "billing_capability")
        assert answer.json()["missing"] == ["billing"]
    else:
        assert _code(answer) == (501, "edition_lacks_feature")
        assert "needs managed" in answer.json()["detail"]


@pytest.mark.parametrize(
    "body",
    [
        {"mode": "inference"},
        {"gpu": "", "mode": "inference"},
        {"gpu": "H\x1b[2J", "mode": "inference"},
        {"gpu": "H100", "mode": "mining"},
        {"gpu": "H100", "mode": "inference", "budget": 1},
    ],
)
def test_what_is_to_be_launched_is_checked_first(
    account: Callable[..., Account], client: Client, body: dict[str, object]
) -> None:
    answer = client(account()).post("/api/v1/cloud/launch/app/context", json=body)
    assert _code(answer)[0] == 422
