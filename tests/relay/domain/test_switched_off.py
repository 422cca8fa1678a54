"""With a flag off its routes are not routes: the constant 404 for every method and caller."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from relay import domain
from relay.base.flags import DEFAULTS, WITHOUT_ROUTES
from relay.domain.repository.place import PREFIXES
from relay.http.router import Router
from relay.http.routing import TABLE
from tests.relay.conftest import Relay

ALL = "TR_REPOS_ENABLED"  # the other flags of repositories mean nothing without it
OF_REPOS = ("TR_REPO_", "TR_FORK_ENABLED")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
QUIET = {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"}
domain.load()
FLAGS = sorted({route.flag for route in TABLE if route.flag})


@pytest.fixture(params=FLAGS)
def flag(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def relay(tmp_path: Path, flag: str) -> Iterator[Relay]:
    """A relay that serves with everything on but this flag."""
    running = Relay(tmp_path / "relay", {**dict.fromkeys(DEFAULTS, "on"), **QUIET, flag: "off"})
    running.start()
    yield running
    running.stop()


def shown(answer: httpx.Response) -> tuple[int, bytes, list[tuple[str, str]]]:
    varying = {"x-request-id", "date"}
    return (
        answer.status_code,
        answer.content,
        [(name, value) for name, value in answer.headers.multi_items() if name not in varying],
    )


def test_routes_of_a_flag_that_is_off_are_not_there(relay: Relay, flag: str) -> None:
    gone = {name for name in FLAGS if name == flag or (flag == ALL and name.startswith(OF_REPOS))}
    hidden = [route for route in TABLE if route.flag in gone]
    assert hidden
    paths = {filled(route.path, route.params) for route in hidden}
    # Some are also addresses of things that stay, such as the seal `finalize` among `seals/{seal_id}`.
    kept: Router[bool] = Router()
    for route in TABLE:
        if route.flag not in gone:
            kept.add(route.method, route.path, True)
    only_theirs = sorted(path for path in paths if not kept.find(path))
    assert only_theirs
    for who in (None, relay.account("mira")):
        with relay.client(who) as http:
            for path in only_theirs:
                is_page = path.split("/")[1] in PREFIXES
                nowhere = "/apps/nobody/nothing" if is_page else "/api/v1/nowhere"
                for method in METHODS:
                    missing = shown(http.request(method, nowhere))
                    assert shown(http.request(method, path)) == missing, (method, path)
                    assert missing[0] == 404


def test_client_config_says_so(relay: Relay, flag: str) -> None:
    with relay.client() as http:
        flags = http.get("/api/v1/client-config").json()["flags"]
    gone = {name for name in FLAGS if name == flag or (flag == ALL and name.startswith(OF_REPOS))}
    gone |= WITHOUT_ROUTES if flag == ALL else set()
    answering = (*FLAGS, *WITHOUT_ROUTES)
    assert [name for name in DEFAULTS if flags[name]] == [
        name for name in DEFAULTS if name in answering and name not in gone
    ]


def test_what_is_not_built_is_not_reported_as_on(relay: Relay, flag: str) -> None:
    with relay.client() as http:
        flags = http.get("/api/v1/client-config").json()["flags"]
        described = http.get("/api/v1/openapi.json").json()["paths"]
    for path in ("/git-proxy/github.com/x", "/api/v1/social"):
        assert relay.client().get(path).status_code == 404
    not_built = ("TR_GIT_CLONE_ENABLED", "TR_MIRROR_SYNC_ENABLED")
    assert not any(flags[name] for name in not_built), flags
    operations = {one["operationId"] for path in described.values() for one in path.values()}
    assert not operations & {route.name for route in TABLE if route.flag == flag}, "these answer 404"
    assert operations


def filled(path: str, names: tuple[str, ...]) -> str:
    path = path.replace("...", "")
    for name in names:
        path = path.replace(f"{{{name}}}", "x")
    return path
