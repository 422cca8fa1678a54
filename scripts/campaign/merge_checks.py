"""Checks of rules that every merged file must meet."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator

from localstore.core.diff.word_merge import tokens
from scripts.campaign.merge_cases import MergeCase


def breaks_python(case: MergeCase, text: bytes) -> bool:
    """Whether the merged text is no valid Python although all three versions of the file are."""
    before = (case.base, case.theirs, case.mine)
    return case.path.endswith(".py") and all(map(_parses, before)) and not _parses(text)


def _parses(text: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def strange_words(case: MergeCase, text: bytes) -> Iterator[str]:
    """Find words that a merge should not have made. Yields `strange` if the merged text has a word that
    neither side has. Yields `repeated` if it has a word more than once that each side has once."""
    theirs, mine, merged = (Counter(tokens(one.decode())) for one in (case.theirs, case.mine, text))
    if any(token not in theirs and token not in mine for token in merged):
        yield "strange"
    if any(theirs[token] == mine[token] == 1 < count for token, count in merged.items() if token.strip()):
        yield "repeated"
