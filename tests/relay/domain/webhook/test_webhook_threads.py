"""Webhooks are told of comments on lines, and not of lines that readers do not see."""

from __future__ import annotations

from tests.relay.domain.webhook.test_webhook import hook, repo, target
from tests.relay.histories import Repository, ok
from tests.relay.receiver import Receiver

__all__ = ["repo", "target"]


def test_what_is_said_about_lines_is_told(repo: Repository, target: Receiver) -> None:
    hook(repo, f"{target.url}/ok/{repo.id}", "comment", "review")
    repo.seal({"vault/plan.txt": b"planned\n", "a.txt": b"1\n"})
    repo.branch("topic", repo.head() or "")
    topic = repo.seal({"vault/plan.txt": b"replanned\n", "a.txt": b"2\n"}, branch="topic")[0]
    ok(repo.http.put(f"{repo.url}/paths", json={"path": "vault", "visibility": "private"}))
    ok(repo.http.post(f"{repo.url}/proposals", json={"head": "topic", "base": "main", "title": "t"}))
    url, asked = f"{repo.url}/proposals/1/threads", {"start": 1, "end": 1, "seal_id": topic}
    ok(repo.http.post(url, json={**asked, "path": "vault/plan.txt", "body": "hidden"}))
    ok(repo.http.post(url, json={**asked, "path": "a.txt", "body": "waits", "draft": True}))
    made = ok(repo.http.post(url, json={**asked, "path": "a.txt", "body": "why?"}))
    ok(repo.http.post(f"{url}/{made['id']}/comments", json={"body": "because"}))
    target.wait(3, f"/ok/{repo.id}")
    ok(repo.http.patch(f"{url}/{made['id']}", json={"state": "resolved"}))
    (comment,) = made["comments"]
    assert repo.http.delete(f"{repo.url}/issues/1/comments/{comment['id']}").status_code == 204
    got = target.wait(5, f"/ok/{repo.id}")
    told = sorted((one.message for one in got if one.message["type"] != "ping"), key=str)
    assert sorted((one["type"], one["data"]["action"]) for one in told) == [
        ("comment", "created"), ("comment", "created"), ("comment", "deleted"), ("review", "resolved"),
    ]  # fmt: skip
    assert {one["data"]["thread"]["id"] for one in told} == {made["id"]}
    sent = b"".join(one.body for one in got)
    assert b"why?" in sent
    assert b"because" in sent
    for word in (b"a.txt", b"vault", b"hidden", b"waits"):
        assert word not in sent
