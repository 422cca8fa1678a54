"""One directory: what `encode` writes `decode` takes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core import tree
from localstore.core.encoding import digest
from localstore.core.errors import Invalid
from localstore.core.tree import Child, Directory, TreeEntry

KEY = bytes(range(32))


def text(content: str) -> TreeEntry:
    return TreeEntry("text", digest(content.encode()), len(content))


D = digest(b"x")
UNSAFE_NAMES = ["a/b", "a\\b", "a\nb", "a\x00", "a\x1f", "a\x7f", "x" * 256, "é" * 128, "é/", "a\n"]


@pytest.mark.parametrize("names", [["!"], ["a", "b c", "~"], ["...", "a"], ["a", "é" * 127], ["x" * 255]])
def test_decode_takes_every_name_that_a_path_may_have(names: list[str]) -> None:
    directory = Directory(1, [Child(name, "text", D, 1) for name in names], [])
    assert tree.decode(tree.encode(directory)) == directory


@pytest.mark.parametrize(
    "broken",
    [
        Directory(1, [], []),
        Directory(2, [Child("a", "text", D, 1)], []),
        Directory(1, [Child("b", "text", D, 1), Child("a", "text", D, 1)], []),
        Directory(1, [Child("a", "text", D, 1), Child("a", "text", D, 1)], []),
        Directory(1, [Child("a/b", "text", D, 1)], []),
        Directory(1, [Child("..", "dir", D, 1)], []),
        *(Directory(1, [Child("0", "text", D, 1), Child(name, "text", D, 1)], []) for name in UNSAFE_NAMES),
        Directory(1, [Child("a", "text", D[:31], 1)], []),
        Directory(1, [Child("a", "text", D, -1)], []),
        Directory(1, [Child("a", "text", D, 1 << 53)], []),
        Directory(1, [Child("a", "text", D, 1, b"short")], []),
        Directory(1, [Child("a", "link", D, 1)], []),  # type: ignore[arg-type]
        Directory(1, [], [D, D]),
        Directory(1, [], [D + b"x"]),
    ],
)
def test_decode_refuses_what_encode_of_a_tree_never_writes(broken: Directory) -> None:
    with pytest.raises(Invalid):
        tree.decode(tree.encode(broken))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_decode_takes_no_second_spelling(data: st.DataObject) -> None:
    built = tree.build({"a": text("1"), "b/c": text("2")}, KEY)
    raw = bytearray(built.directories[built.root])
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        directory = tree.decode(bytes(raw))
    except Invalid:
        return
    assert tree.encode(directory) == raw


@pytest.mark.parametrize(
    "respelt",
    [
        lambda row: msgspec.msgpack.encode([1, [row[:4]], []]),
        lambda row: msgspec.msgpack.encode([1, [row], []]).replace(b"\x07\xc0", b"\xcc\x07\xc0"),
        lambda row: msgspec.msgpack.encode([1, [row], []]) + b"\0",
        lambda row: msgspec.msgpack.encode([1, [row], [], 0]),
    ],
)
def test_decode_refuses_other_spellings(respelt: Callable[[list[object]], bytes]) -> None:
    row = ["a", "text", D, 7, None]
    assert tree.decode(msgspec.msgpack.encode([1, [row], []])).children == [Child("a", "text", D, 7)]
    with pytest.raises(Invalid):
        tree.decode(respelt(row))


@given(st.binary(max_size=80))
def test_decode_of_noise_is_invalid(raw: bytes) -> None:
    with pytest.raises(Invalid):
        tree.decode(raw)
