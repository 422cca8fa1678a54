"""Somebody with a repository and one request of theirs, for the recipes of `tests.relay.nouns`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import httpx

from tests.relay.auth.people import Browser
from tests.relay.conftest import Account, Relay
from tests.relay.histories import Repository, create

REPO = "/api/v1/repos/{id}"
Named = tuple[str, str]


@dataclass
class World:
    """Somebody with a repository, at two doors: signed requests and a browser."""

    relay: Relay
    who: Account
    http: httpx.Client
    handle: str

    @cached_property
    def browser(self) -> Browser:
        """Signed up when first asked for: a password costs 150 ms of CPU, and few requests need a browser."""
        return Browser(self.relay.url).sign_up(self.handle)

    def close(self) -> None:
        if "browser" in vars(self):
            self.browser.close()

    @property
    def repo(self) -> Repository:
        """A new repository, whose branch is empty."""
        return create(self.http, self.who, f"r{secrets.token_hex(6)}")


@dataclass
class Try:
    """One request. `http` None: that of the world, signed."""

    path: str
    json: Any = None
    data: Any = None
    http: httpx.Client | None = None
    content: bytes | None = None

    def send(self, world: World, method: str, headers: dict[str, str] | None = None) -> httpx.Response:
        http = self.http or world.http
        if self.content is not None:
            return http.request(method, self.path, content=self.content, headers=headers)
        return http.request(method, self.path, json=self.json, data=self.data, headers=headers)


def name() -> str:
    return f"n{secrets.token_hex(6)}"
