from __future__ import annotations

import re

import pytest

from localstore.core.ignore.wildmatch import NEVER, expression, octets


def matches(pattern: str, text: str, *, pathname: bool = True) -> bool:
    return re.fullmatch(expression(octets(pattern), pathname=pathname), octets(text), re.DOTALL) is not None


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a/*/c", "a/b/c", True),
        ("a/*/c", "a/b/b/c", False),
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("**/c/**/e", "a/c/d/c/e", True),
        ("a/**", "a", False),
        ("a/**", "a/b/c", True),
        ("foo**/bar", "foobar", True),
        ("foo**/bar", "foo/x/bar", True),
        ("x?foo**/bar", "x.foo/y/bar", False),
        ("**\\/a", "a", False),
        ("**\\/a", "b/a", True),
        ("*a*ab", "aaab", True),
        ("[a/b]", "/", False),
        ("[[:space:]]", "\v", False),
        ("[[:space:]]", "\t", True),
        ("[]-a]", "^", True),
        ("[!]a]", "b", True),
        ("[z-a]", "m", False),
        ("[[:]", ":", True),
        ("\\*", "*", True),
        ("?", "é", False),
    ],
)
def test_git_semantics(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@pytest.mark.parametrize("pattern", ["[a", "a\\", "[[:bad:]]", "[\\", "[[:a", "[a-", "?" * 1025])
def test_malformed_or_endless_patterns_match_nothing(pattern: str) -> None:
    assert expression(pattern, pathname=False) == NEVER
