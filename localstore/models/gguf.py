"""Reads the header of a GGUF file. The file may come from an attacker, so counts and lengths are checked
before they are used.

    magic "GGUF" · version u32 · tensors u64 · fields u64
    fields:   name · type u32 · value
    tensors:  name · dimensions u32 · each u64 · type u32 · offset u64
    data, aligned"""

from __future__ import annotations

import struct
from typing import IO, Any

import msgspec

from localstore.core.model.limits import (
    GGUF_FIELDS,
    GGUF_HEADER,
    GGUF_NAME_BYTES,
    GGUF_SHARDS,
    GGUF_TENSORS,
    GGUF_TEXT_BYTES,
    GGUF_TEXTS,
    in_words,
)
from localstore.models.errors import BadModel

MAGIC = b"GGUF"
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9
_DIMENSIONS = 4
_PARAMETERS = 1 << 52  # of one tensor; products stay exact
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34), 10: (256, 84),
    11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 24: (1, 1), 25: (1, 2), 26: (1, 4),
    27: (1, 8), 28: (1, 8), 30: (1, 2),
}  # fmt: skip
"""Type of a tensor → (values of a block, its bytes), for those whose size is checked."""
QUANTISATIONS = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S",
    12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K",
    19: "IQ2_XXS", 20: "IQ2_XS", 21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL",
    26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S", 29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
    36: "TQ1_0", 37: "TQ2_0", 38: "MXFP4_MOE",
}  # fmt: skip


class Header(msgspec.Struct, frozen=True):
    """The content of a GGUF header. `fields`: numbers, texts and booleans by name. An array is None there,
    and its length is in `lengths`. `parameters`: the number of weights. `data_bytes`: how many bytes the
    file has up to the end of its last tensor."""

    version: int
    fields: dict[str, Any]
    lengths: dict[str, int]
    parameters: int
    tensors: int
    data_bytes: int

    @property
    def architecture(self) -> str:
        return self.text("general.architecture")

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str, default: int = 0) -> int:
        """An integer field of the header. Returns `default` if the field is absent, not an integer or out of
        range."""
        value = self.fields.get(name)
        fits = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 40
        return int(value) if fits and value is not None else default

    def of_architecture(self, name: str, default: int = 0) -> int:
        """An integer field that belongs to the model's architecture. For a `llama` model, the name
        `context_length` stands for the field `llama.context_length`. Returns `default` if the field is
        absent, not an integer or out of range."""
        return self.number(f"{self.architecture}.{name}", default)

    @property
    def quantisation(self) -> str:
        value = self.fields.get("general.file_type")
        return QUANTISATIONS.get(value, "unknown") if isinstance(value, int) else "unknown"

    @property
    def shard(self) -> tuple[int, int]:
        """(index of this file from 0, number of files) for a model in several files. (0, 1) for a model in
        one file."""
        return self.fields.get("split.no", 0), max(1, self.fields.get("split.count", 1))

    @property
    def is_projector(self) -> bool:
        """Whether the file is a projector, which converts images to input for another model and generates no
        text."""
        return self.architecture == "clip" or self.text("general.type") == "mmproj"


