"""Packs and payloads over HTTP: what is refused leaves nothing behind, what is stored stays scoped."""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest
import zstandard
from sqlalchemy import func, select

from localstore.core.encoding import digest
from localstore.core.model.limits import BLOB_FILE, FRAME_SHARED_MAX, HAVE_DIGESTS, PACK_BYTES
from localstore.core.storage.frame import ZSTD
from localstore.core.storage.pack import Frame, FrameRow, ObjectRow, Pack, PackReader, write_packs
from relay.db.schema import tables
from tests.relay.conftest import Account, Relay
from tests.relay.histories import create
from tests.relay.node_fixture import make_repo


def two_repos(relay: Relay, class_: str = "private_plaintext") -> tuple[Account, str, Account, str]:
    """An account and its repository, twice."""
    ann, bob = (relay.account(f"u{secrets.token_hex(6)}") for _ in range(2))
    db = relay.node.db
    mine, theirs = (relay.run(make_repo(db, owner.id, class_)) for owner in (ann, bob))
    return ann, mine, bob, theirs


def signed(pack: bytes) -> dict[str, Any]:
    """A pack as a request body; its signature covers the table of contents, if it has one."""
    length = int.from_bytes(pack[8:12], "big")
    return {"content": pack, "extensions": {"blake3": digest(pack[12 : 12 + length])}}


def pack_of(*datas: bytes, text: bool = False) -> Pack:
    (pack,) = write_packs((digest(data), data, text) for data in datas)
    return pack


def unpack(raw: bytes) -> dict[bytes, bytes]:
    reader = PackReader()
    found = {name: bytes(data) for frame in reader.feed(raw) for name, data in frame.objects()}
    reader.close()
    return found


def rows(relay: Relay) -> list[int]:
    """How many frames, objects and scopes there are."""

    async def count() -> list[int]:
        counted = [tables[name] for name in ("frame", "object", "repo_object")]
        async with relay.node.db.read() as tx:
            return [await tx.value(select(func.count()).select_from(table)) for table in counted]

    return relay.run(count())


def written(relay: Relay) -> int:
    """Bytes of packs, wherever they lie, as far as the rows speak of them."""

    async def count() -> int:
        async with relay.node.db.read() as tx:
            return int(await tx.value(select(func.coalesce(func.sum(tables["pack"].c.size), 0))))

    return relay.run(count())


@pytest.mark.parametrize("way", ["payload", "pack"])
def test_an_upload_is_the_same_work_whoever_else_has_the_bytes(relay, way):
    """Bytes that another repository holds are written and synced like any others: a faster answer would tell
    that somebody has them. What one's own repository holds is known to it, and not written again."""
    ann, mine, bob, theirs = two_repos(relay)
    data = secrets.token_bytes(50_000)
    fresh = secrets.token_bytes(50_000)

    def upload(who: Account, repo: str, content: bytes) -> int:
        before = written(relay)
        with relay.client(who) as client:
            if way == "payload":
                url = f"/api/v1/repos/{repo}/payloads/{digest(content).hex()}"
                answer = client.put(url, content=content, extensions={"blake3": digest(content)})
            else:
                body = signed(b"".join(pack_of(content).parts()))
                answer = client.post(f"/api/v1/repos/{repo}/packs", **body)
            assert answer.is_success, answer.text
        return written(relay) - before

    assert upload(ann, mine, data) >= len(data)
    same, new = upload(bob, theirs, data), upload(bob, theirs, fresh)
    assert same == new >= len(data)
    assert upload(bob, theirs, data) == 0


def test_a_pack_goes_in_and_comes_out(relay):
    ann, mine, _, _ = two_repos(relay)
    datas = [os.urandom(70_000) for _ in range(30)] + [b"text %d" % n for n in range(50)] + [b""]
    with relay.client(ann) as client:
        sent = b"".join(pack_of(*datas, text=True).parts())
        answer = client.post(f"/api/v1/repos/{mine}/packs", **signed(sent))
        assert answer.status_code == 201, answer.text
        assert answer.json()["objects"] == len(datas)
        asked = b"".join(map(digest, [*datas, b"absent"]))
        have = client.post(f"/api/v1/repos/{mine}/have", content=asked)
        assert have.json() == {"missing": [len(datas)]}
        got = client.post(f"/api/v1/repos/{mine}/packs/fetch", content=asked[:-32])
        assert got.status_code == 200
        assert got.headers["svc-remaining"] == "0"
        assert int(got.headers["content-length"]) == len(got.content)
        assert unpack(got.content) == {digest(data): data for data in datas}


