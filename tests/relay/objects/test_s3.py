"""Packs in an S3-compatible store, against a real server (moto), and one that lacks conditional PUT."""

from __future__ import annotations

import asyncio
import http.server
import os
import socket
import threading
from collections.abc import Iterator

import obstore
import pytest

from localstore.core.encoding import digest
from localstore.core.errors import Unavailable
from localstore.core.model.limits import MIB
from relay.base.environment import StartRefused
from relay.config import S3
from relay.objects import s3
from relay.objects.backend import PackGone
from relay.objects.s3 import PART_BYTES, S3Packs
from relay.objects.store import ObjectStore
from tests import buckets
from tests.patience import PATIENCE
from tests.relay.node_fixture import database, make_account, make_repo


def packs_of(where: S3) -> dict[str, int]:
    return {path: size for path, size in buckets.sizes(where).items() if path.startswith("packs/")}


native = pytest.mark.skipif(buckets.PUT == "emulated", reason="this server cannot refuse a name")


@pytest.mark.parametrize("put", [pytest.param("native", marks=native), "emulated"])
async def test_small_writes_share_an_object_and_read_back(put):
    where = buckets.bucket()
    packs = await buckets.packs(put, where)
    written = await asyncio.gather(*(packs.append([b"%d" % n, b""]) for n in range(30)))
    assert len(packs_of(where)) <= 2
    for number, (place, empty) in enumerate(written):
        ranges = [(place.offset, len(str(number))), (empty.offset, 0)]
        assert await packs.read(place.pack, ranges) == [b"%d" % number, b""]
    assert len({place for both in written for place in both}) == 60


async def test_large_writes_are_sent_in_parts_and_before_they_are_durable(tmp_path):
    where = buckets.bucket()
    packs = await buckets.packs(where=where)
    pieces = [os.urandom(MIB) for _ in range(40)]
    places = [place for piece in pieces for place in await packs.append([piece], sync=False)]
    await packs.sync(places)
    assert max(packs_of(where).values()) <= PART_BYTES
    assert len(packs_of(where)) == 3
    for piece, place in zip(pieces[::13], places[::13], strict=True):
        assert await packs.read(place.pack, [(place.offset, MIB)]) == [piece]


async def test_listing_deleting_and_what_is_gone():
    packs = await buckets.packs()
    (place,) = await packs.append([b"x" * 100])
    assert [(one.name, one.size) async for one in packs.list_packs()] == [(place.pack, 100)]
    with pytest.raises(PackGone):
        await packs.read("nothing", [(0, 1)])
    with pytest.raises(Unavailable):
        await packs.read(place.pack, [(50, 100)])
    await packs.delete([place.pack, "nothing"])
    assert [one async for one in packs.list_packs()] == []
    await packs.check()


async def test_a_bucket_that_is_absent_or_another_nodes_is_refused():
    where = buckets.bucket()
    await S3Packs(where, buckets.PUT).open("https://one.example")
    await S3Packs(where, buckets.PUT).open("https://one.example")
    with pytest.raises(StartRefused, match=r"belongs to the node 'https://one\.example'"):
        await S3Packs(where, buckets.PUT).open("https://two.example")
    with pytest.raises(StartRefused, match="does not serve bucket absent"):
        await S3Packs(S3(where.endpoint, "absent", "us-east-1", "k", "s"), "native").open("x")
    with pytest.raises(StartRefused, match="does not serve"):
        await S3Packs(S3("http://127.0.0.1:9", "b", "us-east-1", "k", "s"), "emulated").open("x")


