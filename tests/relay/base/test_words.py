"""Words of a text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from relay.base.words import LONG, MANY, words


def test_words() -> None:
    assert words("Read the docs, read_me: don't!") == ["read", "the", "docs", "me", "don", "t"]
    assert words("STRASSE", "Straße ÜBER") == ["strasse", "über"]
    assert words("日本 ABC日") == ["日", "本", "abc"]
    assert words("", "_ - %\u202e") == []
    assert words("ｆｕｌｌ") == ["full"]


@given(st.text(), st.text(), st.integers(1, 5))
def test_whatever_the_text_is(title: str, body: str, many: int) -> None:
    found = words(title, body)
    assert len(found) == len(set(found)) <= MANY
    assert words(title, body, many=many) == found[:many]
    assert all(0 < len(one) <= LONG and one == one.casefold() for one in found)
    assert words(title.upper()) == words(title.upper().lower().upper())
    if len(found) < MANY:
        assert set(found) >= set(words(body))
        assert set(words(unicodedata.normalize("NFKC", title))) <= set(found)
