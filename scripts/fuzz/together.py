"""Makes an issue, a proposal and so on in a repository, so that the requests of `scripts.fuzz.api` find
them."""

from __future__ import annotations

import secrets
from typing import Any

from tests.relay.histories import Repository, ok

Names = dict[str, list[Any]]
TOPIC, PATH = "topic", "t.txt"


def together(repo: Repository) -> Names:
    """Make an issue, a proposal and so on in the repository. Returns the names and ids of these things. The
    keys are the names of the path parameters and JSON members in which requests send them."""
    http, url = repo.http, repo.url
    (start,) = repo.seal({PATH: b"one\ntwo\n"}, branch="main")
    repo.branch(TOPIC, start)
    (head,) = repo.seal({PATH: b"one\nthree\n"}, branch=TOPIC)

    def post_json(path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        found: dict[str, Any] = ok(http.post(f"{url}{path}", json=body, params=query))
        return found

    post_json("/labels", {"name": "bug"})
    issue = post_json("/issues", {"title": "It stalls", "labels": ["bug"]})["number"]
    comment = post_json(f"/issues/{issue}/comments", {"body": "Since today."})["id"]
    proposal = post_json("/proposals", {"title": "Mend it", "head": TOPIC, "base": "main"})["number"]
    asked = {"path": PATH, "start": 2, "end": 2, "seal_id": head, "body": "Why?", "suggestion": "four"}
    thread = post_json(f"/proposals/{proposal}/threads", asked)["id"]
    review = post_json(f"/proposals/{proposal}/reviews", {"verdict": "comment", "body": "See there."})["id"]
    run = post_json("/runs", {"name": "test", "seal_id": head, "conclusion": "failure"})["id"]
    release = post_json("/releases", {"version": "v1", "seal_id": start})["version"]
    ok(http.post(f"{url}/releases/{release}/assets", params={"name": "a.bin"}, content=b"abc"))
    hook = post_json("/webhooks", {"url": "http://127.0.0.1:9/", "events": ["push"]})["id"]
    return {
        "n": [str(issue), str(proposal)],
        "number": [issue, proposal],
        "comment": [comment],
        "thread": [thread],
        "threads": [[thread]],
        "review": [review],
        "run": [run],
        "v": [release],
        "version": [release],
        "hook": [hook],
        "labels": [["bug"]],
        "reaction": ["heart"],
        "ref": [TOPIC],
        "head": [TOPIC, head],
        "seal_id": [start, head],
        "path": [PATH],
        "name": ["bug", "test", "a.bin", "v1"],
    }


def organisation(http: Any) -> Names:
    """Create an organisation of the caller. Returns its handle under `org`, the name of the path parameter in
    which requests send it."""
    handle = f"o{secrets.token_hex(6)}"
    return {"org": [ok(http.post("/api/v1/orgs", json={"handle": handle}))["handle"]]}


def join_names(*known: Names) -> Names:
    found: Names = {}
    for names in known:
        for name, values in names.items():
            found[name] = [*found.get(name, []), *(one for one in values if one not in found.get(name, []))]
    return found
