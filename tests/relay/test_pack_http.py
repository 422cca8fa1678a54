"""Packs and payloads over HTTP: what is refused leaves nothing behind, what is stored stays scoped."""

from __future__ import annotations

import asyncio
import os
import random

import httpx
import pytest
from sqlalchemy import func, select

from localstore.core.encoding import digest
from localstore.core.limits import BLOB_FILE, HAVE_DIGESTS, PACK_BYTES
from localstore.core.pack import Pack, PackReader, write_packs
from relay.db import schema
from tests.relay.node_fixture import Relay, make_account, make_repo, running


@pytest.fixture
async def relay(tmp_path, monkeypatch):
    async with running(tmp_path, monkeypatch) as found:
        yield found


async def two_repos(relay: Relay, class_: str = "private_plaintext") -> tuple[str, str, str, str]:
    """Account and repository, twice."""
    db = relay.node.db
    ann, bob = await make_account(db, "ann"), await make_account(db, "bob")
    return ann, await make_repo(db, ann, class_), bob, await make_repo(db, bob, class_)


def pack_of(*datas: bytes, text: bool = False) -> Pack:
    (pack,) = write_packs((digest(data), data, text) for data in datas)
    return pack


def unpack(raw: bytes) -> dict[bytes, bytes]:
    reader = PackReader()
    found = {name: bytes(data) for frame in reader.feed(raw) for name, data in frame.objects()}
    reader.close()
    return found


async def rows(relay: Relay) -> tuple[int, ...]:
    """How many frames, objects and scopes there are."""
    async with relay.node.db.read() as tx:
        return tuple(
            [
                await tx.value(select(func.count()).select_from(table))
                for table in (schema.frame, schema.object_, schema.repo_object)
            ]
        )


async def test_a_pack_goes_in_and_comes_out(relay):
    ann, mine, _, _ = await two_repos(relay)
    datas = [os.urandom(70_000) for _ in range(30)] + [b"text %d" % n for n in range(50)] + [b""]
    async with relay.client(ann) as client:
        sent = b"".join(pack_of(*datas, text=True).parts())
        answer = await client.post(f"/api/v1/repos/{mine}/packs", content=sent)
        assert answer.status_code == 201, answer.text
        assert answer.json()["objects"] == len(datas)
        asked = b"".join(map(digest, [*datas, b"absent"]))
        have = await client.post(f"/api/v1/repos/{mine}/have", content=asked)
        assert have.json() == {"missing": [len(datas)]}
        got = await client.post(f"/api/v1/repos/{mine}/packs/fetch", content=asked[:-32])
        assert got.status_code == 200
        assert got.headers["svc-remaining"] == "0"
        assert int(got.headers["content-length"]) == len(got.content)
        assert unpack(got.content) == {digest(data): data for data in datas}


async def test_another_repository_gets_nothing_by_digest(relay):
    ann, mine, bob, theirs = await two_repos(relay)
    secret, shared = b"a secret of ann", b"known to both"
    async with relay.client(ann) as client:
        pack = b"".join(pack_of(secret, shared, text=True).parts())
        assert (await client.post(f"/api/v1/repos/{mine}/packs", content=pack)).status_code == 201
    async with relay.client(bob) as client:
        put = await client.put(f"/api/v1/repos/{theirs}/payloads/{digest(shared).hex()}", content=shared)
        assert put.status_code == 201
        both = digest(secret) + digest(shared)
        assert (await client.post(f"/api/v1/repos/{theirs}/have", content=both)).json() == {"missing": [0]}
        assert (await client.post(f"/api/v1/repos/{theirs}/packs/fetch", content=both)).status_code == 422
        hidden = await client.get(f"/api/v1/repos/{theirs}/payloads/{digest(secret).hex()}")
        absent = await client.get(f"/api/v1/repos/{theirs}/payloads/{digest(b'none').hex()}")
        assert (hidden.status_code, hidden.content) == (404, absent.content)
        got = await client.post(f"/api/v1/repos/{theirs}/packs/fetch", content=digest(shared))
        assert unpack(got.content) == {digest(shared): shared}
        assert secret not in got.content
        for path in ("have", "packs", "packs/fetch"):
            foreign = await client.post(f"/api/v1/repos/{mine}/{path}", content=digest(secret))
            assert foreign.status_code == 404


async def test_a_changed_pack_is_refused_and_leaves_nothing(relay):
    ann, mine, _, _ = await two_repos(relay)
    whole = b"".join(pack_of(os.urandom(900), b"compressible " * 900, text=True).parts())
    chance = random.Random(7)
    before = await rows(relay)
    async with relay.client(ann) as client:
        for _ in range(60):
            raw = bytearray(whole)
            match chance.randrange(4):
                case 0:
                    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
                case 1:
                    del raw[chance.randrange(len(raw)) :]
                case 2:
                    raw += os.urandom(chance.randint(1, 40))
                case 3:
                    start = chance.randrange(len(raw))
                    del raw[start : start + chance.randint(1, 9)]
            answer = await client.post(f"/api/v1/repos/{mine}/packs", content=bytes(raw))
            assert 400 <= answer.status_code < 500, answer.text
        assert await rows(relay) == before
        assert (await client.post(f"/api/v1/repos/{mine}/packs", content=whole)).status_code == 201


