"""With a flag off its routes are no routes: the constant 404 for every method and caller."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from relay.routing import TABLE
from tests.relay.conftest import Account


@pytest.fixture(scope="module")
def relay_variables() -> dict[str, str]:
    return {"TR_RATE_LIMITS": "off", "RUST_LOG": "off", "TR_REPOS_ENABLED": "off"}


def test_without_repositories_nothing_of_them_is_there(
    account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> None:
    missing = client().get("/api/v1/nowhere").content
    nouns = {"repo", "ref", "history", "public", "search"}
    routes = [route for route in TABLE if route.name.partition(".")[0] in nouns]
    assert len(routes) >= 20
    for http in (client(), client(account())):
        for route in routes:
            path = route.path.replace("...", "")
            for name in route.params:
                path = path.replace(f"{{{name}}}", "x")
            for method in (route.method, "OPTIONS"):
                answer = http.request(method, path)
                assert (answer.status_code, answer.content) == (404, missing), (method, path)
