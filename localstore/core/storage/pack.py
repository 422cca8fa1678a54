"""Packs: many objects in one stream, which is sent, or stored as a pack file.

    pack  = "svcpack1" ‖ u32 length of the table ‖ table ‖ frames, one after the other
    table = msgpack [[codec, raw_len, stored_len, [[digest, size], …]], …]        one item per frame

Numbers are big-endian, lengths in bytes. Codec 0 is raw, codec 1 is one zstd frame. The raw bytes of a frame
are its objects, one after the other. Text objects share frames, because they compress better together.
Shorter objects come first, so that reading one of them decompresses little. Any other object has its own
frame, which is stored raw if compression gains too little. The signature of a request that sends a pack
covers `toc_digest`, the BLAKE3 of the table. So every object and length is fixed before the first frame
arrives."""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import zstandard

from localstore.core.encoding import DIGEST_SIZE
from localstore.core.encoding import digest as blake3_digest
from localstore.core.errors import DigestMismatch, Invalid, TooLarge
from localstore.core.model import limits
from localstore.core.storage.frame import RAW, ZSTD, Bytes, raw_bytes

MAGIC = b"svcpack1"
ZSTD_LEVEL, QUICK_LEVEL = 3, 1
QUICK_FRAME_RAW = 64 * limits.KIB
LENGTH_CLASSES = 8 * limits.KIB, 32 * limits.KIB  # from each size on a text stands behind the shorter ones
BLOCK_LEAST = 64 * limits.KIB  # of a shared frame: zstd unpacks whole blocks, so they end where texts do
SHARED_OBJECTS = 8192  # at most in one frame, however small: the table has a cap of its own
PROBE, PROBE_LEAST = 2 * limits.KIB, 32 * limits.KIB  # a sample, and from where on samples are taken
DULL = 8  # objects in a row that did not compress, after which one sample of the next is enough
WORTHWHILE = 0.97  # stored ÷ raw at most this, or the frame stays raw

_TOC_LENGTH = struct.Struct(">I")
_HEADER = len(MAGIC) + _TOC_LENGTH.size
_TOC_BYTES_PER_OBJECT, _TOC_BYTES_PER_FRAME, _TOC_BYTES = 40, 17, 5  # upper bounds of the encoding


class ObjectRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An object of a frame: BLAKE3 (32 bytes) and size in bytes."""

    digest: bytes
    size: int


class FrameRow(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a pack's table says about one frame; lengths in bytes."""

    codec: int
    raw_len: int
    stored_len: int
    objects: list[ObjectRow]


class Frame(msgspec.Struct, frozen=True):
    """A frame of a pack. `row`: what the table says about it; `stored`: its compressed bytes."""

    row: FrameRow
    stored: bytes

    def objects(self) -> Iterator[tuple[bytes, memoryview]]:
        """Yields (digest, bytes) of each object, verified.

        Raises Invalid if the frame differs from its row in the pack's table, DigestMismatch if an object has
        another digest.
        """
        raw = raw_bytes(self.stored, self.row.codec, self.row.raw_len)
        offset = 0
        for row in self.row.objects:
            data = raw[offset : offset + row.size]
            if blake3_digest(data) != row.digest:
                raise DigestMismatch(f"object {row.digest.hex()[:12]} has other bytes than its name says")
            yield row.digest, data
            offset += row.size


class Pack(msgspec.Struct, frozen=True):
    """A finished pack. `toc`: the bytes of its table of contents."""

    toc: bytes
    frames: list[Frame]

    @property
    def toc_digest(self) -> bytes:
        return blake3_digest(self.toc)

    @property
    def size(self) -> int:
        """Length of the whole pack in bytes."""
        return _HEADER + len(self.toc) + sum(len(frame.stored) for frame in self.frames)

    def parts(self) -> Iterator[bytes]:
        """The bytes of the pack, in pieces."""
        yield MAGIC + _TOC_LENGTH.pack(len(self.toc)) + self.toc
        for frame in self.frames:
            yield frame.stored


