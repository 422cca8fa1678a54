"""The lines of a text that match: against `grep -n`, and against each line looked at alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localstore.core.errors import UsageError
from svc.flows.search.lines import TextLine, compile_pattern

ENDS = st.sampled_from(["\n", "\r\n", "\n\n"])
WORDS = st.text(st.sampled_from("abAB_ .é-Ωß\t\x0b\u2028\r"), max_size=8) | st.just("ab " * 3000)
TEXTS = st.lists(st.tuples(WORDS, ENDS), max_size=12).flatmap(
    lambda lines: WORDS.map(lambda last: "".join(word + end for word, end in lines) + last)
)
PLAIN = st.text(st.sampled_from("abAB_ é-Ω"), max_size=3)
PATTERNS = st.sampled_from(
    ["a", "a+b", "^", "$", "^$", "^a", "b$", "[aé].", "(ab|B)+", "a*", "é|_", ".", "^.{2,4}$"]
)


def lines_of(text: str) -> list[str]:
    """The lines by grep's rule, without line feeds and the carriage returns before them."""
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]


def found(text: str, typed: str, **settings: bool) -> list[TextLine]:
    return list(compile_pattern(typed, **settings).lines_of(text))


@given(TEXTS, PATTERNS | PLAIN, st.booleans(), st.booleans(), st.booleans())
def test_each_line_is_searched_alone(text: str, typed: str, fixed: bool, fold: bool, whole: bool) -> None:
    body = re.escape(typed) if fixed else typed
    regex = re.compile(rf"(?<!\w)(?:{body})(?!\w)" if whole else body, re.IGNORECASE if fold else 0)
    expected = [TextLine(at, line) for at, line in enumerate(lines_of(text), 1) if regex.search(line)]
    assert found(text, typed, fixed=fixed, ignore_case=fold, whole_words=whole) == expected


@given(TEXTS, PATTERNS, PLAIN, st.booleans())
def test_the_lines_are_those_of_grep(text: str, pattern: str, words: str, fixed: bool) -> None:
    typed = words if fixed else pattern
    # grep counts a carriage return among the characters of a line.
    plain = text.replace("\r\n", "\n").removesuffix("\r").replace("\r", "")
    told = subprocess.run(
        ["grep", "-an", "-F" if fixed else "-E", "-e", typed],
        input=plain.encode(),
        capture_output=True,
        check=False,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    assert told.returncode in (0, 1), told
    expected = "".join(f"{line.number}:{line.text}\n" for line in found(plain, typed, fixed=fixed))
    assert told.stdout.decode() == expected


@given(TEXTS, PLAIN, st.booleans())
def test_a_plain_pattern_is_what_fixed_makes_of_it(text: str, typed: str, fold: bool) -> None:
    assert found(text, typed, ignore_case=fold) == found(text, typed, ignore_case=fold, fixed=True)


def test_upper_and_lower_case_of_whole_scripts() -> None:
    assert found("Straße\nstrasse\nΣίσυφος\n", "STRASSE", ignore_case=True) == [
        TextLine(1, "Straße"),
        TextLine(2, "strasse"),
    ]
    assert found("Straße\nΣίσυφος\n", "σίσυφοσ", ignore_case=True) == [TextLine(2, "Σίσυφος")]


def test_spans_are_what_matched() -> None:
    assert list(compile_pattern("a+|x*").spans_in("baab")) == [(1, 3)]
    assert list(compile_pattern("a", whole_words=True).spans_in("a ab a_ -a-")) == [(0, 1), (9, 10)]


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("[abc", "unterminated character set, at character 1, before '[abc'"),
        ("ab(c", "missing ), unterminated subpattern, at character 3, before '(c'"),
        ("a**", "multiple repeat, at character 3, before '*'"),
        ("a\\", "bad escape (end of pattern), at character 2, before '\\'"),
        ("(?P<n>a)(?P=m)", "unknown group name 'm', at character 13, before 'm)'"),
        ("x(\x1b]2J", r"at character 2, before '(\x1b]2J'"),
        ("(?:", "missing ), unterminated subpattern, at character 1"),
        ("a(?i)", "global flags not at the start of the expression, at character 2"),
        ("a{1,99999999999999999999}", "too large"),
        ("(" * 20000, "no regular expression|too large"),
        ("a\nb", "has a line break"),
    ],
)
def test_a_broken_pattern_says_where(typed: str, says: str) -> None:
    for whole in (False, True):
        with pytest.raises(UsageError) as told:
            compile_pattern(typed, whole_words=whole)
        assert any(words in told.value.detail for words in says.split("|")), told.value.detail
    if "\n" not in typed:
        assert found(f"x{typed}y", typed, fixed=True) == [TextLine(1, f"x{typed}y")]


def test_flags_at_the_beginning_hold_with_whole_words() -> None:
    assert found("A\nab\n", "(?i)a", whole_words=True) == [TextLine(1, "A")]
    assert found("a\nab\n", "(?x)a # note", whole_words=True) == [TextLine(1, "a")]
    assert found("x[(?i)]\n", "[(?i)]", whole_words=True) == [TextLine(1, "x[(?i)]")]


def test_a_text_without_lines_has_none_that_match(tmp_path: Path) -> None:
    for typed in ("", "^", "x*"):
        assert found("", typed) == []
        assert found("\n", typed) == found("\r\n", typed) == [TextLine(1, "")]
        assert [line.number for line in found("a\n\nb", typed)] == [1, 2, 3]
