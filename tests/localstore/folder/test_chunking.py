"""Lists of chunks: the file they came from, and how much memory they may take."""

from __future__ import annotations

import io
import random

import pytest

from localstore.core.encoding import digest
from localstore.core.model import limits
from localstore.folder import chunking
from localstore.folder.chunking import ChunkList, ChunkLists, cut_into_chunks

DATA = random.Random(3).randbytes(3 * limits.MIB + 17)


def list_of(count: int) -> ChunkList:
    made = ChunkList()
    for number in range(count):
        made.add(memoryview(b"%d" % number))
    return made


class Trickle(io.BytesIO):
    """Reads less than it is asked for."""

    def readinto(self, buffer: object) -> int:
        return super().readinto(memoryview(buffer)[:70_001])  # type: ignore[arg-type]


@pytest.mark.parametrize("file", [io.BytesIO, Trickle])
def test_a_list_is_the_file_in_order_and_the_pass_shows_all_of_it(file: type[io.BytesIO]) -> None:
    seen = bytearray()
    found = list(cut_into_chunks(file(DATA), seen.extend))
    assert bytes(seen) == DATA
    assert [one.offset for one in found] == [sum(one.size for one in found[:at]) for at in range(len(found))]
    assert all(digest(DATA[one.offset :][: one.size]) == one.digest for one in found)
    assert sum(one.size for one in found) == len(DATA)
    assert found == list(cut_into_chunks(io.BytesIO(DATA)))


def test_the_oldest_lists_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "KEPT_BYTES", 10 * 36)
    lists = ChunkLists()
    for name in (b"a", b"b", b"b", b"c"):
        lists.keep(name, list_of(4))
    assert lists.pop(b"a") is None
    kept = lists.pop(b"b")
    assert kept is not None and len(list(kept)) == 4
    assert lists.pop(b"b") is None, "whoever takes a list has it"
    lists.keep(b"d", list_of(11))
    assert lists.pop(b"c") is None
    assert lists.pop(b"d") is None, "one that is too large alone is not kept"
