"""Error messages for invalid values of options and arguments: not a number, out of range, or not one of the
allowed words."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import typer

from localstore.core.paths import terminal_safe

TYPED = "svc.typed"  # key of the words of a command line in the `meta` of its context
NUMBERS = {"int": "a whole number", "integer": "a whole number", "float": "a number"}


class UnfitValue(typer.BadParameter):
    """Raised if a value is not allowed for its option or argument. The message is a whole sentence."""

    def format_message(self) -> str:
        return str(self.message)


def explain_values(kind: Any) -> Any:
    """Return a copy of a parameter type (a number, or a choice of words) whose errors say in a sentence which
    values are valid. The copy accepts numbers only in the digits 0 to 9. (Python's `int` and `float` also
    accept underscores and the digits of other scripts.) Other types are returned unchanged."""
    number = NUMBERS.get(kind.name.partition(" ")[0])  # a range of them has a second word
    words = words_of(kind)
    if number is None and not words:
        return kind
    own, convert = copy(kind), kind.convert

    def convert_or_explain(value: Any, param: Any, ctx: Any) -> Any:
        foreign = number and isinstance(value, str) and not (value.isascii() and "_" not in value)
        if not foreign:
            try:
                return convert(value, param, ctx)
            except typer.BadParameter:
                pass
        fitting = _choice(words) if number is None else f"{number}{_range(kind)}"
        digits = ", in the digits 0 to 9" if foreign else ""
        label = terminal_safe(str(value)[:60])
        raise UnfitValue(f"{_spelled_as_typed(param, ctx)} wants {fitting}{digits}, not {label!r}", ctx)

    own.convert = convert_or_explain
    return own


def words_of(kind: Any) -> tuple[str, ...]:
    """Return the words that a parameter type allows; () if the type is not a choice of words."""
    return tuple(str(getattr(word, "value", word)) for word in getattr(kind, "choices", None) or ())


def _choice(words: Sequence[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _range(kind: Any) -> str:
    """Return the range of a numeric type as words that follow "a number", such as " from 1 to 10". "" if the
    type has no range."""
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f" from {low} on"
    return f" up to {high}" if high is not None else ""


def _spelled_as_typed(param: Any, ctx: Any) -> str:
    """Return the name of a parameter for an error. For an option it is the spelling that was typed, or else
    the longest one. For an argument it is the spelling in usage lines."""
    if param is None:
        return "this"
    if param.param_type_name == "argument":
        return str(param.metavar or param.name).strip("[]").upper()
    spellings = sorted(param.opts, key=len, reverse=True)
    words = ctx.meta.get(TYPED, ()) if ctx is not None else ()
    for spelling in spellings:
        if any(word.partition("=")[0] == spelling for word in words):
            return str(spelling)
    for spelling in spellings:
        if len(spelling) == 2 and any(word.startswith(spelling) for word in words):  # -nx
            return str(spelling)
    return str(spellings[0])
