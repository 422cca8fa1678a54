"""GGUF headers are hostile input: each is read or refused, within its bounds."""

from __future__ import annotations

import io
import random
import struct

import pytest

from localstore.core.model import limits
from localstore.models import gguf
from localstore.models.errors import BadModel
from localstore.models.gguf import Header
from tests.depth import rounds
from tests.llm import tiny


def read(data: bytes) -> Header:
    return gguf.read(io.BytesIO(data), len(data))


def header(fields: int, tensors: int = 0, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, fields) + rest


ARCHITECTURE = tiny.field("general.architecture", "llama")


def test_what_a_header_says() -> None:
    found = read(tiny.model(name="Tiny", context=777))
    assert found.architecture == "llama"
    assert found.text("general.name") == "Tiny"
    assert found.of_architecture("context_length") == 777
    assert found.quantisation == "F16"
    assert found.lengths["tokenizer.ggml.tokens"] > 256
    assert found.fields["tokenizer.ggml.tokens"] is None
    assert "im_start" in found.text("tokenizer.chat_template")
    assert found.data_bytes <= len(tiny.model(name="Tiny", context=777))
    assert found.parameters == 2 * 288 * tiny.WIDTH + 7 * tiny.WIDTH**2 + 3 * tiny.WIDTH


def test_a_number_out_of_every_range_counts_as_absent() -> None:
    fields = ARCHITECTURE + tiny.text("llama.block_count") + struct.pack("<Iq", 11, -5)
    fields += tiny.text("llama.context_length") + struct.pack("<If", 6, float("nan"))
    found = read(header(3, rest=fields))
    assert found.of_architecture("block_count", 7) == 7
    assert found.of_architecture("context_length", 9) == 9


HOSTILE = {
    "no GGUF file": (b"PK\x03\x04" + bytes(100), "not a GGUF file"),
    "empty": (b"", "ends within"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "an old version": (header(0, version=1), "version 1"),
    "a billion fields": (header(10**9), "declares 1,000,000,000 fields"),
    "a billion tensors": (header(0, 10**9), "declares 1,000,000,000 tensors"),
    "a name of 2^63 bytes": (header(1, rest=struct.pack("<Q", 1 << 63)), "bytes of one text"),
    "a list of 2^62 numbers": (
        header(2, rest=ARCHITECTURE + tiny.text("x") + struct.pack("<IIQ", 9, 4, 1 << 62)),
        "values of one list",
    ),
    "too many texts": (
        header(
            2, rest=ARCHITECTURE + tiny.text("x") + struct.pack("<IIQ", 9, 8, limits.GGUF_TEXTS + 1)
        ),
        "lists more than",
    ),
    "a list of lists": (
        header(2, rest=ARCHITECTURE + tiny.text("x") + struct.pack("<IIQ", 9, 9, 1)), "lists of lists"
    ),
    "an unknown type": (header(1, rest=tiny.text("x") + struct.pack("<I", 77)), "unknown type 77"),
    "one name twice": (header(2, rest=ARCHITECTURE * 2), "two fields of one name"),
    "no architecture": (header(0), "which architecture"),
    "alignment 0": (
        header(2, rest=ARCHITECTURE + tiny.text("general.alignment") + struct.pack("<II", 4, 0)), "alignment"
    ),
    "no shard of none": (
        header(2, rest=ARCHITECTURE + tiny.field("split.no", tiny.U16(1))), "says shard 2 of 1"
    ),
    "shards without end": (
        header(2, rest=ARCHITECTURE + tiny.field("split.count", 1 << 31)), "of 2,147,483,648"
    ),
    "a shard with a name": (header(2, rest=ARCHITECTURE + tiny.field("split.no", "one")), "senselessly"),
    "9 dimensions": (
        header(1, 1, ARCHITECTURE + tiny.text("t") + struct.pack("<I9Q", 9, *([1] * 9))), "9 dimensions"
    ),
    "a tensor of 2^104 weights": (
        header(1, 1, ARCHITECTURE + tiny.text("t") + struct.pack("<IQQ", 2, 1 << 52, 1 << 52)), "senseless"
    ),
    "a tensor behind the end": (
        header(1, 1, ARCHITECTURE + tiny.text("t") + struct.pack("<IQIQ", 1, 4, 0, 1 << 40)), "ends early"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused(name: str) -> None:
    data, sentence = HOSTILE[name]
    with pytest.raises(BadModel, match=sentence):
        read(data)


def test_a_file_that_was_cut_is_refused_wherever() -> None:
    whole = tiny.model()
    for length in [*range(0, 4096, 37), len(whole) // 2, len(whole) - 200]:
        with pytest.raises(BadModel):
            read(whole[:length])


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_a_damaged_header_is_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    data = bytearray(tiny.model()[:20_000])
    for _ in range(rng.randrange(1, 20)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    try:
        gguf.read(io.BytesIO(data), 1 << 40)
    except BadModel as error:
        assert error.detail
