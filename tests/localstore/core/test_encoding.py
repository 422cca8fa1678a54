"""Canonical bytes: one spelling for each value, and RFC 8785 as another implementation writes it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import rfc8785
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from localstore.core.encoding import b64u, digest, hex_digest, jcs, length_prefixed, unb64u, unhex
from localstore.core.errors import Invalid

LARGEST = (1 << 53) - 1
scalars = st.none() | st.booleans() | st.integers(-LARGEST, LARGEST) | st.text()
keys = st.text(st.characters(max_codepoint=127), max_size=8)
values = st.recursive(scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(keys, v, max_size=4))


@settings(max_examples=300, deadline=None)
@given(values)
def test_jcs_is_rfc_8785(value: Any) -> None:
    assert jcs(value) == rfc8785.dumps(value)


def test_jcs_escapes_as_rfc_8785_says() -> None:
    every = "".join(map(chr, range(0x80))) + "é\u2028\u2029\ud7ff\uffff\U0001f600"
    assert jcs({"b": every, "a": [1, True, None]}) == rfc8785.dumps({"a": [1, True, None], "b": every})


@pytest.mark.parametrize(
    "value", [1.0, math.nan, LARGEST + 1, -LARGEST - 1, "\ud800", {"é": 1}, {1: 2}, b"x", {"a": [{"b": 0.5}]}]
)
def test_jcs_refuses_what_has_no_exact_form(value: Any) -> None:
    with pytest.raises(Invalid):
        jcs(value)


@given(st.binary(max_size=64))
def test_base64url_round_trip(raw: bytes) -> None:
    text = b64u(raw)
    assert "=" not in text
    assert unb64u(text, len(raw)) == raw
    with pytest.raises(Invalid):
        unb64u(text, len(raw) + 1)


@pytest.mark.parametrize("text", ["AA==", "AB", "A", "A+/A", "AA\n", " AA", "é", "AAA ", "A=A"])
def test_base64url_refuses_other_spellings(text: str) -> None:
    with pytest.raises(Invalid):
        unb64u(text)


@given(st.text(max_size=12))
def test_base64url_accepts_only_what_it_writes(text: str) -> None:
    try:
        raw = unb64u(text)
    except Invalid:
        return
    assert b64u(raw) == text


def test_digest_is_blake3() -> None:
    assert digest(b"abc") == blake3(b"abc").digest() == unhex(hex_digest(b"abc"))
    assert hex_digest(b"") == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


@pytest.mark.parametrize("text", ["", "AF" * 32, "a" * 63, "a" * 65, "g" * 64, "é" * 64, "\u0661" * 64])
def test_hex_digest_has_one_spelling(text: str) -> None:
    with pytest.raises(Invalid):
        unhex(text)


def test_length_prefix_keeps_parts_apart() -> None:
    assert length_prefixed(b"ab", b"") == b"\0\0\0\2ab\0\0\0\0"
    assert length_prefixed(b"a", b"b") != length_prefixed(b"ab")
