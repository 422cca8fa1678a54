"""The file of a backup that holds every row of a database, for every kind of database (version 2 of backups).

file = zstd( item… )                     item = u32 length, big-endian ‖ msgpack
item = {"table": …, "columns": […]}      a table begins; tables that it refers to come before it
     | [[value, …], …]                   some of its rows
     | nil                               the end
value = nil | boolean | integer of 64 bits | text | bytes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import zstandard
from sqlalchemy import Table

from localstore.core.errors import Invalid
from localstore.core.model.limits import MIB
from relay.backup.files import Writing
from relay.base.threads import run_on_thread
from relay.db.engine.database import Tx
from relay.db.storage import backup as statements

ROWS = 1000  # fetched and encoded at once
ITEM = 1 * MIB  # bytes after which an item ends
_LONGEST = 2**31
_ARRAY = b"\xdd"  # msgpack: an array, its length in 32 bits
_encode = msgspec.msgpack.Encoder().encode


class Begin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    table: str
    columns: list[str]


Item = Begin | list[list[Any]]
_decoder: msgspec.msgpack.Decoder[Item | None] = msgspec.msgpack.Decoder(Item | None)


@dataclass(slots=True)
class Rows:
    """A table in the file of a backup. Read all its `rows` before the next table, because the file is read
    from front to back."""

    name: str
    columns: list[str]
    rows: Iterator[list[Any]]


async def write(tx: Tx, to: Path) -> int:
    """Write all tables as this transaction sees them. Returns the number of rows."""
    count = 0
    async with Writing(to) as writing:
        out = _Items(writing)
        for table, statement in statements.TABLES:
            out.item(_encode(_begin(table)))
            booleans = statements.find_booleans(table)
            batch: list[Sequence[Any]] = []
            async for row in tx.stream(statement):
                batch.append(row)
                if len(batch) == ROWS:
                    count += len(batch)
                    await run_on_thread(out.rows, batch, booleans)
                    batch = []
            count += len(batch)
            await run_on_thread(out.rows, batch, booleans)
            out.flush()
        out.end()
    return count


def read(path: Path) -> Iterator[Rows]:
    """Yields the tables in the file of a backup, in the order of the file. Raises Invalid for a file that
    `write` has not made."""
    items = _items(path)
    item = next(items, None)
    while item is not None:
        if not isinstance(item, Begin):
            raise Invalid(f"{path} has rows before the first table")
        following: list[Begin] = []
        rows = _rows(items, len(item.columns), following)
        yield Rows(item.table, item.columns, rows)
        for _ in rows:
            raise RuntimeError("the rows of a table are read before the next one")
        item = following[0] if following else None


def _begin(table: Table) -> Begin:
    return Begin(str(table.name), [str(column.name) for column in table.columns])


class _Items:
    """Writes the items of a backup's database file, compressed. Its method `rows` may be called on a thread,
    one call at a time."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._zstd = zstandard.ZstdCompressor(level=3).compressobj()
        self._encoded = bytearray()
        self._count = 0

    def item(self, data: bytes) -> None:
        self._writing.write(self._zstd.compress(len(data).to_bytes(4) + data))

    def rows(self, batch: list[Sequence[Any]], booleans: list[int]) -> None:
        for row in batch:
            values = list(row)
            for n in booleans:
                values[n] = None if values[n] is None else bool(values[n])
            self._encoded += _encode(values)
            self._count += 1
            if len(self._encoded) >= ITEM:
                self.flush()

    def flush(self) -> None:
        if self._count:
            self.item(_ARRAY + self._count.to_bytes(4) + self._encoded)
            self._encoded.clear()
            self._count = 0

    def end(self) -> None:
        self.item(_encode(None))
        self._writing.write(self._zstd.flush())


def _items(path: Path) -> Iterator[Item]:
    try:
        with path.open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
            while True:
                length = int.from_bytes(_read_exactly(stream, 4, path))
                if length > _LONGEST:
                    raise Invalid(f"{path} holds an item of {length} bytes")
                item = _decoder.decode(_read_exactly(stream, length, path))
                if item is None:
                    return
                yield item
    except (msgspec.MsgspecError, zstandard.ZstdError) as error:
        raise Invalid(f"{path} is damaged: {error}") from None


def _read_exactly(stream: BinaryIO, length: int, path: Path) -> bytes:
    data = b""
    while len(data) < length and (piece := stream.read(length - len(data))):
        data += piece
    if len(data) < length:
        raise Invalid(f"{path} ends in the middle")
    return data


def _rows(items: Iterator[Item], columns: int, following: list[Begin]) -> Iterator[list[Any]]:
    for item in items:
        if isinstance(item, Begin):
            following.append(item)
            return
        for row in item:
            if len(row) != columns:
                raise Invalid(f"a row has {len(row)} values for {columns} columns")
            yield row
