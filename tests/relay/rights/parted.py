"""A fork of what a reader sees of a repository with private paths."""

from __future__ import annotations

from typing import Any

import httpx

from localstore.core import seal as seals
from localstore.core.encoding import unb64u
from localstore.core.tree.proof import Proven, proven
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, ok
from tests.relay.rights.hiding import Hidden


class Fork(Hidden):
    """What `Hidden` has, forked by somebody who may only read it."""

    def __init__(self, relay: Relay, suffix: str = "", more: bool = True) -> None:
        super().__init__(relay)
        self.origin = self.repo
        self.maker = relay.account(f"forks{suffix}")
        self.mine = relay.client(self.maker)
        asked = ok(self.mine.post(f"{self.origin.url}/forks", json={"name": "part"}))
        self.repo = Repository(self.mine, self.maker, asked)
        self.inherited = list(self.seals)
        if more:
            self.seals += self.repo.seal({"open/mine.txt": b"mine\n"})
            self.repo.branch("own", self.inherited[1])
            self.seals += self.repo.seal({"mixed/seen.txt": None, "open/b.bin": b"\0b"}, branch="own")
            sent = {"head": "own", "base": "main", "title": "Within the fork"}
            ok(self.mine.post(f"{self.repo.url}/proposals", json=sent))

    def tree(self, seal: str, http: httpx.Client | None = None) -> Any:
        return ok((http or self.mine).get(f"{self.repo.url}/tree/{seal}?recursive=1"))

    def proof(self, seal: str, http: httpx.Client | None = None) -> Proven:
        """What the proof of a seal shows, verified against the digest that its maker signed."""
        client = http or self.mine
        one = ok(client.get(f"{self.repo.url}/seals/{seal}"))
        raw = unb64u(one["payload"])
        seals.verify(raw, unb64u(one["signature"]["value"]), unb64u(one["key"]["public_key"]))
        assert seals.seal_id(raw) == seal == one["id"]
        root = bytes.fromhex(seals.decode(raw).content_digest)
        return proven(client.get(f"{self.repo.url}/tree/{seal}/proof").content, root)
