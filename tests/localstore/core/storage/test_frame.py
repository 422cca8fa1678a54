"""Frames: objects come out of stored bytes, at hand or fetched as far as needed; anything else is refused."""

from __future__ import annotations

import random

import pytest
import zstandard

from localstore.core.encoding import digest
from localstore.core.errors import Invalid, TooLarge
from localstore.core.model import limits
from localstore.core.storage.frame import RAW, ZSTD, FetchedBytes, read_object
from localstore.core.storage.pack import write_packs

TEXT = b"The quick brown fox jumps over the lazy dog.\n" * 40
NOISE = random.Random(1).randbytes(5000)


def test_stored_frames_can_be_read_by_offset() -> None:
    texts = [TEXT, b"two" * 50, b"", NOISE]
    (one,) = write_packs((digest(text), text, True) for text in texts)
    (frame,) = one.frames
    row, offset = frame.row, 0
    for expected in texts:
        data = read_object(frame.stored, row.codec, row.raw_len, offset, len(expected))
        assert bytes(data) == expected
        offset += len(expected)
    for wrong in ((0, row.raw_len + 1), (-1, 1), (row.raw_len, 1), (0, -1)):
        with pytest.raises(Invalid):
            read_object(frame.stored, row.codec, row.raw_len, *wrong)
    for short in ((b"abc", RAW, 4), (zstandard.compress(TEXT), ZSTD, len(TEXT) + 1)):
        with pytest.raises(Invalid):
            read_object(*short, 0, 3)
    with pytest.raises(Invalid):
        read_object(frame.stored, 7, row.raw_len, 0, 1)
    with pytest.raises(TooLarge):
        read_object(frame.stored, row.codec, limits.FRAME_RAW_MAX + 1, 0, 1)


def test_of_a_frame_that_is_fetched_no_more_is_than_it_takes() -> None:
    words = random.Random(7)
    texts = [b" ".join(b"%d" % words.randrange(10**6) for _ in range(4000)) for _ in range(12)]
    (one,) = write_packs((digest(text), text, True) for text in texts)
    (frame,) = one.frames
    row, before, offset = frame.row, b"other bytes", 0
    pack_file = before + frame.stored + b"and others"
    for text in texts:
        taken: list[int] = []

        def fetch(length: int, at: int, taken: list[int] = taken) -> bytes:
            taken.append(length)
            return pack_file[at : at + length]

        fetched = FetchedBytes(fetch, len(before), row.stored_len)
        assert read_object(fetched, ZSTD, row.raw_len, offset, len(text)) == text
        offset += len(text)
        assert sum(taken) <= row.stored_len * offset // row.raw_len + 70_000  # to the ends of block and piece


def test_a_frame_may_be_fetched_in_whatever_pieces_come() -> None:
    texts = [TEXT * 30 + NOISE[n:] for n in range(6)]
    (one,) = write_packs((digest(text), text, True) for text in texts)
    (frame,) = one.frames

    def fetch(length: int, at: int) -> bytes:
        return frame.stored[at : at + min(length, 999)]

    for size in (len(texts[0]), frame.row.raw_len):
        found = read_object(FetchedBytes(fetch, 0, frame.row.stored_len), ZSTD, frame.row.raw_len, 0, size)
        assert found == b"".join(texts)[:size]


@pytest.mark.parametrize("kept", [0, 3, 1000, -1])
def test_a_fetched_frame_that_is_cut_short_or_of_another_length_is_refused(kept: int) -> None:
    texts = [TEXT * 30 + NOISE[n:] for n in range(6)]
    (one,) = write_packs((digest(text), text, True) for text in texts)
    (frame,) = one.frames
    row, short = frame.row, frame.stored[:kept]
    for raw_len, size in ((row.raw_len, row.raw_len), (row.raw_len, row.raw_len - 1), (row.raw_len + 1, 10)):
        for stored in (short, FetchedBytes(lambda length, at: short[at : at + length], 0, row.stored_len)):
            with pytest.raises(Invalid):
                read_object(stored, ZSTD, raw_len, 0, size)
    raw = FetchedBytes(lambda length, at: NOISE[at : at + length], 0, 100)
    assert read_object(raw, RAW, 100, 10, 20) == NOISE[10:30]
    with pytest.raises(Invalid):
        read_object(FetchedBytes(lambda length, at: b"", 0, 100), RAW, 100, 10, 20)
