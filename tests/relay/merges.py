"""Proposals and their merges, for tests: what a client does, over the relay's routes."""

from __future__ import annotations

from typing import Any

import httpx
from sqlalchemy import insert

from localstore.core import seal as seals
from localstore.core.encoding import b64u, unb64u
from relay.base.clock import now_ms
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Files, Repository, ok

PAGE = b"".join(b"line %d\n" % n for n in range(1, 10))


def put(line: int, text: bytes, page: bytes = PAGE) -> bytes:
    """The page with another line."""
    return page.replace(b"line %d\n" % line, text + b"\n")


def propose(repo: Repository, head: str = "topic", base: str = "main", **more: Any) -> int:
    asked = {"head": head, "base": base, "title": f"Bring {head}", **more}
    return int(ok(repo.http.post(f"{repo.url}/proposals", json=asked))["number"])


def apart(repo: Repository, ours: Files, *theirs: Files, start: Files | None = None) -> int:
    """Main and `topic` part at `start`; main then has `ours`, topic `theirs`. The proposal's number."""
    (first,) = repo.seal(start or {"page": PAGE})
    repo.branch("topic", first)
    repo.seal(*theirs, branch="topic", messages=[f"topic {n}" for n in range(1, len(theirs) + 1)])
    if ours:
        repo.seal(ours, messages=["ours"])
    return propose(repo)


def prepare(repo: Repository, n: int, strategy: str | None = None, **more: Any) -> httpx.Response:
    body = {"device_key_id": repo.owner.key.id, "strategy": strategy, **more}
    return repo.http.post(f"{repo.url}/proposals/{n}/merge-prepare", json=body)


def signed(repo: Repository, prepared: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The body that finalizes."""
    key = repo.owner.key
    return {
        "prepare_id": prepared["prepare_id"],
        "device_key_id": key.id,
        "signatures": [b64u(key.sign(unb64u(one["bytes"]))) for one in prepared["seals"]],
        **more,
    }


def finalize(repo: Repository, n: int, prepared: dict[str, Any], **more: Any) -> httpx.Response:
    return repo.http.post(f"{repo.url}/proposals/{n}/merge-finalize", json=signed(repo, prepared, **more))


def merge(repo: Repository, n: int, strategy: str | None = None, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(finalize(repo, n, ok(prepare(repo, n, strategy)), **more))
    return made


def grant(relay: Relay, repo: Repository, who: Account, role: str = "write") -> None:
    async def act() -> None:
        async with relay.node.db.write() as tx:
            row = {"repo_id": repo.id, "account_id": who.id, "role": role, "created_at": now_ms()}
            await tx.run(insert(tables["collaborator"]), **row)

    relay.run(act())


def payload(repo: Repository, seal: str) -> seals.SealPayload:
    return seals.decode(unb64u(repo.get(f"/seals/{seal}")["payload"]))


def files(repo: Repository, at: str = "main") -> dict[str, bytes]:
    """What a seal or the head of a branch holds."""
    seal = repo.head(at) if len(at) < 64 else at
    listed = [one["path"] for one in repo.get(f"/tree/{seal}")["entries"] if one["kind"] != "dir"]
    return {path: repo.http.get(f"{repo.url}/raw/{seal}/{path}").content for path in listed}


def messages(repo: Repository, branch: str = "main") -> list[str]:
    return [one["message"] for one in repo.get("/commits", ref=branch)["items"]]
