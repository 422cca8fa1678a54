"""Chunks: where cuts fall, that this never changes, and manifests that lie."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import jcs
from localstore.core.errors import Invalid, TooLarge
from localstore.core.model import limits
from localstore.core.storage import chunks
from localstore.core.storage.chunks import WINDOW, Chunker, ChunkManifest

MIB = limits.MIB


def noise(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def cut(data: bytes, window: int = WINDOW) -> list[bytes]:
    chunker = Chunker()
    found: list[bytes] = []
    for start in range(0, len(data), window):
        part = data[start : start + window]
        chunker.space()[: len(part)] = part
        found += [bytes(chunk) for chunk in chunker.feed(len(part))]
    return found + [bytes(chunk) for chunk in chunker.finish()]


NOISE = noise(7, 4 * MIB)

# --- cutting


@settings(max_examples=30, deadline=None)
@given(size=st.integers(0, 2 * MIB), window=st.integers(1000, MIB))
def test_chunks_are_the_stream_however_it_is_divided(size: int, window: int) -> None:
    data = NOISE[:size]
    found = cut(data, window)
    assert b"".join(found) == data
    assert found == cut(data)
    assert all(limits.CHUNK_MIN <= len(chunk) <= limits.CHUNK_MAX for chunk in found[:-1])
    assert all(0 < len(chunk) <= limits.CHUNK_MAX for chunk in found)


@settings(max_examples=25, deadline=None)
@given(at=st.integers(0, 4 * MIB), removed=st.integers(0, 3000), put=st.binary(max_size=3000))
def test_an_edit_changes_only_chunks_around_it(at: int, removed: int, put: bytes) -> None:
    before = set(cut(NOISE))
    after = cut(NOISE[:at] + put + NOISE[at + removed :])
    fresh = [chunk for chunk in after if chunk not in before]
    assert len(fresh) <= 8, "cuts fall together again after the edit"


def test_the_average_is_the_one_that_the_specification_names() -> None:
    count = len(cut(NOISE))
    assert 0.85 < len(NOISE) / count / limits.CHUNK_TARGET < 1.15


@pytest.mark.parametrize(
    ("data", "sizes"),
    [
        (bytes(300_000), [131072, 131072, 37856]),
        (NOISE[:1_000_000], None),
        (bytes(range(256)) * 2000, None),
    ],
)
def test_golden_cuts(data: bytes, sizes: list[int] | None) -> None:
    """Another cut here is another version of the format: nothing stored before would be found again."""
    found = [len(chunk) for chunk in cut(data)]
    assert found == (sizes if sizes is not None else GOLDEN[blake3(data).hexdigest()[:16]])


GOLDEN = {
    "934a66c88da78b82": [
        91119,
        87256,
        67902,
        58130,
        73291,
        104304,
        62180,
        66337,
        86888,
        13191,
        59925,
        77695,
        58785,
        20791,
        72206,
    ],
    "e0e21a294fc4eb0f": [131072, 131072, 131072, 118784],
}

# --- manifests


def manifest_of(data: bytes) -> ChunkManifest:
    rows = [(blake3(chunk).digest(), len(chunk)) for chunk in cut(data)]
    return chunks.manifest(blake3(data).digest(), rows)


WHOLE = manifest_of(bytes(limits.BLOB_FILE) + NOISE[:100_000])


def test_a_manifest_is_jcs_and_comes_back() -> None:
    raw = chunks.encode(WHOLE)
    assert raw == jcs(msgspec.to_builtins(WHOLE))
    assert chunks.decode(raw) == WHOLE


def changed(**members: Any) -> bytes:
    return jcs({**msgspec.to_builtins(WHOLE), **members})


def rows(*edits: tuple[int, dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.to_builtins(WHOLE.chunks)
    for at, edit in edits:
        found[at] = {**found[at], **edit}
    return found


SMALL = manifest_of(NOISE[:200_000])
HOSTILE = {
    "not JSON": b"{",
    "another type": b"[]",
    "deep": b"[" * 100_000,
    "spaces": chunks.encode(WHOLE).replace(b":", b": "),
    "another order": msgspec.json.encode({"v": 1, **msgspec.to_builtins(WHOLE)}),
    "a member more": changed(x=1),
    "a member less": jcs({"blake3": WHOLE.blake3, "chunks": rows(), "size": WHOLE.size}),
    "version 2": changed(v=2),
    "no digest": changed(blake3="x" * 64),
    "capitals": changed(blake3=WHOLE.blake3.upper()[:-1] + "A"),
    "a larger size": changed(size=WHOLE.size + 1),
    "a smaller size": changed(size=WHOLE.size - 1),
    "a negative size": changed(size=-1),
    "no chunks": changed(chunks=[]),
    "a chunk twice": changed(chunks=[*rows(), rows()[0]]),
    "a chunk without bytes": changed(chunks=rows((-1, {"size": 0}))),
    "a negative chunk": changed(chunks=rows((-1, {"size": -5}))),
    "a tiny chunk inside": changed(chunks=rows((0, {"size": limits.CHUNK_MIN - 1}))),
    "a huge chunk": changed(chunks=rows((0, {"size": limits.CHUNK_MAX + 1}))),
    "a chunk without digest": changed(chunks=rows((0, {"blake3": ""}))),
    "a file that needs no chunks": chunks.encode(SMALL),
    "a float": chunks.encode(WHOLE).replace(b'"v":1', b'"v":1.0'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_manifests_are_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        chunks.decode(HOSTILE[name])
    assert refused.value.detail


def test_a_file_over_the_cap_and_a_manifest_over_its_own_are_too_large() -> None:
    with pytest.raises(TooLarge):
        chunks.decode(changed(size=limits.CHUNKED_FILE + 1))
    with pytest.raises(TooLarge):
        chunks.decode(bytes(limits.CHUNK_MANIFEST + 1))


def test_the_kind_of_bytes_follows_from_their_size_and_the_repository() -> None:
    assert chunks.kind_of_bytes(limits.BLOB_FILE, "model") == "blob"
    assert chunks.kind_of_bytes(limits.BLOB_FILE + 1, "model") == "chunked"
    assert chunks.kind_of_bytes(limits.BLOB_FILE + 1, "app") == "chunked"
    assert chunks.kind_of_bytes(limits.BLOB_FILE + 1, "lib") == "blob"
