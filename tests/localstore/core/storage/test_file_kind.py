from __future__ import annotations

from itertools import pairwise

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.model.limits import MIB, TEXT_FILE
from localstore.core.storage.file_kind import Classifier, kind_of


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "text"),
        (b"a\r\nb\x1b", "text"),
        ("日本".encode(), "text"),
        (b"\xef\xbb\xbfx", "text"),
        (b"a\0b", "blob"),
        (b"\xff", "blob"),
        (b"ok\xc3", "blob"),
        (b"\xed\xa0\x80", "blob"),
        (b"\xc0\xaf", "blob"),
    ],
)
def test_kind_of(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind


fragments = st.sampled_from(
    [b"a", "é".encode(), "日".encode(), "💥".encode(), b"\0", b"\xc3", b"\xff", b"\xf0\x9f"]
)
contents = st.lists(fragments | st.binary(max_size=4), max_size=12).map(b"".join)


@given(contents, st.lists(st.integers(0, 48), max_size=6))
@settings(max_examples=300, deadline=None)
def test_streaming_equals_whole(data: bytes, cuts: list[int]) -> None:
    classifier = Classifier()
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in pairwise(edges):
        classifier.feed(data[start:end])
    assert classifier.result() == (kind_of(data), len(data), blake3(data).digest())


@pytest.mark.parametrize(("extra", "kind"), [(0, "text"), (1, "blob")])
def test_text_ends_at_the_limit(extra: int, kind: str) -> None:
    data = b"x" * (TEXT_FILE + extra)
    classifier = Classifier()
    for start in range(0, len(data), MIB):
        classifier.feed(data[start : start + MIB])
    assert classifier.result() == (kind, len(data), blake3(data).digest())
    assert kind_of(data) == kind
