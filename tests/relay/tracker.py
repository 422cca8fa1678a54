"""A repository with issues, and people who are at work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from sqlalchemy import insert

from relay.base.clock import now_ms
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create, ok


@dataclass
class Tracker:
    relay: Relay
    who: Account
    http: httpx.Client
    repo: Repository
    account: Callable[..., Account]
    client: Callable[..., httpx.Client]

    @property
    def issues(self) -> str:
        return f"{self.repo.url}/issues"

    def open(self, http: httpx.Client | None = None, **body: Any) -> dict[str, Any]:
        made: dict[str, Any] = ok((http or self.http).post(self.issues, json={"title": "a title", **body}))
        return made

    def listed(self, http: httpx.Client | None = None, **query: Any) -> list[int]:
        return [one["number"] for one in ok((http or self.http).get(self.issues, params=query))["items"]]

    def label(self, *names: str) -> None:
        for name in names:
            ok(self.http.post(f"{self.repo.url}/labels", json={"name": name}))

    def member(self, role: str) -> tuple[Account, httpx.Client]:
        who = self.account()

        async def act() -> None:
            async with self.relay.node.db.write() as tx:
                await tx.run(
                    insert(tables["collaborator"]),
                    repo_id=self.repo.id,
                    account_id=who.id,
                    role=role,
                    created_at=now_ms(),
                )

        self.relay.run(act())
        return who, self.client(who)

    def publish(self) -> None:
        ok(self.http.patch(self.repo.url, json={"visibility": "public"}))


@pytest.fixture
def world(
    relay: Relay, account: Callable[..., Account], client: Callable[..., httpx.Client]
) -> Iterator[Tracker]:
    who = account()
    http = client(who)
    yield Tracker(relay, who, http, create(http, who, "tracked"), account, client)


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]