def test_a_large_pack_becomes_reachable_in_several_transactions(relay, monkeypatch):
    """So that nobody who writes meanwhile waits for all of it."""
    monkeypatch.setattr("relay.domain.storage.pack.OBJECTS_AT_ONCE", 3)
    ann, mine, _, _ = two_repos(relay)
    old = [os.urandom(70_000) for _ in range(8)]
    new = [os.urandom(70_000) for _ in range(8)] + [b"text %d" % n for n in range(5)]
    asked: list[int] = []
    admit = relay.node.objects.admit

    async def counted(tx, placed, repo_id, digests, directories=False):
        asked.append(len(digests))
        await admit(tx, placed, repo_id, digests, directories)

    monkeypatch.setattr(relay.node.objects, "admit", counted)
    with relay.client(ann) as client:
        for datas in (old, [*old, *new], [*old, *new]):
            asked.clear()
            body = signed(b"".join(pack_of(*datas, text=True).parts()))
            answer = client.post(f"/api/v1/repos/{mine}/packs", **body)
            assert answer.status_code == 201, answer.text
            assert sum(asked) == len(datas)
            assert len(asked) >= len(datas) // 7  # the texts share a frame
            names = b"".join(map(digest, datas))
            got = client.post(f"/api/v1/repos/{mine}/packs/fetch", content=names)
            assert unpack(got.content) == {digest(data): data for data in datas}
        assert max(asked) <= 3  # nothing of the last one is new


def test_another_repository_gets_nothing_by_digest(relay):
    ann, mine, bob, theirs = two_repos(relay)
    secret, shared = b"a secret of ann", b"known to both"
    with relay.client(ann) as client:
        pack = b"".join(pack_of(secret, shared, text=True).parts())
        assert (client.post(f"/api/v1/repos/{mine}/packs", **signed(pack))).status_code == 201
    with relay.client(bob) as client:
        put = client.put(f"/api/v1/repos/{theirs}/payloads/{digest(shared).hex()}", content=shared)
        assert put.status_code == 201
        both = digest(secret) + digest(shared)
        assert (client.post(f"/api/v1/repos/{theirs}/have", content=both)).json() == {"missing": [0]}
        assert (client.post(f"/api/v1/repos/{theirs}/packs/fetch", content=both)).status_code == 422
        hidden = client.get(f"/api/v1/repos/{theirs}/payloads/{digest(secret).hex()}")
        absent = client.get(f"/api/v1/repos/{theirs}/payloads/{digest(b'none').hex()}")
        assert (hidden.status_code, hidden.content) == (404, absent.content)
        got = client.post(f"/api/v1/repos/{theirs}/packs/fetch", content=digest(shared))
        assert unpack(got.content) == {digest(shared): shared}
        assert secret not in got.content
        for path in ("have", "packs", "packs/fetch"):
            foreign = client.post(f"/api/v1/repos/{mine}/{path}", content=digest(secret))
            assert foreign.status_code == 404


def test_a_changed_pack_is_refused_and_leaves_nothing(relay):
    ann, mine, _, _ = two_repos(relay)
    whole = b"".join(pack_of(os.urandom(900), b"compressible " * 900, text=True).parts())
    chance = random.Random(7)
    before = rows(relay)
    with relay.client(ann) as client:
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
            answer = client.post(f"/api/v1/repos/{mine}/packs", **signed(bytes(raw)))
            assert 400 <= answer.status_code < 500, answer.text
        assert rows(relay) == before
        assert (client.post(f"/api/v1/repos/{mine}/packs", **signed(whole))).status_code == 201