async def test_bodies_over_their_cap_are_refused_while_they_arrive(relay):
    ann, mine, _, _ = await two_repos(relay)

    async def endless(size: int):
        for _ in range(size // 65_536 + 2):
            yield bytes(65_536)

    async with relay.client(ann) as client:
        name = digest(b"").hex()
        large = await client.put(f"/api/v1/repos/{mine}/payloads/{name}", content=endless(BLOB_FILE))
        assert large.status_code == 413
        many = await client.post(f"/api/v1/repos/{mine}/have", content=bytes(32 * HAVE_DIGESTS + 32))
        assert many.status_code == 413
        declared = await client.post(
            f"/api/v1/repos/{mine}/packs", headers={"content-length": str(PACK_BYTES + 1)}, content=b""
        )
        assert declared.status_code == 413
        unsized = await client.post(f"/api/v1/repos/{mine}/packs", content=endless(1))
        assert unsized.status_code == 400
        for body in (b"", b"x" * 33):
            assert (await client.post(f"/api/v1/repos/{mine}/have", content=body)).status_code == 422
    assert await rows(relay) == (0, 0, 0)


async def test_a_client_that_leaves_half_way_leaves_nothing(relay):
    ann, mine, _, _ = await two_repos(relay)
    whole = b"".join(pack_of(*[os.urandom(100_000) for _ in range(40)]).parts())
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.node.config.port)
    head = f"POST /api/v1/repos/{mine}/packs HTTP/1.1\r\nHost: x\r\nX-Account: {ann}\r\n"
    writer.write(f"{head}Content-Length: {len(whole)}\r\n\r\n".encode() + whole[: len(whole) * 2 // 3])
    await writer.drain()
    writer.transport.abort()
    async with relay.client(ann) as client:
        assert (await client.post(f"/api/v1/repos/{mine}/have", content=bytes(32))).status_code == 200
        assert await rows(relay) == (0, 0, 0)
        assert (await client.post(f"/api/v1/repos/{mine}/packs", content=whole)).status_code == 201


async def test_payloads(relay):
    ann, mine, _, _ = await two_repos(relay)
    data = os.urandom(10_000)
    url = f"/api/v1/repos/{mine}/payloads/{digest(data).hex()}"
    async with relay.client(ann) as client:
        assert (await client.put(url, content=b"other")).status_code == 422
        assert (await client.get(url)).status_code == 404
        first, second = await client.put(url, content=data), await client.put(url, content=data)
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json() == {"blake3": digest(data).hex(), "size": len(data)}
        got = await client.get(url)
        assert got.content == data
        part = await client.get(url, headers={"range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, data[10:20])
        assert (await client.get(url, headers={"if-none-match": got.headers["etag"]})).status_code == 304
        assert (await client.get(url[:-1])).status_code == 422


async def test_encrypted_repositories_have_no_payloads(relay):
    ann, mine, _, _ = await two_repos(relay, "private_e2ee")
    async with relay.client(ann) as client:
        for answer in (
            await client.put(f"/api/v1/repos/{mine}/payloads/{digest(b'x').hex()}", content=b"x"),
            await client.get(f"/api/v1/repos/{mine}/payloads/{digest(b'x').hex()}"),
            await client.post(f"/api/v1/repos/{mine}/have", content=bytes(32)),
        ):
            assert answer.status_code == 404


async def test_public_repositories_are_fetched_without_a_session_but_not_written(relay):
    ann, mine, bob, _ = await two_repos(relay, "published_public")
    pack = b"".join(pack_of(b"open").parts())
    async with relay.client(ann) as client:
        await client.post(f"/api/v1/repos/{mine}/packs", content=pack)
    async with relay.client() as client:
        got = await client.post(f"/api/v1/repos/{mine}/packs/fetch", content=digest(b"open"))
        assert unpack(got.content) == {digest(b"open"): b"open"}
        assert (await client.post(f"/api/v1/repos/{mine}/packs", content=pack)).status_code == 401
    async with relay.client(bob) as client:
        assert (await client.post(f"/api/v1/repos/{mine}/packs", content=pack)).status_code == 403


async def test_a_fetch_that_does_not_fit_says_how_much_is_left(relay, monkeypatch):
    from localstore.core import limits

    ann, mine, _, _ = await two_repos(relay)
    datas = [os.urandom(30_000) for _ in range(10)]
    async with relay.client(ann) as client:
        await client.post(f"/api/v1/repos/{mine}/packs", content=b"".join(pack_of(*datas).parts()))
        monkeypatch.setattr(limits, "PACK_BYTES", 100_000)
        left = [digest(data) for data in datas]
        found: dict[bytes, bytes] = {}
        while left:
            got: httpx.Response = await client.post(
                f"/api/v1/repos/{mine}/packs/fetch", content=b"".join(left)
            )
            assert len(got.content) <= 100_000
            found |= unpack(got.content)
            left = [one for one in left if one not in found]
            assert got.headers["svc-remaining"] == str(len(left))
    assert found == {digest(data): data for data in datas}
