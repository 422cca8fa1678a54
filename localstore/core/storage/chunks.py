"""Content-defined chunks: how a large file is cut into chunks, and the chunk manifest that lists them.

    manifest = JCS {"blake3": hex, "chunks": [{"blake3": hex, "size": int}, …], "size": int, "v": 1}

Version 1 cuts with FastCDC 2020 (Xia et al.): the gear table of pyfastcdc with seed 0, minimum 8 KiB, maximum
128 KiB, normalization 2 around 56 KiB, which gives chunks of 64 KiB on average. With other parameters every
file would be cut at other places and share no chunks with stored files. So other parameters need a new
version; golden vectors in the tests fix version 1. Readers verify digests and sizes, not the cuts.

The digest of a large file is the BLAKE3 of its bytes, as for any file; its manifest is a separate object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from localstore.core.encoding import is_hex_digest
from localstore.core.errors import Invalid, TooLarge
from localstore.core.model import limits
from localstore.core.names import MANIFEST

VERSION = 1
AVERAGE, SEED = 56 * limits.KIB, 0
NORMALIZATION: Literal[2] = 2
BULK_KINDS = frozenset({"model", "modelpack", "dataset"})  # no cap on bytes but CHUNKED_FILE
KINDS = BULK_KINDS | {"app"}  # repositories that may hold files above BLOB_FILE
RAISED = f"limits.max_file_mib in {MANIFEST} raises it"  # the cap of an app, for those who meet it
ELSEWHERE = "a repository of kind dataset or model takes it"  # above every cap of the other kinds
WINDOW = 1 * limits.MIB  # taken in at once: it stays in the processor's cache


class ChunkRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """One chunk of a file: its BLAKE3 in hex and its size in bytes."""

    blake3: str
    size: int


class ChunkManifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The list of a file's chunks, in order. `blake3` (hex) and `size` (bytes) are of the whole file. The
    members are declared in the order of canonical JSON."""

    blake3: str
    chunks: list[ChunkRow]
    size: int
    v: int = VERSION


def file_cap(repo_kind: str, max_file_mib: int | None = None) -> int:
    """The most bytes that one binary file may have in a repository of this kind: CHUNKED_FILE for BULK_KINDS,
    BLOB_FILE for others. The manifest of an app may raise this limit to `max_file_mib`, at most to
    APP_FILE_CLAMP. It cannot lower the limit."""
    if repo_kind in BULK_KINDS:
        return limits.CHUNKED_FILE
    if repo_kind != "app" or max_file_mib is None:
        return limits.BLOB_FILE
    return min(max(max_file_mib * limits.MIB, limits.BLOB_FILE), limits.APP_FILE_CLAMP)


def kind_of_bytes(size: int, repo_kind: str) -> Literal["blob", "chunked"]:
    """How a binary file of this size is stored in a repository of this kind: as one object (`blob`) or in
    chunks (`chunked`)."""
    return "chunked" if size > limits.BLOB_FILE and repo_kind in KINDS else "blob"


# --- cutting


class Chunker:
    """Cuts a stream of bytes into chunks. The cuts do not depend on the pieces in which the stream arrives.
    Callers read bytes directly into the buffer of the chunker (`space`), so that little is copied.

    >>> chunker = Chunker()
    >>> chunker.space()[:200_000] = bytes(200_000)
    >>> [len(chunk) for chunk in (*chunker.feed(200_000), *chunker.finish())]
    [131072, 68928]"""

    def __init__(self) -> None:
        from pyfastcdc import FastCDC  # 18 ms of CPU, for those who cut

        self._cutter = FastCDC(
            AVERAGE,
            min_size=limits.CHUNK_MIN,
            max_size=limits.CHUNK_MAX,
            normalized_chunking=NORMALIZATION,
            seed=SEED,
        )
        self._buffer = memoryview(bytearray(limits.CHUNK_MAX + WINDOW))
        self._rest = 0  # bytes in front that belong to the next chunk, always fewer than CHUNK_MAX

    def space(self) -> memoryview:
        """The part of the buffer that the next bytes are written to: at most WINDOW bytes."""
        return self._buffer[self._rest : self._rest + WINDOW]

    def feed(self, count: int) -> Iterator[memoryview]:
        """Yields the chunks that are complete after `count` bytes were written to `space`. Each chunk is a
        view of the buffer, so use it before the next call of `space`, and take all chunks."""
        filled = self._rest + count
        end = 0
        if filled >= limits.CHUNK_MAX:
            for chunk in self._cutter.cut_buf(self._buffer[:filled]):
                if chunk.offset + limits.CHUNK_MAX > filled:
                    break  # the next bytes may still move this cut
                end = chunk.offset + chunk.length
                yield chunk.data
        self._rest = filled - end
        self._buffer[: self._rest] = self._buffer[end:filled]

    def finish(self) -> Iterator[memoryview]:
        """Yields the remaining chunks at the end of the stream."""
        rest, self._rest = self._rest, 0
        if rest:
            for chunk in self._cutter.cut_buf(self._buffer[:rest]):
                yield chunk.data


