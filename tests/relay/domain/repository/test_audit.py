"""The audit of a repository: everything that happened but live edits, for its owner."""

from __future__ import annotations

from tests.relay.histories import ok
from tests.relay.tracker import Tracker, code, world

__all__ = ["world"]  # the fixture


def test_the_owner_reads_what_happened_newest_first(world: Tracker) -> None:
    _, member = world.member("admin")
    url = f"{world.repo.url}/audit"
    world.repo.push(world.who.key, "a.txt", b"live and sealed\n")
    world.label("bug")
    world.open(member, title="a secret title")
    entries = ok(world.http.get(url))["items"]
    assert [one["action"] for one in entries[:2]] == ["issue.create", "label.create"]
    assert entries[-1]["action"] == "repo.create"
    assert "live" not in {one["action"] for one in entries}
    newest, label = entries[:2]
    assert (newest["subject"], newest["device_key_id"] is not None) == ("#1", True)
    assert (label["subject"], label["actor"]["id"]) == ("bug", world.who.id)
    assert "secret" not in str(entries)
    page = ok(world.http.get(url, params={"limit": 1}))
    rest = ok(world.http.get(url, params={"limit": 1, "cursor": page["next_cursor"]}))
    assert [one["id"] for one in (*page["items"], *rest["items"])] == [newest["id"], label["id"]]


def test_nobody_else_does(world: Tracker) -> None:
    url = f"{world.repo.url}/audit"
    for role in ("admin", "write", "triage", "read"):
        assert code(world.member(role)[1].get(url)) == (403, "forbidden")
    stranger = world.client(world.account())
    assert stranger.get(url).status_code == 404
    world.publish()
    assert code(stranger.get(url)) == (403, "forbidden")
    assert code(world.client().get(url)) == (401, "sign_in_required")


def test_a_change_says_what_changed(world: Tracker) -> None:
    """Of settings the fields, of a rule for a path the path; no values of settings, no texts."""
    ok(world.http.patch(world.repo.url, json={"description": "a secret plan"}))
    for visibility in ("private", "open"):
        ok(world.http.put(f"{world.repo.url}/paths", json={"path": "vault", "visibility": visibility}))
    assert world.http.delete(f"{world.repo.url}/paths", params={"path": "vault"}).is_success
    entries = ok(world.http.get(f"{world.repo.url}/audit", params={"limit": 4}))["items"]
    assert [(one["action"], one["subject"]) for one in entries[:3]] == [
        ("path.remove", "vault"),
        ("path.set", "vault"),
        ("path.set", "vault"),
    ]
    moves = [(one["data"]["was"], one["data"]["became"]) for one in entries[:3]]
    assert moves == [("open", None), ("private", "open"), (None, "private")]
    assert entries[3]["data"]["changed"] == ["description"]
    assert "secret" not in str(entries)
