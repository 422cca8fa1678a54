"""Dependencies are read from manifests as the reader sees them; dependents are found from the other end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from localstore.core.errors import EditionLacks
from localstore.core.model.catalog.advisory import AdvisoryDraft
from localstore.core.rights import OPERATIONS
from relay.base import edition
from relay.caller import View, repo_name
from relay.db import repo as repos
from relay.service.catalog import advisory
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok

Client = Callable[..., httpx.Client]
Someone = Callable[..., Account]


def _public(http: httpx.Client, who: Account, name: str, *changes: dict[str, bytes]) -> Repository:
    repo = create(http, who, name)
    ok(http.patch(repo.url, json={"visibility": "public"}))
    if changes:
        repo.seal(*changes)
    return repo


def _until(told: Callable[[], Any], wanted: Any) -> None:
    """The index is settled beside the push; poll until it says so."""
    end = time.monotonic() + 20
    while (found := told()) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.02)


def test_the_manifests_of_a_seal_are_read_as_the_caller_sees_them(account: Someone, client: Client) -> None:
    owner = account()
    http, nobody = client(owner), client()
    tool = _public(http, owner, "tool")
    private = create(http, owner, "hidden")
    named = f"depends: [{owner.handle}/tool, {owner.handle}/hidden, nobody/there]\n".encode()
    first = {
        ".svc.yaml": named,
        "requirements.txt": b"requests==2.31.0\n",
        "secret/package.json": b'{"dependencies": {"left-pad": "1.3.0"}}',
        "web/package.json": b'{"dependencies": {"react": "^18"}}',
        "broken/Cargo.toml": b"[",
        "a/b/c/d/go.mod": b"require example.org/deep v1.0.0\n",
        "README.md": b"# x\n",
    }
    repo = _public(http, owner, "app", first)
    ok(http.put(f"{repo.url}/paths", json={"path": "secret", "visibility": "private"}))

    mine = repo.get("/dependencies")
    assert mine["seal_id"] == repo.head() and mine["complete"] is False  # a/b/c/d is below what is looked at
    assert [one["path"] for one in mine["manifests"]] == [
        ".svc.yaml",
        "requirements.txt",
        "broken/Cargo.toml",
        "secret/package.json",
        "web/package.json",
    ]
    assert [one["path"] for one in mine["manifests"] if one["problem"]] == ["broken/Cargo.toml"]
    told = [
        (one["ecosystem"], one["name"], one["version"], one["repo"] and one["repo"]["id"])
        for one in mine["items"]
    ]
    assert told == [
        ("svc", f"{owner.handle}/tool", None, tool.id),
        ("svc", f"{owner.handle}/hidden", None, private.id),
        ("svc", "nobody/there", None, None),
        ("PyPI", "requests", "2.31.0", None),
        ("npm", "left-pad", "1.3.0", None),
        ("npm", "react", None, None),
    ]

    theirs = ok(nobody.get(f"{repo.url}/dependencies"))
    assert "secret" not in str(theirs) and "left-pad" not in str(theirs)
    assert [one["repo"] and one["repo"]["id"] for one in theirs["items"][:3]] == [tool.id, None, None]

    repo.seal({"requirements.txt": None})
    assert "requests" not in str(repo.get("/dependencies"))
    assert "requests" in str(repo.get("/dependencies", ref=mine["seal_id"]))
    assert http.get(f"{repo.url}/dependencies", params={"ref": "nothing"}).status_code == 404
    assert nobody.get(f"{private.url}/dependencies").status_code == 404
    empty = private.get("/dependencies")
    assert empty == {"seal_id": None, "manifests": [], "items": [], "complete": True}


def test_dependents_are_those_that_the_caller_sees(account: Someone, client: Client) -> None:
    owner, friend = account(), account()
    http, other, nobody = client(owner), client(friend), client()
    tool = _public(http, owner, "tool2")
    yaml = {".svc.yaml": f"depends: [{owner.handle}/Tool2]\n".encode()}
    app = _public(other, friend, "app", yaml)
    hidden = create(other, friend, "hidden")
    hidden.seal(yaml)
    veiled = _public(other, friend, "veiled", yaml)
    ok(other.put(f"{veiled.url}/paths", json={"path": ".svc.yaml", "visibility": "private"}))

    def told(who: httpx.Client) -> list[str]:
        return sorted(one["id"] for one in ok(who.get(f"{tool.url}/dependents"))["items"])

    _until(lambda: told(other), sorted([app.id, hidden.id, veiled.id]))
    assert told(nobody) == told(http) == [app.id]
    ok(http.patch(tool.url, json={"name": "renamed"}))
    assert told(nobody) == [app.id]

    app.seal({".svc.yaml": b"kind: app\n"})
    _until(lambda: told(nobody), [])
    broken = _public(other, friend, "broken", {".svc.yaml": b"depends: 3\n"})
    assert broken.id not in told(other)


def _publish(relay: Relay, who: Account, repo: Repository, draft: AdvisoryDraft) -> Any:
    """As the owner's decision about a report does."""

    async def work() -> Any:
        found = await relay.node.db.lookup(repos.VISIBLE, id=repo.id, account=who.id)
        view = View(
            relay.node,
            None,
            "127.0.0.1",
            repo=repos.row(found),
            role="owner",
            operation=OPERATIONS["report.decide"],
        )
        async with relay.node.db.write(repo_name(repo.id)) as tx:
            return await advisory.publish(tx, view, draft)

    return relay.run(work())


