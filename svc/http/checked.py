"""What a person typed, checked by the rules of the kernel before anything is sent: a usage error, exit 2."""

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
    """What the rule makes of the value; UsageError with the rule's own sentence."""
    try:
        return rule(value)
    except Invalid as error:
        raise UsageError(error.detail) from None


def checked(value: B) -> B:
    """The body or query itself; UsageError with the relay's own sentence."""
    return argument(validation.checked, value)
