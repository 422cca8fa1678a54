"""What an account may create within an hour, and that everything that can be created has a limit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping

import httpx
import pytest

from localstore.core.model.rights import OPERATIONS
from relay import config
from relay.base.environment import StartRefused
from relay.capacity import creation
from tests.relay.conftest import Account, Relay
from tests.relay.histories import create, ok

MOST = 3
# Created, and not counted by the hour: what bounds them instead.
OTHERWISE = {
    "repo.create": "the owner's repositories",
    "fork.create": "the owner's repositories",
    "publication.create": "one for each release",
    "asset.upload": "the owner's bytes",
    "issue.create": "posts in a minute",
    "comment.create": "posts in a minute",
    "proposal.create": "posts in a minute",
    "review.create": "posts in a minute",
    "thread.create": "posts in a minute",
    "report.create": "posts in a minute",
    "reaction.add": "six of an account on one post",
    "run.create": "runs in a minute",
    "webhook.create": "webhooks in a day",
    "invite.create": "invitations in a day",
    "access.request": "requests in a day",
    "checkpoint.create": "not in this version",
    "document.create": "counted by its service: documents",
    "api_key.create": "not in this version",
    "token.create": "a decision in a browser",
    "device_key.register": "a device with its key",
    "listing.set": "one for each repository",
    "upstream.set": "one for each repository",
    "star.set": "one for each repository",
    "watch.set": "one for each repository",
    "organisation.create": "counted by its service: organisations",
    "member.invite": "counted by its service: invitations",
    "label.clone": "counted by its service: labels",
}


def test_whatever_can_be_created_is_counted_or_bounded_otherwise() -> None:
    makes = (".create", ".add", ".set", ".enable", ".upload", ".clone", ".invite", ".request", ".register")
    made = {name for name in OPERATIONS if name.endswith(makes)}
    assert made == creation.COUNTED.keys() | OTHERWISE.keys()
    assert set(creation.COUNTED.values()) <= creation.DEFAULTS.keys()


def test_the_environment_sets_single_kinds() -> None:
    found = config.read_quotas({"TR_QUOTA_CREATIONS": "labels=7, refs=8"}).creations
    assert found == {**creation.DEFAULTS, "labels": 7, "refs": 8}
    for wrong in ("labels", "labels=-1", "labels=x", "houses=3", "=3"):
        with pytest.raises(StartRefused, match="TR_QUOTA_CREATIONS"):
            config.read_quotas({"TR_QUOTA_CREATIONS": wrong})


@pytest.fixture
def few(relay: Relay) -> Iterator[Mapping[str, int]]:
    quota = relay.node.config.quota
    limits = dict.fromkeys(creation.DEFAULTS, MOST)
    object.__setattr__(quota, "creations", limits)
    yield limits
    object.__setattr__(quota, "creations", creation.DEFAULTS)


def _name() -> str:
    return f"n{secrets.token_hex(5)}"


def test_above_the_limit_creation_waits(
    relay: Relay,
    account: Callable[..., Account],
    client: Callable[..., httpx.Client],
    few: Mapping[str, int],
) -> None:
    ann = account()
    http = client(ann)
    repo = create(http, ann, _name(), visibility="public")
    first = repo.seal({"a.txt": b"1\n"})[-1]
    org = ok(http.post("/api/v1/orgs", json={"handle": _name()}))["handle"]
    acts: dict[str, Callable[[], httpx.Response]] = {
        "labels": lambda: http.post(f"{repo.url}/labels", json={"name": _name()}),
        "refs": lambda: http.post(f"{repo.url}/refs", json={"type": "tag", "name": _name(), "head": first}),
        "releases": lambda: http.post(
            f"{repo.url}/releases", json={"version": f"v{secrets.randbelow(10**9)}", "seal_id": first}
        ),
        "rules": lambda: http.put(f"{repo.url}/protections/{_name()}", json={"lock_writes": True}),
        "organisations": lambda: http.post("/api/v1/orgs", json={"handle": _name()}),
        "invitations": lambda: http.post(f"/api/v1/orgs/{org}/invites", json={"handle": account().handle}),
    }
    for what, act in acts.items():
        for _ in range(MOST - (what == "organisations")):
            ok(act())
        refused = act()
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited"), refused.text
        assert 0 < int(refused.headers["Retry-After"]) <= 3600
        assert f"at most {MOST} {what} within an hour" in refused.json()["detail"]
    other = client(account())
    assert ok(other.post("/api/v1/orgs", json={"handle": _name()}))["role"] == "admin"


def test_what_is_refused_is_not_counted(
    account: Callable[..., Account], client: Callable[..., httpx.Client], few: Mapping[str, int]
) -> None:
    ann = account()
    http = client(ann)
    repo = create(http, ann, _name())
    ok(http.post(f"{repo.url}/labels", json={"name": "one"}))
    for _ in range(2 * MOST):
        assert http.post(f"{repo.url}/labels", json={"name": "one"}).status_code == 409
    for _ in range(MOST - 1):
        ok(http.post(f"{repo.url}/labels", json={"name": _name()}))
    assert http.post(f"{repo.url}/labels", json={"name": _name()}).status_code == 429
