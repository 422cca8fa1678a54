"""Checks user input by the rules of `localstore.core` before a request is sent. Invalid input is reported as
a UsageError (exit code 2)."""

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
    """Apply a rule to a value that the user typed, and return its result. Raises UsageError with the rule's
    sentence if the value is invalid."""
    try:
        return rule(value)
    except Invalid as error:
        raise UsageError(error.detail) from None


def require_valid(value: B) -> B:
    """Return the body or query unchanged if it is valid. Raises UsageError with the sentence that the relay
    would answer."""
    return argument(validation.check_members, value)