def _draft(**members: Any) -> AdvisoryDraft:
    return msgspec.convert({"summary": "Reads beyond the end", **members}, AdvisoryDraft)


def _npm(name: str, *events: dict[str, str]) -> dict[str, Any]:
    return {
        "package": {"ecosystem": "npm", "name": name},
        "ranges": [{"type": "SEMVER", "events": list(events)}],
    }


def test_without_its_edition_a_node_has_no_advisories(relay: Relay, account: Someone, client: Client) -> None:
    owner = account()
    repo = _public(client(owner), owner, "plain")
    with pytest.raises(
        EditionLacks, match="self-hosted-community; publishing an advisory needs self-hosted-business"
    ):
        _publish(relay, owner, repo, _draft())
    assert ok(client().get("/api/v1/advisories")) == {"items": [], "next_cursor": None}
    assert client().get("/api/v1/advisories/0").status_code == 404


def test_advisories_are_public_and_meet_the_dependencies(
    relay: Relay, account: Someone, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edition, "EDITION", "self-hosted-business")
    owner = account()
    http, nobody = client(owner), client()
    tool = _public(http, owner, "tool3")
    first = _publish(relay, owner, tool, _draft(severity="high"))
    fixed = [{"introduced": "0"}, {"fixed": "1.3.1"}]
    second = _publish(relay, owner, tool, _draft(affected=[_npm("left-pad", *fixed)]))

    listed = ok(nobody.get("/api/v1/advisories"))["items"]
    assert [one["id"] for one in listed] == [second.id, first.id]
    assert ok(nobody.get(f"/api/v1/advisories/{first.id}")) == listed[1]
    assert listed[1]["affected"][0]["package"] == {"ecosystem": "svc", "name": f"{owner.handle}/tool3"}
    assert listed[1]["database_specific"] == {"repo": f"{owner.handle}/tool3", "severity": "high"}
    of_repo = ok(nobody.get("/api/v1/advisories", params={"repo": f"{owner.handle}/tool3", "limit": 1}))
    assert [one["id"] for one in of_repo["items"]] == [second.id] and of_repo["next_cursor"]
    assert ok(nobody.get("/api/v1/advisories", params={"repo": "no/one"}))["items"] == []

    packages = {"left-pad": "1.3.0", "Left-Pad": "1.3.1", "right-pad": "1.3.0"}
    npm = str({"dependencies": packages, "devDependencies": {"left-pad": "^1"}}).replace("'", '"').encode()
    files = {".svc.yaml": f"depends: [{owner.handle}/tool3]\n".encode(), "package.json": npm}
    app = _public(http, owner, "app3", files)
    told = {
        (one["name"], one["requirement"]): [(hit["id"], hit["certain"]) for hit in one["advisories"]]
        for one in app.get("/dependencies")["items"]
    }
    assert told == {
        (f"{owner.handle}/tool3", ""): [(first.id, True)],
        ("left-pad", "1.3.0"): [(second.id, True)],
        ("Left-Pad", "1.3.1"): [],
        ("right-pad", "1.3.0"): [],
        ("left-pad", "^1"): [(second.id, False)],
    }

    ok(http.patch(tool.url, json={"visibility": "private"}))
    assert ok(nobody.get("/api/v1/advisories"))["items"] == []
    assert nobody.get(f"/api/v1/advisories/{first.id}").status_code == 404
    assert not any(one["advisories"] for one in app.get("/dependencies")["items"])