# --- the manifest


def manifest(blake3: bytes, rows: Iterable[tuple[bytes, int]]) -> ChunkManifest:
    """The manifest of a file with the digest `blake3`. `rows`: (digest, size) of each chunk."""
    chunks = [ChunkRow(digest.hex(), size) for digest, size in rows]
    return ChunkManifest(blake3=blake3.hex(), chunks=chunks, size=sum(chunk.size for chunk in chunks))


def encode(chunk_manifest: ChunkManifest) -> bytes:
    """The canonical bytes of a manifest. Raises TooLarge for more chunks than a manifest may list."""
    raw = msgspec.json.encode(chunk_manifest)
    _require_short(raw)
    return raw


def decode(raw: bytes) -> ChunkManifest:
    """Decode and check a chunk manifest. Raises Invalid or TooLarge for a bad one.

    In a good one the bytes are canonical, the version is 1, and digests are 64 lowercase hex digits. Each
    chunk has CHUNK_MIN to CHUNK_MAX bytes; only the last may be smaller. The sizes add up to the size of the
    file, which is larger than the cap of a blob and at most CHUNKED_FILE."""
    _require_short(raw)
    try:
        chunk_manifest = msgspec.json.decode(raw, type=ChunkManifest)
    except (msgspec.MsgspecError, RecursionError):
        raise Invalid("this is not a manifest of chunks") from None
    if msgspec.json.encode(chunk_manifest) != raw:
        raise Invalid("the manifest is not in canonical form (RFC 8785)")
    if chunk_manifest.v != VERSION:
        raise Invalid(f"unknown version {chunk_manifest.v} of a manifest of chunks")
    _check_whole(chunk_manifest)
    _check_chunks(chunk_manifest)
    return chunk_manifest


def _require_short(raw: bytes) -> None:
    if len(raw) > limits.CHUNK_MANIFEST:
        raise TooLarge(f"a manifest of chunks has at most {limits.in_words(limits.CHUNK_MANIFEST)}")


def _check_whole(chunk_manifest: ChunkManifest) -> None:
    if not is_hex_digest(chunk_manifest.blake3):
        raise Invalid("a manifest names its file: blake3 is 64 lowercase hex digits", "/blake3")
    if chunk_manifest.size > limits.CHUNKED_FILE:
        raise TooLarge(
            f"a file has at most {limits.in_words(limits.CHUNKED_FILE)}; this one has {chunk_manifest.size}"
        )
    if chunk_manifest.size <= limits.BLOB_FILE:
        raise Invalid(
            f"files of at most {limits.in_words(limits.BLOB_FILE)} are stored whole, not in chunks", "/size"
        )


def _check_chunks(chunk_manifest: ChunkManifest) -> None:
    last = len(chunk_manifest.chunks) - 1
    for at, chunk in enumerate(chunk_manifest.chunks):
        if not is_hex_digest(chunk.blake3):
            raise Invalid("a chunk is named by 64 lowercase hex digits", f"/chunks/{at}/blake3")
        least = limits.CHUNK_MIN if at < last else 1
        if not least <= chunk.size <= limits.CHUNK_MAX:
            raise Invalid(
                f"a chunk has {least} to {limits.CHUNK_MAX} bytes, not {chunk.size}", f"/chunks/{at}/size"
            )
    if sum(chunk.size for chunk in chunk_manifest.chunks) != chunk_manifest.size:
        raise Invalid("the chunks of this manifest do not add up to its size", "/size")
