"""Packs: what goes in comes out, in whatever pieces it arrives; anything else is refused early."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import digest
from localstore.core.errors import DigestMismatch, Invalid, TooLarge
from localstore.core.model import limits
from localstore.core.storage import pack
from localstore.core.storage.frame import RAW, ZSTD, read_object
from localstore.core.storage.pack import Pack, PackReader, PackWriter, read_toc, write_packs

Item = tuple[bytes, bytes, bool]
TEXT = b"The quick brown fox jumps over the lazy dog.\n" * 40
NOISE = random.Random(1).randbytes(5000)


def items(contents: Iterable[bytes], text: bool = True) -> list[Item]:
    return [(digest(one), one, text) for one in contents]


def joined(one: Pack) -> bytes:
    return b"".join(one.parts())


def unpacked(raw: bytes, cuts: Iterable[int] = (), expected: bytes | None = None) -> dict[bytes, bytes]:
    reader = PackReader(expected)
    found: dict[bytes, bytes] = {}
    edges = [0, *sorted(cuts), len(raw)]
    for start, end in itertools.pairwise(edges):
        for frame in reader.feed(raw[start:end]):
            found.update((name, bytes(data)) for name, data in frame.objects())
    reader.close()
    return found


def assembled(rows: Any, *stored: bytes) -> bytes:
    toc = msgspec.msgpack.encode(rows)
    return b"svcpack1" + len(toc).to_bytes(4, "big") + toc + b"".join(stored)


contents = st.lists(
    st.binary(max_size=40) | st.integers(0, 3).map(lambda n: TEXT * n) | st.just(NOISE), max_size=8
)


@settings(max_examples=80, deadline=None)
@given(contents, st.booleans(), st.data())
def test_round_trip_in_any_pieces(objects: list[bytes], text: bool, data: st.DataObject) -> None:
    packs = list(write_packs(items(objects, text)))
    assert len(packs) == bool(objects)
    for one in packs:
        raw = joined(one)
        assert len(raw) == one.size
        cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=6))
        assert unpacked(raw, cuts, one.toc_digest) == {digest(content): content for content in objects}


def test_one_byte_at_a_time() -> None:
    (one,) = write_packs(items([TEXT, NOISE[:300], b""]))
    raw = joined(one)
    assert len(unpacked(raw, range(len(raw)))) == 3


def test_golden_bytes() -> None:
    writer = PackWriter()
    writer.add(digest(NOISE[:9]), NOISE[:9], text=False)
    writer.add(digest(b"a"), b"a", text=True)
    writer.add(digest(b""), b"", text=True)
    (one,) = writer.finish()
    rows = [[0, 9, 9, [[digest(NOISE[:9]), 9]]], [0, 1, 1, [[digest(b"a"), 1], [digest(b""), 0]]]]
    assert joined(one) == assembled(rows, NOISE[:9], b"a")
    assert digest(joined(one)).hex() == "cc1fed6f610ffb2d8833009b140af15f83af7fe7abf2c3fb49f3eab15c08e236"
    assert one.toc_digest == digest(msgspec.msgpack.encode(rows))


def test_texts_share_a_frame_and_others_have_their_own() -> None:
    texts = [TEXT + str(n).encode() for n in range(20)]
    (one,) = write_packs([*items(texts), *items([NOISE], text=False), *items([TEXT], text=False)])
    by_size = sorted((len(f.row.objects), f.row.codec) for f in one.frames)
    assert by_size == [(1, RAW), (1, ZSTD), (20, ZSTD)]


def test_short_texts_stand_in_front_of_their_frame_and_keep_their_order() -> None:
    longer, long = pack.LENGTH_CLASSES
    sizes = [long, 10, longer, longer - 1, long - 1, 9, long + 1]
    (one,) = write_packs(items([bytes([n]) * size for n, size in enumerate(sizes)]))
    (frame,) = one.frames
    assert [row.size for row in frame.row.objects] == [
        *(10, longer - 1, 9),
        *(longer, long - 1),
        *(long, long + 1),
    ]
    assert len(unpacked(joined(one))) == len(sizes)


@pytest.mark.parametrize("quick", [False, True])
def test_shared_frames_close_near_their_raw_size(quick: bool) -> None:
    size = pack.QUICK_FRAME_RAW if quick else limits.FRAME_RAW
    texts = [bytes([n]) * (size // 4) for n in range(9)]
    (one,) = write_packs(items([*texts, b"x" * size]), quick=quick)
    assert [len(frame.row.objects) for frame in one.frames] == [4, 4, 1, 1]
    assert max(frame.row.raw_len for frame in one.frames) <= size
    assert unpacked(joined(one)) == {digest(text): text for text in (*texts, b"x" * size)}


def block_ends(stored: bytes) -> list[int]:
    """Raw bytes up to the end of each block of a zstd frame (RFC 8878 §3.1.1.2)."""
    at, raw, ends, last = zstandard.frame_header_size(stored), 0, list[int](), False
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    unpacker.decompress(stored[:at])
    while not last:
        header = int.from_bytes(stored[at : at + 3], "little")
        last, size = bool(header & 1), 1 if header >> 1 & 3 == 1 else header >> 3
        raw += len(unpacker.decompress(stored[at : at + 3 + size]))
        at += 3 + size
        ends.append(raw)
    assert at == len(stored)
    return ends


def test_the_blocks_of_a_shared_frame_end_where_texts_do() -> None:
    size = pack.BLOCK_LEAST // 5 * 2
    texts = [bytes([n]) * size for n in range(8)]
    (one,) = write_packs(items([*texts, b"end"]))
    (frame,) = one.frames
    ends = [3 + size * n for n in (3, 6, 8)]
    assert block_ends(frame.stored) == ends
    assert zstandard.get_frame_parameters(frame.stored).content_size == frame.row.raw_len == ends[-1]
    assert unpacked(joined(one)) == {digest(text): text for text in (*texts, b"end")}


def test_many_tiny_texts_do_not_overflow_a_frame() -> None:
    tiny = [n.to_bytes(3, "big") for n in range(pack.SHARED_OBJECTS + 1)]
    (one,) = write_packs(items(tiny))
    assert [len(frame.row.objects) for frame in one.frames] == [pack.SHARED_OBJECTS, 1]
    assert len(unpacked(joined(one))) == len(tiny)


def test_pack_closes_before_its_table_is_over_the_cap() -> None:
    count = limits.PACK_TOC_BYTES // 40
    packs = list(write_packs((n.to_bytes(32, "big"), n.to_bytes(3, "big"), True) for n in range(count)))
    assert len(packs) == 2
    assert sum(len(row.objects) for one in packs for row in read_toc(one.toc)) == count


def test_pack_closes_before_it_unpacks_to_more_than_its_cap() -> None:
    zeros = bytes(limits.FRAME_RAW_MAX)
    count = limits.PACK_RAW_BYTES // len(zeros) + 1
    packs = list(write_packs((n.to_bytes(32, "big"), zeros, False) for n in range(count)))
    assert [len(read_toc(one.toc)) for one in packs] == [count - 1, 1]


def test_packs_stay_below_their_size_and_hold_everything_once() -> None:
    rng = random.Random(2)
    blobs = [rng.randbytes(3000) for _ in range(20)]
    writer = PackWriter(pack_bytes=10_000)
    packs = [p for item in items(blobs + blobs, text=False) for p in writer.add(*item)] + writer.finish()
    assert len(packs) == 7
    assert max(one.size for one in packs) <= 10_000
    found = [unpacked(joined(one)) for one in packs]
    assert sum(map(len, found)) == 20
    assert {name for one in found for name in one} == {digest(blob) for blob in blobs}
    assert writer.finish() == []


def test_writer_refuses_an_object_above_a_frame() -> None:
    big = bytes(limits.FRAME_RAW_MAX)
    writer = PackWriter()
    with pytest.raises(TooLarge):
        writer.add(digest(b""), big + b"x", text=False)
    writer.add(digest(big), big, text=False)
    (one,) = writer.finish()
    assert unpacked(joined(one)) == {digest(big): big}


def test_reader_gives_frames_as_they_arrive_and_drops_them() -> None:
    blobs = [random.Random(n).randbytes(1000) for n in range(3)]
    (one,) = write_packs(items(blobs, text=False))
    reader = PackReader()
    head, *frames = one.parts()
    assert list(reader.feed(head)) == []
    assert reader.toc_digest == one.toc_digest
    for stored in frames:
        assert [frame.stored for frame in reader.feed(stored)] == [stored]
    reader.close()


def test_frames_left_in_an_iterator_come_with_the_next() -> None:
    (one,) = write_packs(items([NOISE, TEXT], text=False))
    reader = PackReader()
    raw = joined(one)
    next(reader.feed(raw[:-1]))
    with pytest.raises(Invalid):
        reader.close()
    assert len(list(reader.feed(raw[-1:]))) == 1
    reader.close()


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_mutation_passes(data: st.DataObject) -> None:
    (one,) = write_packs([*items([TEXT, b"two"]), *items([NOISE[:200]], text=False)])
    raw = bytearray(joined(one))
    change = data.draw(st.sampled_from(["flip", "cut", "insert", "append"]))
    at = data.draw(st.integers(0, len(raw) - 1))
    if change == "flip":
        raw[at] ^= data.draw(st.integers(1, 255))
    elif change == "cut":
        del raw[at : at + data.draw(st.integers(1, 50))]
    elif change == "insert":
        raw[at:at] = data.draw(st.binary(min_size=1, max_size=50))
    else:
        raw += data.draw(st.binary(min_size=1, max_size=50))
    good = {digest(TEXT): TEXT, digest(b"two"): b"two", digest(NOISE[:200]): NOISE[:200]}
    in_frames = at >= one.size - sum(len(frame.stored) for frame in one.frames)
    # zstd has a bit that decoders ignore: a flip in a frame may do nothing, but never makes another object.
    for expected in (one.toc_digest, None):
        try:
            found = unpacked(bytes(raw), expected=expected)
        except (Invalid, TooLarge):
            continue
        assert change == "flip" and in_frames
        assert found == good


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=60))
def test_noise_is_refused(raw: bytes) -> None:
    for start in (b"", b"svcpack1", b"svcpack1\0\0\0\x08"):
        with pytest.raises((Invalid, TooLarge)):
            unpacked(start + raw)


def compressed(raw: bytes, **options: Any) -> bytes:
    return zstandard.ZstdCompressor(level=3, **options).compress(raw)


D, E = digest(b"abc"), digest(b"de")
Z = compressed(TEXT)
ZROW = [1, len(TEXT), len(Z), [[digest(TEXT), len(TEXT)]]]
MAXED = limits.FRAME_RAW_MAX


@pytest.mark.parametrize(
    "rows",
    [
        {"a": 1},
        [[0, 3, 3]],
        [[0, 3, 3, [[D, 3]], 1]],
        [[0, 3, 3, [[D, 3, 1]]]],
        [["0", 3, 3, [[D, 3]]]],
        [[0, 3.0, 3, [[D, 3]]]],
        [[2, 3, 3, [[D, 3]]]],
        [[0, 3, 4, [[D, 3]]]],
        [[0, 3, 2, [[D, 3]]]],
        [[0, 4, 4, [[D, 3]]]],
        [[0, 2, 2, [[D, 3]]]],
        [[0, 3, 3, []]],
        [[0, 0, 0, []]],
        [[0, 3, 3, [[D[:31], 3]]]],
        [[0, 3, 3, [[D, 5], [E, -2]]]],
        [[0, -3, -3, [[D, -3]]]],
        [[0, 6, 6, [[D, 3], [D, 3]]]],
        [[0, 3, 3, [[D, 3]]], [0, 3, 3, [[D, 3]]]],
        [[1, 3, 3, [[D, 3]]]],
        [[1, 3, 0, [[D, 3]]]],
        [[1, 3, -1, [[D, 3]]]],
        [[1, MAXED + 1, 9, [[D, MAXED + 1]]]],
        [[1, 1 << 63, 9, [[D, 1 << 63]]]],
        [[0, MAXED, MAXED, [[digest(bytes([n])), MAXED]]] for n in range(3)],
        [[1, MAXED, 9, [[digest(bytes([n])), MAXED]]] for n in range(33)],
    ],
)
def test_table_that_lies_is_refused_before_any_frame(rows: Any) -> None:
    raw = assembled(rows)
    with pytest.raises((Invalid, TooLarge)):
        list(PackReader().feed(raw))


def test_table_has_one_spelling() -> None:
    good = msgspec.msgpack.encode([[0, 3, 3, [[D, 3]]]])
    assert len(read_toc(good)) == 1
    for other in (good + b"\0", good.replace(b"\x94\0\x03", b"\x94\0\xcc\x03"), b"\xdc\0\1" + good[1:]):
        with pytest.raises(Invalid):
            read_toc(other)
    with pytest.raises(Invalid):
        read_toc(b"\x91" * 100_000)


def test_table_over_its_cap_is_refused_from_its_length() -> None:
    with pytest.raises(TooLarge):
        next(PackReader().feed(b"svcpack1" + (limits.PACK_TOC_BYTES + 1).to_bytes(4, "big")))


def test_other_table_than_the_signed_one_is_refused() -> None:
    (one,) = write_packs(items([TEXT]))
    with pytest.raises(DigestMismatch):
        unpacked(joined(one), expected=digest(b"other"))


@pytest.mark.parametrize(
    "frame",
    [
        lambda: compressed(TEXT[:-1]),
        lambda: compressed(TEXT + b"x"),
        lambda: compressed(bytes(MAXED * 2)),
        lambda: compressed(TEXT, write_content_size=False),
        lambda: Z[:-1],
        lambda: Z + b"\0",
        lambda: Z + Z,
        lambda: Z + compressed(b""),
        lambda: Z + b"\x50\x2a\x4d\x18\1\0\0\0x",
        lambda: b"\x50\x2a\x4d\x18\1\0\0\0x",
        lambda: b"not zstd at all",
        lambda: compressed(
            TEXT, dict_data=zstandard.ZstdCompressionDict(TEXT, zstandard.DICT_TYPE_RAWCONTENT)
        ),
        lambda: compressed(TEXT.replace(b"fox", b"cat")),
    ],
)
def test_compressed_frame_that_lies_is_refused(frame: Callable[[], bytes]) -> None:
    stored = frame()
    raw = assembled([[1, len(TEXT), len(stored), [[digest(TEXT), len(TEXT)]]]], stored)
    with pytest.raises(Invalid):
        unpacked(raw)


def test_bomb_is_refused_by_its_header() -> None:
    # The header says what the table says; the blocks hold more.
    small, large = compressed(b"a" * 1000), compressed(b"a" * 100_000)
    declared = zstandard.frame_header_size(small)
    forged = small[:declared] + large[zstandard.frame_header_size(large) :]
    raw = assembled([[1, 1000, len(forged), [[digest(b"a" * 1000), 1000]]]], forged)
    with pytest.raises(Invalid):
        unpacked(raw)


def test_declared_size_is_compared_before_memory_is_taken() -> None:
    bomb = compressed(bytes(MAXED))
    tracemalloc.start()
    try:
        with pytest.raises(Invalid):
            read_object(bomb, ZSTD, 1000, 0, 1000)
        assert tracemalloc.get_traced_memory()[1] < limits.MIB
    finally:
        tracemalloc.stop()


def test_trailing_and_missing_bytes_are_refused() -> None:
    raw = assembled([ZROW], Z)
    assert unpacked(raw) == {digest(TEXT): TEXT}
    for wrong in (raw + b"\0", raw[:-1], raw[: len(raw) - len(Z)], raw[:5], b""):
        with pytest.raises(Invalid):
            unpacked(wrong)
    reader = PackReader()
    list(reader.feed(raw))
    with pytest.raises(Invalid):
        list(reader.feed(b"x"))


def test_what_compresses_is_found_among_much_that_does_not() -> None:
    dull = [random.Random(number).randbytes(40_000) for number in range(60)]
    dense = [b"%d" % number + bytes(60_000) for number in range(3)]
    datas = [*dull[:30], dense[0], *dull[30:], *dense[1:]]
    (pack,) = write_packs((digest(one), one, False) for one in datas)
    assert [frame.row.codec for frame in pack.frames] == [ZSTD if one in dense else RAW for one in datas]


def test_pack_without_frames_holds_nothing() -> None:
    assert unpacked(assembled([])) == {}
