"""Splits texts into words for the search. The relay keeps the index of these words in a table of its own. The
text searches of SQLite and PostgreSQL would split texts differently, and both would sort all matches to find
the newest."""

from __future__ import annotations

import re
import unicodedata

MANY, LONG = 400, 64  # distinct words of one text; characters of a word
# Chinese and Japanese write no spaces: each of their characters counts as a word.
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(f"[{_IDEOGRAPHS}]|[^\\W_{_IDEOGRAPHS}]+")


def find_words(*texts: str, many: int = MANY) -> list[str]:
    """The first `many` distinct words of the texts, in order and in lower case. `read_me` is two words."""
    distinct: dict[str, None] = {}
    for text in texts:
        for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
            distinct.setdefault(match[0][:LONG])
            if len(distinct) == many:
                return list(distinct)
    return list(distinct)
