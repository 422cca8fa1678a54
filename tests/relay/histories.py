"""Repositories and sealed histories for tests, made through the relay's own routes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx
import msgspec
from blake3 import blake3

from localstore.core.encoding import b64u, unb64u
from localstore.core.identity.keys import DeviceKey
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.storage.file_kind import kind_of
from tests.relay.conftest import Account

Files = Mapping[str, bytes | None]
"""A change of a tree: path → content, None removes the file."""


def ok(answer: httpx.Response) -> Any:
    """The JSON of a successful answer."""
    assert answer.is_success, (answer.status_code, answer.text)
    return answer.json()


@dataclass
class Repository:
    """A repository and its owner at work on it."""

    http: httpx.Client
    owner: Account
    body: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.body["id"])

    @property
    def url(self) -> str:
        return f"/api/v1/repos/{self.id}"

    def get(self, path: str, /, **query: Any) -> Any:
        return ok(self.http.get(self.url + path, params=query))

    def branch(self, name: str, start: str) -> None:
        ok(self.http.post(f"{self.url}/refs", json={"type": "branch", "name": name, "head": start}))

    def head(self, branch: str = "main") -> str | None:
        found: str | None = self.get(f"/refs/branch/{quote(branch)}")["head"]
        return found

    def put(self, content: bytes) -> None:
        """Upload the content of a file."""
        digest = blake3(content)
        address, streamed = f"{self.url}/payloads/{digest.hexdigest()}", {"blake3": digest.digest()}
        ok(self.http.put(address, content=content, extensions=streamed))

    def seal(
        self,
        *changes: Files,
        branch: str = "main",
        messages: Sequence[str] = (),
        parents: Sequence[str] = (),
        git: bool = False,
    ) -> list[str]:
        """Seal each change onto the branch; `parents` are further parents of every seal. `git`: as pushed
        from git, which names these in provenance alone. Returns the ids."""
        for content in {data for files in changes for data in files.values() if data is not None}:
            self.put(content)
        named = messages or [f"change {number}" for number in range(1, len(changes) + 1)]
        seals = [
            {"message": message, "changes": _delta(files), "parents": list(parents)}
            | ({"git_id": "12" * 20, "git_raw": "34" * 32} if git else {})
            for message, files in zip(named, changes, strict=True)
        ]
        return self.sign(branch, seals)

    def sign(self, branch: str, seals: list[dict[str, Any]]) -> list[str]:
        """Make these seals onto the branch, each as it is asked for, signed by the owner. Returns the ids."""
        asked = {
            "branch": branch,
            "device_key_id": self.owner.key.id,
            "expected_head": self.head(branch),
            "seals": seals,
        }
        prepared = ok(self.http.post(f"{self.url}/seals/prepare", json=asked))
        signatures = [b64u(self.owner.key.sign(unb64u(one["bytes"]))) for one in prepared["seals"]]
        done = {
            "prepare_id": prepared["prepare_id"],
            "device_key_id": self.owner.key.id,
            "signatures": signatures,
        }
        made = ok(self.http.post(f"{self.url}/seals/finalize", json=done))
        return [one["id"] for one in made["items"]]

    def push(self, key: DeviceKey, path: str = "x.txt", content: bytes = b"hello") -> dict[str, Any]:
        """The first live edit and seal of `main` by a device, as it does them. Returns the seal."""
        done = {"device_key_id": key.id, **self.prepare(key, path, content)}
        made: dict[str, Any] = ok(self.http.post(f"{self.url}/branches/main/seal/finalize", json=done))
        return made

    def edit(self, key: DeviceKey, path: str = "x.txt", content: bytes = b"hello") -> dict[str, Any]:
        """A batch of one update that makes a file on `main`, by a new replica."""
        live = f"{self.url}/branches/main/live"
        ok(self.http.put(f"{self.url}/payloads/{blake3(content).hexdigest()}", content=content))
        start = ok(self.http.post(f"{live}/bootstrap", json={"device_key_id": key.id}))
        made = LiveUpdate(
            n=1,
            settled=0,
            path=path,
            kind="create_text",
            gen=0,
            base=0,
            signature="",
            blake3=blake3(content).hexdigest(),
            size=len(content),
        )
        raw = signing_bytes(self.id, start["branch_id"], start["replica"], key.id, made)
        signed = msgspec.structs.replace(made, signature=b64u(key.sign(raw)))
        return {
            "device_key_id": key.id,
            "replica": start["replica"],
            "updates": [msgspec.to_builtins(signed)],
        }

    def prepare(self, key: DeviceKey, path: str = "x.txt", content: bytes = b"hello") -> dict[str, Any]:
        """The first live edit of `main`, and what names and signs its seal."""
        batch = self.edit(key, path, content)
        ok(self.http.post(f"{self.url}/branches/main/live/updates", json=batch))
        asked = {"device_key_id": key.id, "message": "first", "expected_head": None}
        prepared = ok(self.http.post(f"{self.url}/branches/main/seal/prepare", json=asked))
        return {
            "prepare_id": prepared["prepare_id"],
            "signature": b64u(key.sign(unb64u(prepared["bytes"]))),
        }


def create(http: httpx.Client, owner: Account, name: str, **asked: Any) -> Repository:
    return Repository(http, owner, ok(http.post("/api/v1/repos", json={"name": name, **asked})))


def own(account: Callable[..., Account], client: Callable[..., httpx.Client], **asked: Any) -> Repository:
    """A repository of a new account."""
    owner = account()
    return create(client(owner), owner, asked.pop("name", "thing"), **asked)


def compared(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """What a caller can tell two answers apart by: all but the time and the id of the request."""
    headers = {k: v for k, v in answer.headers.items() if k not in ("date", "x-request-id")}
    return answer.status_code, re.sub(rb'"server_time":\d+', b"", answer.content), headers


def _delta(files: Files) -> list[list[Any]]:
    return [
        [path, None, "", 0] if data is None else [path, kind_of(data), blake3(data).hexdigest(), len(data)]
        for path, data in sorted(files.items())
    ]
