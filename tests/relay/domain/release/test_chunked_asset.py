"""Large assets as a list of chunks that were sent before."""

from __future__ import annotations

from typing import Any

import httpx
from blake3 import blake3

from localstore.core.model.limits import ASSET_FILE, CHUNK_MANIFEST, CHUNK_MAX
from localstore.core.storage import chunks
from tests.relay.chunked_files import Large, large, send_chunks
from tests.relay.conftest import Relay
from tests.relay.domain.release.test_release import World, collected, put, released, used
from tests.relay.domain.release.test_release import world as world
from tests.relay.histories import ok


def listed(http: httpx.Client, url: str, raw: bytes, **query: Any) -> httpx.Response:
    """Upload the asset whose manifest is `raw`."""
    wanted = {"name": "big.bin", "manifest": "true", **query}
    signed = {"blake3": blake3(raw).digest()}
    return http.post(
        f"{url}/assets", params=wanted, content=raw, headers={"Content-Type": "video/mp4"}, extensions=signed
    )


def raw_of(file: Large) -> bytes:
    return chunks.encode(file.manifest)


def test_chunks_become_an_asset_and_nothing_but_the_missing_ones_is_asked_for(
    world: World, relay: Relay
) -> None:
    http, repo = world
    url, file = released(world), large(71)
    first, rest = file.chunks[:40], file.chunks[40:]
    send_chunks(repo, first)
    refused = listed(http, url, raw_of(file))
    assert (refused.status_code, refused.json()["code"]) == (422, "payload_missing")
    assert set(refused.json()["missing"]) <= {blake3(one).hexdigest() for one in rest}
    assert ok(http.get(f"{url}/assets"))["items"] == []
    send_chunks(repo, rest)
    made = ok(listed(http, url, raw_of(file)))
    assert (made["name"], made["size"], made["blake3"]) == ("big.bin", len(file.data), file.digest)
    assert made["content_type"] == "video/mp4"
    collected(relay)
    assert http.get(f"{url}/assets/big.bin").content == file.data
    part = http.get(f"{url}/assets/big.bin", headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, file.data[100:200])


def test_it_counts_as_one_that_was_sent_whole(world: World, relay: Relay) -> None:
    http, repo = world
    url, file = released(world), large(72)
    ok(put(http, url, "whole.bin", file.data))
    before = used(relay, repo)
    ok(listed(http, url, raw_of(file)))
    assert used(relay, repo) == before


def test_a_name_that_is_there_is_refused_before_chunks_are_looked_for(world: World) -> None:
    http, _ = world
    url = released(world)
    ok(put(http, url, "big.bin", b"small"))
    answer = listed(http, url, raw_of(large(73)))
    assert (answer.status_code, answer.json()["code"]) == (409, "asset_exists")


def test_lists_that_lie_or_are_too_large_make_nothing(world: World) -> None:
    http, repo = world
    url, file = released(world), large(74)
    send_chunks(repo, file.chunks)
    rows = [(blake3(one).digest(), len(one)) for one in file.chunks]
    other = chunks.encode(chunks.manifest(blake3(b"another").digest(), rows))
    assert listed(http, url, other).status_code == 422
    assert listed(http, url, b"{}").status_code == 422
    assert listed(http, url, b"x" * (CHUNK_MANIFEST + 1)).status_code == 413
    many = [(blake3(b"%d" % n).digest(), CHUNK_MAX) for n in range(ASSET_FILE // CHUNK_MAX + 1)]
    huge = chunks.encode(chunks.manifest(blake3(b"huge").digest(), many))
    answer = listed(http, url, huge)
    assert (answer.status_code, "at most" in answer.json()["detail"]) == (413, True)
    assert ok(http.get(f"{url}/assets"))["items"] == []


def test_a_reader_lists_chunks_in_vain(world: World, account: Any, client: Any) -> None:
    http, repo = world
    url, file = released(world), large(75)
    send_chunks(repo, file.chunks)
    ok(http.patch(repo.url, json={"visibility": "public"}))
    assert listed(client(account()), url, raw_of(file)).status_code == 403
