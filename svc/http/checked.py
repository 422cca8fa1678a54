"""Checks user input by the rules of `localstore.core` before a request is sent; a violation is a UsageError
(exit 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from localstore.core import validation
from localstore.core.errors import Invalid, UsageError

S = TypeVar("S")
T = TypeVar("T")
B = TypeVar("B", bound=msgspec.Struct)


def argument(rule: Callable[[S], T], value: S) -> T:
    """The result of applying a rule to a value that the user typed. Raises UsageError with the rule's
    sentence if the value breaks it."""
    try:
        return rule(value)
    except Invalid as error:
        raise UsageError(error.detail) from None


def checked(value: B) -> B:
    """The same body or query, if it is valid. Raises UsageError with the sentence that the relay would
    answer."""
    return argument(validation.checked, value)