def read(file: IO[bytes], size: int) -> Header:
    """Read the header of a file of `size` bytes. Raises BadModel."""
    reader = _Reader(file)
    if reader.take(4) != MAGIC:
        raise BadModel("it is not a GGUF file; models for the local LLM server are GGUF files")
    version = reader.scalar("<I")
    if version not in (2, 3):
        what = "is written for big-endian machines" if version & 0xFFFF == 0 else f"has version {version}"
        raise BadModel(f"the GGUF file {what}; versions 2 and 3, little-endian, can be read")
    tensors = reader.count("<Q", GGUF_TENSORS, "tensors")
    count = reader.count("<Q", GGUF_FIELDS, "fields")
    fields: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for _ in range(count):
        name = reader.string(GGUF_NAME_BYTES)
        if name in fields:
            raise BadModel(f"the GGUF header has two fields of one name: {name[:80]!r}")
        fields[name] = reader.value(reader.scalar("<I"), name, lengths)
    later_shard = _shard_place(fields) > 0  # what a model is stands in its first shard alone
    if not isinstance(fields.get("general.architecture"), str) and not later_shard:
        raise BadModel("the GGUF header does not say which architecture the model has")
    alignment = fields.get("general.alignment", 32)
    if not isinstance(alignment, int) or isinstance(alignment, bool) or not 8 <= alignment <= 1 << 20:
        raise BadModel("the GGUF header has a senseless alignment")
    parameters, end = _tensors(reader, tensors)
    start = -(-reader.position // alignment) * alignment
    if tensors and start + end > size:
        raise BadModel(f"the file ends early: it has {size:,} of {start + end:,} bytes")
    return Header(version, fields, lengths, parameters, tensors, start + end)


def _shard_place(fields: dict[str, Any]) -> int:
    """The index of the file among the shards of its model, from 0. Raises BadModel for impossible numbers."""
    place, count = fields.get("split.no", 0), fields.get("split.count", 1)
    for number in (place, count):
        if not isinstance(number, int) or isinstance(number, bool):
            raise BadModel("the GGUF header numbers its shard senselessly")
    if not 0 <= place < max(count, 1) <= GGUF_SHARDS:
        raise BadModel(
            f"the GGUF header says shard {place + 1:,} of {count:,}; a model has at most {GGUF_SHARDS:,}"
        )
    return int(place)


def _tensors(reader: _Reader, count: int) -> tuple[int, int]:
    """Reads the descriptions of `count` tensors. Returns (number of weights, end of the last tensor). The end
    is counted in bytes from the start of the data."""
    parameters = end = 0
    for _ in range(count):
        reader.string(GGUF_NAME_BYTES)
        values = 1
        for _ in range(reader.count("<I", _DIMENSIONS, "dimensions")):
            values *= reader.count("<Q", _PARAMETERS, "weights in one tensor")
            if values > _PARAMETERS:
                raise BadModel("the GGUF header declares a tensor of senseless size")
        kind, offset = reader.scalar("<I"), reader.scalar("<Q")
        block, octets = _BLOCKS.get(kind, (1, 0))
        parameters += values
        end = max(end, offset + -(-values // block) * octets)
        if end > 1 << 62 or parameters > 1 << 60:
            raise BadModel("the GGUF header declares tensors of senseless size")
    return parameters, end


class _Reader:
    """Reads values from the file, at most GGUF_HEADER bytes in total."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._texts = 0
        self.position = 0

    def take(self, count: int) -> bytes:
        if count > GGUF_HEADER - self.position:
            raise BadModel(f"the GGUF header is larger than {in_words(GGUF_HEADER)}")
        data = self._file.read(count)
        self.position += count
        if len(data) != count:
            raise BadModel("the file ends within its GGUF header")
        return data

    def scalar(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def count(self, form: str, most: int, what: str) -> int:
        value = int(self.scalar(form))
        if value > most:
            raise BadModel(f"the GGUF header declares {value:,} {what}; at most {most:,} are read")
        return value

    def string(self, most: int) -> str:
        return self.take(self.count("<Q", most, "bytes of one text")).decode("utf-8", "replace")

    def value(self, kind: int, name: str, lengths: dict[str, int]) -> Any:
        """Reads a value of the type `kind`. An array is skipped: the method returns None and stores the
        array's length in `lengths`."""
        if kind in _SCALARS:
            value = self.scalar(_SCALARS[kind])
            return value if value == value and abs(value) != float("inf") else None
        if kind == _STRING:
            return self.string(GGUF_TEXT_BYTES)
        if kind != _ARRAY:
            raise BadModel(f"the GGUF header has a value of the unknown type {kind}")
        inner = self.scalar("<I")
        lengths[name] = length = self.count("<Q", GGUF_HEADER, "values of one list")
        if inner in _SCALARS:
            self.take(length * struct.calcsize(_SCALARS[inner]))
        elif inner == _STRING:
            self._texts += length  # each takes a step of Python, even an empty one
            if self._texts > GGUF_TEXTS:
                raise BadModel(f"the GGUF header lists more than {GGUF_TEXTS:,} texts")
            for _ in range(length):
                self.take(self.count("<Q", GGUF_TEXT_BYTES, "bytes of one text"))
        else:
            raise BadModel("the GGUF header has lists of lists, which no model needs")
        return None
