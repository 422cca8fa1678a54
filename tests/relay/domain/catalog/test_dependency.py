"""Dependencies are read from manifests as the reader sees them; dependents are found from the other end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx

from tests.patience import PATIENCE
from tests.relay.conftest import Account
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
    end = time.monotonic() + PATIENCE
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