def test_bodies_over_their_cap_are_refused_while_they_arrive(relay):
    ann, mine, _, _ = two_repos(relay)

    before = rows(relay)

    def endless(size: int):
        for _ in range(size // 65_536 + 2):
            yield bytes(65_536)

    with relay.client(ann) as client:
        name = digest(b"").hex()
        large = client.put(f"/api/v1/repos/{mine}/payloads/{name}", content=endless(BLOB_FILE))
        assert large.status_code == 413
        many = client.post(f"/api/v1/repos/{mine}/have", content=bytes(32 * HAVE_DIGESTS + 32))
        assert many.status_code == 413
        declared = client.post(f"/api/v1/repos/{mine}/packs", **signed(bytes(PACK_BYTES + 1)))
        assert declared.status_code == 413
        unsized = client.post(f"/api/v1/repos/{mine}/packs", content=endless(1))
        assert unsized.status_code == 400
        for body in (b"", b"x" * 33):
            assert (client.post(f"/api/v1/repos/{mine}/have", content=body)).status_code == 422
    assert rows(relay) == before


def test_a_client_that_leaves_half_way_leaves_nothing(relay):
    ann, mine, _, _ = two_repos(relay)
    whole = b"".join(pack_of(*[os.urandom(100_000) for _ in range(40)]).parts())
    before = rows(relay)

    def half() -> Iterator[bytes]:
        yield whole[: len(whole) * 2 // 3]
        raise ConnectionAbortedError

    with relay.client(ann) as client:
        request = client.build_request("POST", f"/api/v1/repos/{mine}/packs", **signed(whole))
        (headers,) = [sent.headers for sent in [next(client.auth.auth_flow(request))]]
        with httpx.Client(base_url=relay.url) as bare, pytest.raises(ConnectionAbortedError):
            bare.post(f"/api/v1/repos/{mine}/packs", content=half(), headers=headers)
        assert client.post(f"/api/v1/repos/{mine}/have", content=bytes(32)).status_code == 200
        assert rows(relay) == before
        assert client.post(f"/api/v1/repos/{mine}/packs", **signed(whole)).status_code == 201


def test_payloads(relay):
    ann, mine, _, _ = two_repos(relay)
    data = os.urandom(10_000)
    url = f"/api/v1/repos/{mine}/payloads/{digest(data).hex()}"
    with relay.client(ann) as client:
        assert (client.put(url, content=b"other")).status_code == 422
        assert (client.get(url)).status_code == 404
        first, second = client.put(url, content=data), client.put(url, content=data)
        assert (first.status_code, second.status_code) == (201, 200)
        assert first.json() == {"blake3": digest(data).hex(), "size": len(data)}
        got = client.get(url)
        assert got.content == data
        part = client.get(url, headers={"range": "bytes=10-19"})
        assert (part.status_code, part.content) == (206, data[10:20])
        assert (client.get(url, headers={"if-none-match": got.headers["etag"]})).status_code == 304
        assert (client.get(url[:-1])).status_code == 422


def test_encrypted_repositories_have_no_payloads(relay):
    ann, mine, _, _ = two_repos(relay, "private_e2ee")
    with relay.client(ann) as client:
        for answer in (
            client.put(f"/api/v1/repos/{mine}/payloads/{digest(b'x').hex()}", content=b"x"),
            client.get(f"/api/v1/repos/{mine}/payloads/{digest(b'x').hex()}"),
            client.post(f"/api/v1/repos/{mine}/have", content=bytes(32)),
        ):
            assert answer.status_code == 404


def test_public_repositories_are_fetched_without_a_session_but_not_written(relay):
    ann, mine, bob, _ = two_repos(relay, "published_public")
    pack = b"".join(pack_of(b"open").parts())
    with relay.client(ann) as client:
        client.post(f"/api/v1/repos/{mine}/packs", **signed(pack))
    with relay.client() as client:
        got = client.post(f"/api/v1/repos/{mine}/packs/fetch", content=digest(b"open"))
        assert unpack(got.content) == {digest(b"open"): b"open"}
        assert (client.post(f"/api/v1/repos/{mine}/packs", **signed(pack))).status_code == 401
    with relay.client(bob) as client:
        assert (client.post(f"/api/v1/repos/{mine}/packs", **signed(pack))).status_code == 403


def test_a_fetch_that_does_not_fit_says_how_much_is_left(relay, monkeypatch):
    from localstore.core.model import limits

    ann, mine, _, _ = two_repos(relay)
    datas = [os.urandom(30_000) for _ in range(10)]
    with relay.client(ann) as client:
        client.post(f"/api/v1/repos/{mine}/packs", **signed(b"".join(pack_of(*datas).parts())))
        monkeypatch.setattr(limits, "PACK_BYTES", 100_000)
        left = [digest(data) for data in datas]
        found: dict[bytes, bytes] = {}
        while left:
            got: httpx.Response = client.post(f"/api/v1/repos/{mine}/packs/fetch", content=b"".join(left))
            assert len(got.content) <= 100_000
            found |= unpack(got.content)
            left = [one for one in left if one not in found]
            assert got.headers["svc-remaining"] == str(len(left))
    assert found == {digest(data): data for data in datas}


def test_a_large_frame_of_several_objects_is_refused_before_it_is_stored(relay):
    """Whoever asked for one of them would have all of it unpacked; one object alone may be as large."""
    ann, mine, _, _ = two_repos(relay)
    small, filler = os.urandom(40), bytes(FRAME_SHARED_MAX)
    stored = zstandard.ZstdCompressor().compress(small + filler)
    row = FrameRow(
        ZSTD, len(small + filler), len(stored), [ObjectRow(digest(d), len(d)) for d in (small, filler)]
    )
    shared = Pack(msgspec.msgpack.encode([row]), [Frame(row, stored)])
    before = rows(relay)
    with relay.client(ann) as client:
        answer = client.post(f"/api/v1/repos/{mine}/packs", **signed(b"".join(shared.parts())))
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert rows(relay) == before
        alone = b"".join(pack_of(filler + small, text=True).parts())
        assert client.post(f"/api/v1/repos/{mine}/packs", **signed(alone)).status_code == 201


def test_a_lost_pack_is_named_before_a_download_begins(tmp_path):
    """Not by a connection that breaks off, for which the client would blame the network."""
    relay = Relay(tmp_path, {"TR_RATE_LIMITS": "off", "RUST_LOG": "off"})
    relay.start()
    try:
        ann = relay.account("ann")
        with relay.client(ann) as client:
            repo = create(client, ann, "lost")
            data = os.urandom(5000)
            (seal,) = repo.seal({"a.bin": data})
            relay.run(lose_all_packs(relay))
            for got in (
                client.post(f"{repo.url}/packs/fetch", content=digest(data)),
                client.get(f"{repo.url}/archive/{seal}.tar.gz"),
                client.get(f"{repo.url}/raw/{seal}/a.bin"),
            ):
                assert got.status_code == 503
                assert "is gone" in got.json()["detail"]
                assert "relay audit" in got.json()["detail"]
    finally:
        relay.stop()


async def lose_all_packs(relay: Relay) -> None:
    packs = relay.node.objects.packs
    names = [info.name async for info in packs.list_packs()]
    assert names
    await packs.delete(names)