async def test_objects_live_there_and_failures_are_said_without_naming_the_place(tmp_path):
    where = buckets.bucket()
    async with database(tmp_path) as db:
        repo = await make_repo(db, await make_account(db, "ann"))
        store = ObjectStore(tmp_path, db, await buckets.packs(where=where), verify=True)
        datas = [os.urandom(n * 1000) for n in range(20)] + [b"text\n" * n for n in range(20)]
        await store.put_many(repo, {digest(data): data for data in datas})
        assert len(packs_of(where)) == 1
        assert not (tmp_path / "objects").exists()
        again = ObjectStore(tmp_path, db, await buckets.packs(where=where), verify=True)
        assert await again.read_many([digest(data) for data in datas], repo) == {digest(d): d for d in datas}
        obstore.delete(buckets.raw(where), list(packs_of(where)))
        last = ObjectStore(tmp_path, db, await buckets.packs(where=where))
        with pytest.raises(Unavailable) as gone:
            await last.read(digest(datas[5]), repo)
        assert where.endpoint not in gone.value.detail
        away = ObjectStore(tmp_path, db, S3Packs(S3("http://127.0.0.1:9", "b", "r", "k", "s"), "native"))
        with pytest.raises(Unavailable) as refused:
            await away.put(repo, b"new bytes")
        assert "127.0.0.1" not in refused.value.detail
        with pytest.raises(Unavailable):
            await away.packs.check()


@native
async def test_a_repeated_write_whose_first_answer_was_lost_is_ours():
    where = buckets.bucket()
    packs = await buckets.packs("native", where)
    name = packs._filling.name
    obstore.put(buckets.raw(where), f"packs/{name}", b"mine")
    assert [place.pack for place in await packs.append([b"mine"])] == [name]
    name = packs._filling.name
    obstore.put(buckets.raw(where), f"packs/{name}", b"of somebody else")
    with pytest.raises(Unavailable):
        await packs.append([b"mine"])


@pytest.fixture
def without_conditions() -> Iterator[S3]:
    """A store that answers 501 to If-None-Match, as some do, and counts the requests."""
    held: dict[str, bytes] = {}

    class Store(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def reply(self, status: int, body: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"1"')
            self.send_header("Last-Modified", "Sat, 21 Nov 2026 07:00:00 GMT")
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if "If-None-Match" in self.headers:
                asked.append(self.path)
                self.reply(501, b"<Error><Code>NotImplemented</Code></Error>")
                return
            held[self.path] = body
            self.reply(200)

        def do_GET(self) -> None:
            self.reply(200, held[self.path]) if self.path in held else self.reply(404)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.reply(200, b"<DeleteResult></DeleteResult>")

        def log_message(self, *_: object) -> None:
            pass

    asked: list[str] = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield S3(f"http://127.0.0.1:{server.server_port}", "b", "us-east-1", "k", "s")
        server.shutdown()
    assert len(asked) <= 1, "the probe is not repeated"


async def test_a_store_without_conditional_put_works_emulated_only(without_conditions):
    with pytest.raises(StartRefused, match="TR_LAKEFS_S3_CONDITIONAL_PUT=emulated"):
        await S3Packs(without_conditions, "native").open("x")
    packs = S3Packs(without_conditions, "emulated")
    await packs.open("x")
    assert len(await packs.append([b"stored"])) == 1


async def test_a_store_that_never_answers_is_given_up_soon_and_sooner_the_next_time(monkeypatch):
    packs = await buckets.packs()
    monkeypatch.setattr(s3, "ANSWER_SECONDS", 0.4)
    monkeypatch.setattr(s3, "SILENT_ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        where = S3(f"http://127.0.0.1:{port}", "packs", "us-east-1", None, None)
        hanging = S3Packs(where, "emulated")
        clock = asyncio.get_running_loop().time
        calls = (
            hanging.check(),
            hanging.append([b"x"]),
            hanging.read("name", [(0, 1)]),
            hanging.delete(["name"]),
        )
        began = clock()
        for call in calls:
            with pytest.raises(Unavailable, match="does not answer; try again later"):
                await call
            monkeypatch.setattr(s3, "ANSWER_SECONDS", 10 * PATIENCE)  # which only the first call waits for
        assert clock() - began < PATIENCE
        with pytest.raises(StartRefused, match="does not answer them in time"):
            await hanging.open("node")
    await packs.check()
