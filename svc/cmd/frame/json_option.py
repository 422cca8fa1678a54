"""Parses `--json [FIELDS]`. The option parser does not support options whose value can be left out, so this
module decides whether the word after `--json` is its value."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

_FIELDS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(,[A-Za-z_][A-Za-z0-9_]*)*")


def with_fields(
    words: Sequence[str],
    params: Sequence[Any],
    is_fields: Callable[[str, int], bool],
    *,
    leading: bool = False,
) -> list[str]:
    """Return the words of a command line with the option `--json` joined to its value: `--json FIELDS`
    becomes `--json=FIELDS`. If no value follows, it becomes `--json=`.

    `params` are the options of the command. `is_fields` decides whether the word after `--json` is its value.
    It is called with that word and the number of other arguments. With `leading`, only the options before the
    name of the command are rewritten."""
    joined: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if word == "--" or (leading and not word.startswith("-")):
            return [*joined, *words[at:]]
        if word == "--json":
            following = words[at + 1] if at + 1 < len(words) else ""
            others = [*words[:at], *words[at + 2 :]]
            takes = bool(_FIELDS.fullmatch(following)) and is_fields(following, _arguments(others, params))
            joined.append(f"--json={following if takes else ''}")
            at += 2 if takes else 1
        elif _takes_a_word(word, params):
            joined += words[at : at + 2]
            at += 2
        else:
            joined.append(word)
            at += 1
    return joined


def is_list_of(fields: Sequence[str], required: int, text: str, others: int) -> bool:
    """Return whether the word `text`, which follows `--json`, is a list of fields. Otherwise it is an
    argument of the command. `required` is the number of arguments that the command needs, and `others` the
    number of other arguments that were typed. If these are enough, `text` counts as a list of fields even if
    it names an unknown field, and an error is reported later."""
    return "," in text or text in fields or others >= required


def _arguments(words: Sequence[str], params: Sequence[Any]) -> int:
    count = at = 0
    while at < len(words):
        word = words[at]
        if word == "--":
            return count + len(words) - at - 1
        if _takes_a_word(word, params):
            at += 1
        elif not word.startswith("-") or word == "-":
            count += 1
        at += 1
    return count


def _takes_a_word(word: str, params: Sequence[Any]) -> bool:
    """Return whether the word is an option whose value is the next word. Grouped short options count too: in
    `-sm TEXT`, TEXT is the value of -m."""
    if word == "--json" or not word.startswith("-") or word == "-":
        return False
    if word.startswith("--"):
        return _by_spelling(word, params)
    flags, last = word[1:-1], f"-{word[-1]}"
    return _by_spelling(last, params) and not any(_by_spelling(f"-{flag}", params) for flag in flags)


def _by_spelling(spelling: str, params: Sequence[Any]) -> bool:
    return any(
        spelling in param.opts and param.param_type_name == "option" and not param.is_flag for param in params
    )
