"""Words of a text."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from relay.base.words import LONG, MANY, find_words


def test_words() -> None:
    assert find_words("Read the docs, read_me: don't!") == ["read", "the", "docs", "me", "don", "t"]
    assert find_words("STRASSE", "Straße ÜBER") == ["strasse", "über"]
    assert find_words("日本 ABC日") == ["日", "本", "abc"]
    assert find_words("", "_ - %\u202e") == []
    assert find_words("ｆｕｌｌ") == ["full"]


@given(st.text(), st.text(), st.integers(1, 5))
def test_whatever_the_text_is(title: str, body: str, many: int) -> None:
    found = find_words(title, body)
    assert len(found) == len(set(found)) <= MANY
    assert find_words(title, body, many=many) == found[:many]
    assert all(0 < len(one) <= LONG and one == one.casefold() for one in found)
    assert find_words(title.upper()) == find_words(title.upper().lower().upper())
    if len(found) < MANY:
        assert set(found) >= set(find_words(body))
        assert set(find_words(unicodedata.normalize("NFKC", title))) <= set(found)
