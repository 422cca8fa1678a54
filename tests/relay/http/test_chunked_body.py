"""Bodies in chunks: one reader, however bytes arrive, and nothing that two readers could read in two ways."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from relay.http.chunked_body import AT_ONCE, LEAST_BYTES, SMALL_CHUNKS, ChunkedBody, Malformed
from tests.depth import rounds

NEXT = b"GET /next HTTP/1.1\r\n\r\n"
STRICT = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t -~]{0,64})?\r\n")


def read(pieces):
    """All content of a body that arrives in these pieces, and what is left behind it; None: it goes on."""
    body, arrived, content = ChunkedBody(), bytearray(), bytearray()
    for piece in pieces:
        arrived += piece
        while not body.ended and ((part := body.read_content(arrived)) or body.busy):
            content += part
    return (bytes(content), bytes(arrived)) if body.ended else None


def plainly(data):
    """The same, read another way: all at once, line after line. ValueError for what is malformed."""
    content, at = b"", 0
    while True:
        line = STRICT.match(data, at)
        if line is None:
            raise ValueError(data)
        size, at = int(line[1], 16), line.end()
        content, at = content + data[at : at + size], at + size
        if data[at : at + 2] != b"\r\n":
            raise ValueError(data)
        at += 2
        if size == 0:
            return content, data[at:]


def encoded(parts, extension=b"", last=b"0"):
    chunks = [b"%x%s\r\n%s\r\n" % (len(one), extension, one) for one in parts]
    return b"".join(chunks) + last + b"\r\n\r\n"


@given(
    st.lists(st.binary(min_size=1, max_size=300), max_size=20),
    st.sampled_from([b"", b";", b";a=b", b" ;\ta", b'; name="some thing"']),
    st.lists(st.integers(0, 400), max_size=12),
)
def test_content_comes_out_however_it_arrives(parts, extension, cuts):
    data = encoded(parts, extension) + NEXT
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(at)]
    assert read(pieces) == (b"".join(parts), NEXT)


_PIECES = st.sampled_from(
    [b"0", b"1", b"5", b"a", b"F", b"\r\n", b"\r", b"\n", b" ", b"\t", b"\x0b", b"\x0c", b"\x85", b"\xa0",
     b";", b";x", b"hello", b"x", b"-", b"+", b"0x", b"_", b"\0", b"5\r\nhello\r\n", b"0\r\n\r\n"]
)  # fmt: skip


@settings(max_examples=rounds(600, 3000))
@given(st.one_of(st.lists(_PIECES, max_size=12).map(b"".join), st.binary(max_size=30)))
@example(b"5\r\nhello\r\n0\r\n\r\nGET")
@example(b"5\r\nhello\r\n0\r\n \r\n")
@example(b"0" * 15 + b"\r\n\r\n")
@example(b"0" * 16 + b"\r\n\r\n")
def test_two_ways_of_reading_agree(data):
    """What is cut off after any byte is either the same in the end, or refused, or goes on."""
    try:
        expected = plainly(data)
    except ValueError:
        expected = None
    try:
        found = read(data[n : n + 1] for n in range(len(data)))
    except Malformed:
        assert expected is None
        with pytest.raises(Malformed):
            read([data])
        return
    assert found == expected or (found is None and expected is None)
    assert read([data]) == found


HOSTILE = {
    "no size": b"\r\nhello\r\n",
    "a size of C": b"0x5\r\nhello\r\n",
    "a size with a sign": b"+5\r\nhello\r\n",
    "a size with an underscore": b"0_5\r\nhello\r\n",
    "a size in other digits": "\u0665\r\nhello\r\n".encode(),
    "a size of too many digits": b"0" * 16 + b"\r\n",
    "a size that would wrap": b"10000000000000005\r\nhello\r\n",
    "a space before the size": b" 5\r\nhello\r\n",
    "a space behind the size": b"5 \r\nhello\r\n",
    "a vertical tab behind the size": b"5\x0b\r\nhello\r\n",
    "a form feed before the extension": b"5\x0c;a\r\nhello\r\n",
    "a no-break space": b"5\xa0\r\nhello\r\n",
    "a bare line feed": b"5\nhello\n",
    "a bare carriage return": b"5\rhello\r",
    "a line feed in an extension": b"5;a\nb\r\nhello\r\n",
    "a carriage return in an extension": b"5;a\rb\r\nhello\r\n",
    "a NUL in an extension": b"5;a\0b\r\nhello\r\n",
    "an extension without end": b"5;" + b"a" * 65 + b"\r\nhello\r\n",
    "spaces without end": b"5" + b" " * 200,
    "content without its end": b"5\r\nhelloX",
    "content that ends with a line feed": b"5\r\nhello\n",
    "a size that is too small": b"4\r\nhello\r\n",
    "a trailer": b"0\r\nContent-Length: 34\r\n\r\n",
    "a space for a trailer": b"0\r\n \r\n",
    "a line feed for the last line": b"0\r\n\n",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_chunks_are_refused(data):
    with pytest.raises(Malformed):
        read([data])
    with pytest.raises(Malformed):
        read(data[n : n + 1] for n in range(len(data)))


def test_very_many_small_chunks_are_refused():
    chunk = b"1\r\nx\r\n"
    with pytest.raises(Malformed, match="too many small chunks"):
        read([chunk * (2 * SMALL_CHUNKS)])
    few = [b"x"] * (SMALL_CHUNKS - 1)
    assert read([encoded(few)]) == (b"".join(few), b"")
    large = [b"x" * LEAST_BYTES] * (4 * SMALL_CHUNKS)
    assert read([encoded(large)]) == (b"".join(large), b"")


def test_others_have_their_turn_between_many_chunks():
    body, arrived = ChunkedBody(), bytearray(b"1\r\nx\r\n" * (2 * AT_ONCE))
    assert 0 < len(body.read_content(arrived)) <= AT_ONCE
    assert body.busy and arrived
