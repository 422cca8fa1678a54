"""A repository with a branch that can be proposed, for tests of proposals and reviews."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import insert

from relay.base.clock import now_ms
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@dataclass
class Proposing:
    relay: Relay
    who: Account
    http: httpx.Client
    repo: Repository
    account: Callable[..., Account]
    client: Callable[..., httpx.Client]
    first: str

    @property
    def url(self) -> str:
        return f"{self.repo.url}/proposals"

    def branch(self, name: str, *contents: bytes, start: str = "main") -> list[str]:
        """A branch with a seal for each content of `a.txt`."""
        self.repo.branch(name, start)
        return self.repo.seal(*({"a.txt": one} for one in contents), branch=name) if contents else []

    def propose(self, head: str = "topic", http: httpx.Client | None = None, **body: Any) -> dict[str, Any]:
        asked = {"head": head, "base": "main", "title": "a title", **body}
        made: dict[str, Any] = ok((http or self.http).post(self.url, json=asked))
        return made

    def get(self, number: int = 1, http: httpx.Client | None = None) -> dict[str, Any]:
        found: dict[str, Any] = ok((http or self.http).get(f"{self.url}/{number}"))
        return found

    def patch(self, number: int = 1, http: httpx.Client | None = None, **body: Any) -> httpx.Response:
        return (http or self.http).patch(f"{self.url}/{number}", json=body)

    def listed(self, http: httpx.Client | None = None, **query: Any) -> list[int]:
        return [one["number"] for one in ok((http or self.http).get(self.url, params=query))["items"]]

    def versions(self, number: int = 1) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = ok(self.http.get(f"{self.url}/{number}/versions"))["items"]
        return found

    def timeline(self, number: int = 1) -> list[str]:
        items = ok(self.http.get(f"{self.repo.url}/issues/{number}/timeline"))["items"]
        return [one["kind"] for one in items]

    def member(self, role: str) -> tuple[Account, httpx.Client]:
        who = self.account()
        values = {"account_id": who.id, "role": role, "created_at": now_ms()}
        self.run(insert(tables["collaborator"]), repo_id=self.repo.id, **values)
        return who, self.client(who)

    def run(self, statement: Any, **values: Any) -> None:
        async def act() -> None:
            async with self.relay.node.db.write() as tx:
                await tx.run(statement, **values)

        self.relay.run(act())

    def publish(self) -> None:
        ok(self.http.patch(self.repo.url, json={"visibility": "public"}))


def lines(*words: str) -> bytes:
    return "".join(f"{word}\n" for word in words).encode()


LONG = [f"line {n}" for n in range(40)]


def proposing(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Proposing:
    """`topic` has one seal more than `main`."""
    who = account()
    http = client(who)
    repo = create(http, who, "proposed")
    (first,) = repo.seal({"a.txt": lines(*LONG)})
    made = Proposing(relay, who, http, repo, account, client, first)
    made.branch("topic", lines(*LONG, "more"))
    return made


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]
