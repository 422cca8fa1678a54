"""Patterns of branch names: `*` matches any characters within one segment, `**` also slashes.

Matching takes one step for each character of the name, for any pattern.
"""

from __future__ import annotations

import re

from localstore.core import names
from localstore.core.errors import Invalid
from localstore.core.model.limits import PATTERN_WILDCARDS

_STARS = re.compile(r"\*+")


def check(pattern: str) -> str:
    """Returns the pattern with each run of three or more stars shortened to `**`. Raises Invalid if no branch
    can have a name that matches it, or if it has more than PATTERN_WILDCARDS wildcards."""
    plain = _STARS.sub(lambda run: run[0][:2], pattern)
    try:
        names.ref_name(plain.replace("*", "x"))
    except Invalid as error:
        raise Invalid(f"no branch has a name like this pattern: {error.detail}", pointer="/pattern") from None
    if len(_STARS.findall(plain)) > PATTERN_WILDCARDS:
        raise Invalid(f"a pattern has at most {PATTERN_WILDCARDS} wildcards", pointer="/pattern")
    return plain


def matches(pattern: str, name: str) -> bool:
    """Whether the pattern matches the whole name. Bit n of the number `at` is set if the first n tokens of
    the pattern can match the part of the name that was read so far. A token is a run of stars, or any other
    single character."""
    tokens = re.findall(r"\*+|[^*]", pattern, re.DOTALL)
    stars = sum(1 << n for n, token in enumerate(tokens) if token[0] == "*")
    wide = sum(1 << n for n, token in enumerate(tokens) if token[:2] == "**")
    exact: dict[str, int] = {}
    for n, token in enumerate(tokens):
        if token[0] != "*":
            exact[token] = exact.get(token, 0) | 1 << n
    at = 1 | (1 & stars) << 1
    for char in name:
        at = (at & exact.get(char, 0)) << 1 | at & (wide if char == "/" else stars)
        at |= (at & stars) << 1
    return bool(at >> len(tokens) & 1)
