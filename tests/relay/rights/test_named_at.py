"""Bytes by digest for whom paths are hidden from: what a request costs, and that the policy of now counts."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest
from blake3 import blake3

from localstore.core.encoding import b64u, unb64u
from localstore.core.storage import chunks
from relay.domain.history import proof
from relay.objects.store import ObjectStore
from tests.relay.chunked_files import Large, send
from tests.relay.conftest import Relay
from tests.relay.histories import Repository, create, ok

FOLDERS = 40


class Asking:
    """Somebody from whom `hidden/` is hidden, and the number of objects that the relay reads for them."""

    def __init__(self, http: httpx.Client, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        self._http, self._url, self.read = http, repo.url, 0
        read = ObjectStore.read_located

        def serves() -> bool:
            """Whether this is the task of a connection, and no job that works on what was sealed."""
            task = asyncio.current_task()
            return task is not None and getattr(task.get_coro(), "__name__", "") == "connection_task"

        async def counted(store: ObjectStore, located: Sequence[Any], *rest: Any, **more: Any) -> Any:
            if serves():
                self.read += len(located)
            return await read(store, located, *rest, **more)

        monkeypatch.setattr(ObjectStore, "read_located", counted)

    def payload(self, data: bytes, at: str) -> tuple[int, int]:
        """Status, and objects read."""
        return self._count(self._http.get(f"{self._url}/payloads/{blake3(data).hexdigest()}?at={at}"))

    def manifest(self, file: Large, at: str) -> tuple[int, int]:
        return self._count(self._http.get(f"{self._url}/payloads/{file.digest}/manifest?at={at}"))

    def pack(self, parts: Sequence[bytes], at: str) -> tuple[int, int]:
        body = b"".join(blake3(one).digest() for one in parts)
        signed = {"blake3": blake3(body).digest()}
        return self._count(
            self._http.post(f"{self._url}/packs/fetch?at={at}", content=body, extensions=signed)
        )

    def _count(self, answer: httpx.Response) -> tuple[int, int]:
        read, self.read = self.read, 0
        return answer.status_code, read


def hide(repo: Repository, path: str, kind: str = "private") -> None:
    ok(repo.http.put(f"{repo.url}/paths", json={"path": path, "visibility": kind}))


@pytest.fixture
def repo(relay: Relay) -> Iterator[Repository]:
    owner = relay.account(f"w{secrets.token_hex(5)}")
    with relay.client(owner) as http:
        yield create(http, owner, "wide", kind="dataset", visibility="public")


@pytest.fixture
def asking(relay: Relay, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    with relay.client(relay.account(None, "guest")) as http:
        yield Asking(http, repo, monkeypatch)


def test_the_tree_is_walked_once(repo: Repository, asking: Asking) -> None:
    files = {f"d{number}/a.txt": b"%d\n" % number for number in range(FOLDERS)}
    (seal,) = repo.seal({**files, "hidden/a.txt": b"secret\n"})
    hide(repo, "hidden")
    status, read = asking.payload(b"0\n", seal)
    assert status == 200
    assert read > FOLDERS
    for number in range(1, 5):
        status, read = asking.payload(b"%d\n" % number, seal)
        assert status == 200
        assert read < 5
    assert asking.payload(b"secret\n", seal) == (404, 0)
    assert asking.payload(b"never\n", seal) == (404, 0)


def test_a_very_large_tree_is_walked_each_time(
    repo: Repository, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proof, "NAMED_MOST", 3)
    (seal,) = repo.seal(
        {f"{number}.txt": b"%d\n" % number for number in range(4)} | {"hidden/a": b"secret\n"}
    )
    hide(repo, "hidden")
    for number in range(4):
        assert asking.payload(b"%d\n" % number, seal)[0] == 200
    assert asking.payload(b"secret\n", seal)[0] == 404


def test_what_becomes_hidden_or_shown_is_so_for_the_next_request(repo: Repository, asking: Asking) -> None:
    first, second = repo.seal({"a/x.txt": b"x\n", "b/y.txt": b"y\n"}, {"c/z.txt": b"z\n"})
    hide(repo, "a")
    assert [asking.payload(one, first)[0] for one in (b"x\n", b"y\n", b"z\n")] == [404, 200, 404]
    assert [asking.payload(one, second)[0] for one in (b"x\n", b"y\n", b"z\n")] == [404, 200, 200]
    hide(repo, "b")
    assert [asking.payload(one, first)[0] for one in (b"x\n", b"y\n")] == [404, 404]
    hide(repo, "a", "public")
    assert [asking.payload(one, first)[0] for one in (b"x\n", b"y\n")] == [200, 404]


def test_chunks_are_found_by_the_manifest_that_was_asked_for(
    repo: Repository, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = [Large(bytes([number]) * 17_000_000) for number in range(5)]
    secret = Large(b"\x77" * 17_000_000)
    for one in (*shown, secret):
        ok(send(repo, one))
    named = {f"large/{number}.bin": one for number, one in enumerate(shown)} | {"hidden/s.bin": secret}
    seal = sealed(repo, named)
    hide(repo, "hidden")
    assert asking.manifest(shown[0], seal)[0] == 200
    for one in reversed(shown):
        status, read = asking.manifest(one, seal)
        assert (status, read <= 2) == (200, True), "not the manifests of all; the collector may read one"
        status, read = asking.pack(one.chunks[:1], seal)
        assert (status, read <= 2) == (200, True), "its own manifest; the pack mostly copies frames"
    assert asking.pack([chunks.encode(shown[2].manifest)], seal)[0] == 200
    assert asking.pack(secret.chunks[:1], seal) == (404, len(shown))
    assert asking.pack([shown[0].chunks[0], secret.chunks[0]], seal)[0] == 404
    assert asking.manifest(secret, seal)[0] == 404


def sealed(repo: Repository, files: dict[str, Large]) -> str:
    """Seal these large files. Returns the id."""
    body = {
        "branch": "main",
        "device_key_id": repo.owner.key.id,
        "expected_head": repo.head(),
        "seals": [
            {
                "message": "large",
                "changes": [
                    [path, "chunked", file.digest, len(file.data)] for path, file in sorted(files.items())
                ],
                "parents": [],
            }
        ],
    }
    made = ok(repo.http.post(f"{repo.url}/seals/prepare", json=body))
    done = {
        "prepare_id": made["prepare_id"],
        "device_key_id": repo.owner.key.id,
        "signatures": [b64u(repo.owner.key.sign(unb64u(one["bytes"]))) for one in made["seals"]],
    }
    return str(ok(repo.http.post(f"{repo.url}/seals/finalize", json=done))["items"][0]["id"])
