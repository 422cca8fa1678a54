"""Advisories are public, meet the dependencies that they are about, and need an edition that has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest

from localstore.core.errors import EditionLacks
from localstore.core.model.advisory import AdvisoryDraft
from localstore.core.model.rights import OPERATIONS
from relay.base import edition
from relay.caller import View, repo_name
from relay.db import repo as repos
from relay.domain.catalog import advisory
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


def _publish(relay: Relay, who: Account, repo: Repository, draft: AdvisoryDraft) -> Any:
    """As the owner's decision about a report does."""

    async def work() -> Any:
        found = await relay.node.db.lookup(repos.VISIBLE, id=repo.id, account=who.id)
        view = View(
            relay.node,
            None,
            "127.0.0.1",
            repo=repos.to_row(found),
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


def test_an_owner_publishes_a_report(
    account: Someone, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, finder = account(), client(account())
    http = client(owner)
    repo = _public(http, owner, "reported")
    made = ok(
        finder.post(f"{repo.url}/reports", json={"title": "Keys leak", "body": "See", "severity": "high"})
    )
    url = f"{repo.url}/reports/{made['id']}/decision"
    assert http.post(url, json={"decision": "published"}).status_code == 501
    fixed = [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "2.0.0"}]}]
    affected = [{"package": {"ecosystem": "npm", "name": "left-pad"}, "ranges": fixed}]
    assert http.post(url, json={"decision": "triaged", "affected": affected}).status_code == 422
    monkeypatch.setattr(edition, "EDITION", "self-hosted-business")
    done = ok(http.post(url, json={"decision": "published", "affected": affected}))
    assert done["state"] == "published"
    told = ok(http.get(f"/api/v1/advisories/{done['advisory_id']}"))
    assert told["affected"] == [{**affected[0], "versions": []}]
    assert ok(http.post(url, json={"decision": "published"}))["state"] == "published"
    listed = ok(client().get("/api/v1/advisories", params={"repo": f"{owner.handle}/reported"}))["items"]
    assert [(one["summary"], one["details"]) for one in listed] == [("Keys leak", "See")]