class PackWriter:
    """Collects objects into packs of at most `pack_bytes`; a larger frame gets a pack of its own.

    `quick`: compress for speed, for packs that stay on this machine. Adding the same object again has no
    effect. Not thread-safe."""

    def __init__(self, pack_bytes: int = limits.PACK_BYTES, *, quick: bool = False) -> None:
        self._pack_bytes = pack_bytes
        self._share_bytes = QUICK_FRAME_RAW if quick else limits.FRAME_RAW
        self._compressor = zstandard.ZstdCompressor(level=QUICK_LEVEL if quick else ZSTD_LEVEL)
        self._dull = 0  # objects in a row whose samples did not get shorter
        self._seen: set[bytes] = set()
        self._frames: list[Frame] = []
        self._stored = self._raw = self._toc_bound = 0
        self._shared: list[tuple[bytes, Bytes]] = []
        self._shared_size = 0

    def add(self, digest: bytes, data: Bytes, text: bool) -> list[Pack]:
        """Add the object `data` under its BLAKE3 `digest`. `text`: it shares frames with other texts. Returns
        the packs that are full now (at most one).

        `data` must not change until its pack is returned. Raises TooLarge above FRAME_RAW_MAX."""
        if len(data) > limits.FRAME_RAW_MAX:
            raise TooLarge(f"one object of a pack has at most {limits.FRAME_RAW_MAX} bytes")
        if digest in self._seen:
            return []
        self._seen.add(digest)
        if not text or len(data) >= self._share_bytes:
            return self._place(self._frame([(digest, data)], probe=not text))
        finished = []
        if self._shared_size + len(data) > self._share_bytes or len(self._shared) == SHARED_OBJECTS:
            finished = self._close_shared()
        self._shared.append((digest, data))
        self._shared_size += len(data)
        return finished

    def finish(self) -> list[Pack]:
        """The remaining packs (at most two). The writer is then empty and can be used again."""
        finished = self._close_shared()
        if self._frames:
            finished.append(self._take())
        return finished

    def _close_shared(self) -> list[Pack]:
        if not self._shared:
            return []
        frame = self._frame(sorted(self._shared, key=_length_class))
        self._shared, self._shared_size = [], 0
        return self._place(frame)

    def _frame(self, objects: list[tuple[bytes, Bytes]], probe: bool = False) -> Frame:
        """Make a frame of these objects (digest, data). `probe`: `objects` has a single object; it is
        compressed only if samples of it compress well."""
        parts = [data for _, data in objects]
        raw_len = sum(map(len, parts))
        codec, stored = RAW, b""
        if not probe or self._is_promising(parts[0]):
            codec, stored = ZSTD, self._compress(parts, raw_len)
        if codec == RAW or len(stored) > raw_len * WORTHWHILE:
            codec, stored = RAW, b"".join(parts)
        rows = [ObjectRow(digest, len(data)) for digest, data in objects]
        return Frame(FrameRow(codec, raw_len, len(stored), rows), stored)

    def _compress(self, parts: Sequence[Bytes], raw_len: int) -> bytes:
        """Compresses `parts` to one zstd frame, whose header contains their total length `raw_len`. Each
        block of the zstd frame ends where a part ends, and all blocks but the last have at least BLOCK_LEAST
        bytes."""
        if len(parts) == 1 or raw_len <= BLOCK_LEAST:
            return self._compressor.compress(b"".join(parts))
        stream = self._compressor.compressobj(size=raw_len)
        stored, block = [], 0
        for data in parts:
            if block >= BLOCK_LEAST:
                stored.append(stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK))
                block = 0
            stored.append(stream.compress(data))
            block += len(data)
        stored.append(stream.flush())
        return b"".join(stored)

    def _is_promising(self, raw: Bytes) -> bool:
        """Whether compressing the data is worth a try: the data is short, or one of three samples of it
        compresses. After many failures in a row only one sample is tested, each time another one of the
        three."""
        if len(raw) < PROBE_LEAST:
            return True
        starts = [0, (len(raw) - PROBE) // 2, len(raw) - PROBE]
        if self._dull >= DULL:
            starts = [starts[self._dull % 3]]
        compressible = any(
            len(self._compressor.compress(raw[at : at + PROBE])) < PROBE * WORTHWHILE for at in starts
        )
        self._dull = 0 if compressible else self._dull + 1
        return compressible

    def _place(self, frame: Frame) -> list[Pack]:
        toc = _TOC_BYTES_PER_FRAME + _TOC_BYTES_PER_OBJECT * len(frame.row.objects)
        toc_after = self._toc_bound + toc + _TOC_BYTES
        fits = (
            toc_after <= limits.PACK_TOC_BYTES
            and self._raw + frame.row.raw_len <= limits.PACK_RAW_BYTES
            and _HEADER + toc_after + self._stored + len(frame.stored) <= self._pack_bytes
        )
        finished = [] if fits or not self._frames else [self._take()]
        self._frames.append(frame)
        self._stored += len(frame.stored)
        self._raw += frame.row.raw_len
        self._toc_bound += toc
        return finished

    def _take(self) -> Pack:
        frames, self._frames = self._frames, []
        self._stored = self._raw = self._toc_bound = 0
        return Pack(msgspec.msgpack.encode([frame.row for frame in frames]), frames)


def _length_class(item: tuple[bytes, Bytes]) -> int:
    """The sort key of a text in its frame, so that shorter texts come first. Texts of about the same length
    have equal keys and keep their order, because neighbouring files compress well together."""
    return bisect_right(LENGTH_CLASSES, len(item[1]))


def write_packs(objects: Iterable[tuple[bytes, Bytes, bool]], *, quick: bool = False) -> Iterator[Pack]:
    """Yields packs of all `objects` (digest, data, text), each as soon as it is full. `text`: whether the
    object shares frames with other texts."""
    writer = PackWriter(quick=quick)
    for digest, data, text in objects:
        yield from writer.add(digest, data, text)
    yield from writer.finish()


class PackReader:
    """Parses a pack while it arrives. It buffers at most one frame beyond the bytes just fed.

    `expected_toc`: the digest of the table that the sender signed. Bytes are checked against the table and
    the limits before they are stored; Invalid, TooLarge or DigestMismatch is raised if they fail."""

    def __init__(self, expected_toc: bytes | None = None) -> None:
        self._expected_toc = expected_toc
        self._head = bytearray()  # until the table has arrived
        self._pieces: deque[memoryview] = deque()
        self._waiting = 0  # bytes of the pieces
        self._toc_length: int | None = None
        self._next = 0
        self.toc: list[FrameRow] | None = None
        self.toc_digest: bytes | None = None

    def feed(self, data: Bytes) -> Iterator[Frame]:
        """Add the next bytes. Yields the frames that are complete now. Frames that the caller does not take
        are yielded by the next call. `data` must not change until its frames were taken."""
        if self.toc is None:
            self._head += data
        elif data:
            self._pieces.append(memoryview(data))
            self._waiting += len(data)
        return self._complete()

    @property
    def waiting(self) -> int:
        """How many received bytes wait, because they are not a complete frame or table yet."""
        return self._waiting + len(self._head)

    def close(self) -> None:
        """Tell the reader that the stream has ended. Raises Invalid if a frame is missing, or was not taken
        from `feed`."""
        if self.toc is None or self._next < len(self.toc):
            raise Invalid("the pack ends before its last frame")
        self._refuse_trailing()

    def _complete(self) -> Iterator[Frame]:
        if self.toc is None and not self._read_toc():
            return
        assert self.toc is not None  # noqa: S101
        while self._next < len(self.toc):
            row = self.toc[self._next]
            if self._waiting < row.stored_len:
                return
            self._next += 1
            yield Frame(row, self._take(row.stored_len))
        self._refuse_trailing()

    def _read_toc(self) -> bool:
        if self._toc_length is None:
            if not MAGIC.startswith(self._head[: len(MAGIC)]):
                raise Invalid("not a pack of version 1")
            if len(self._head) < _HEADER:
                return False
            (length,) = _TOC_LENGTH.unpack_from(self._head, len(MAGIC))
            if length > limits.PACK_TOC_BYTES:
                raise TooLarge(f"the table of a pack has at most {limits.PACK_TOC_BYTES} bytes")
            self._toc_length = length
        end = _HEADER + self._toc_length
        if len(self._head) < end:
            return False
        head, self._head = bytes(self._head), bytearray()
        raw = head[_HEADER:end]
        self.toc_digest = blake3_digest(raw)
        if self._expected_toc is not None and self.toc_digest != self._expected_toc:
            raise DigestMismatch("the table of this pack is not the one that was signed")
        self.toc = read_toc(raw)
        if len(head) > end:
            self._pieces.append(memoryview(head)[end:])
            self._waiting = len(head) - end
        return True

    def _take(self, length: int) -> bytes:
        """Removes the next `length` bytes from the received ones and returns them; they are copied once."""
        self._waiting -= length
        parts: list[memoryview] = []
        while length:
            piece = self._pieces.popleft()
            if len(piece) > length:
                self._pieces.appendleft(piece[length:])
                piece = piece[:length]
            parts.append(piece)
            length -= len(piece)
        return b"".join(parts)

    def _refuse_trailing(self) -> None:
        if self._waiting:
            raise Invalid("bytes after the last frame of the pack")


def read_toc(raw: bytes) -> list[FrameRow]:
    """Decode and check the table of a pack. Raises Invalid or TooLarge for a bad one.

    In a good one the bytes are canonical, no frame is empty, no digest occurs twice, and the sizes add up.
    Frames and pack stay within FRAME_RAW_MAX, PACK_BYTES and PACK_RAW_BYTES."""
    try:
        rows = msgspec.msgpack.decode(raw, type=list[FrameRow])
    except (msgspec.MsgspecError, RecursionError):
        raise Invalid("the table of the pack cannot be read") from None
    if msgspec.msgpack.encode(rows) != raw:
        raise Invalid("the table of the pack is not in canonical form")
    seen: set[bytes] = set()
    total = _HEADER + len(raw)
    for row in rows:
        _check_row(row, seen)
        total += row.stored_len
    if total > limits.PACK_BYTES:
        raise TooLarge(f"a pack has at most {limits.PACK_BYTES} bytes")
    if sum(row.raw_len for row in rows) > limits.PACK_RAW_BYTES:
        raise TooLarge(f"a pack unpacks to at most {limits.PACK_RAW_BYTES} bytes")
    return rows


def _check_row(row: FrameRow, seen: set[bytes]) -> None:
    if row.codec not in (RAW, ZSTD):
        raise Invalid(f"unknown codec {row.codec} in a pack")
    if row.raw_len > limits.FRAME_RAW_MAX:
        raise TooLarge(f"a frame of a pack holds at most {limits.FRAME_RAW_MAX} bytes")
    if row.codec == RAW and row.stored_len != row.raw_len:
        raise Invalid("a raw frame is stored as long as it is")
    if row.codec == ZSTD and not 0 < row.stored_len < row.raw_len:
        raise Invalid("a compressed frame is shorter than what it holds")
    if not row.objects:
        raise Invalid("a frame of a pack holds at least one object")
    if (
        min(entry.size for entry in row.objects) < 0
        or sum(entry.size for entry in row.objects) != row.raw_len
    ):
        raise Invalid("the objects of a frame do not fill it")
    for entry in row.objects:
        if len(entry.digest) != DIGEST_SIZE:
            raise Invalid(f"a digest has {DIGEST_SIZE} bytes")
        if entry.digest in seen:
            raise Invalid(f"object {entry.digest.hex()[:12]} is in the pack twice")
        seen.add(entry.digest)
