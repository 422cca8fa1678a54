"""Functions that the commands on access share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, TypeVar

from localstore.core.errors import NotFound, UsageError
from localstore.core.paths import terminal_safe

T = TypeVar("T")


class RoleName(StrEnum):
    admin = "admin"
    write = "write"
    triage = "triage"
    read = "read"


def handle_of(account: str) -> Callable[[dict[str, Any]], str]:
    """Return a function that reads an account's handle from the fields of an answer. `account` is the name of
    the field that holds the account."""
    return lambda record: str((record.get(account) or {}).get("handle") or "")


def find_named(
    items: Iterable[T],
    typed: str,
    names: Callable[[T], Iterable[str]],
    what: str,
    see: str,
    state: str = "open ",
) -> T:
    """Return the item that the user means by the word `typed`. The word is the beginning of the item's id, or
    another name of the item. If it is "", there must be only one item. `names` returns the id of an item,
    then its other names.

    The other parameters are words for the errors: `what` is the kind of item, `state` an adjective before it,
    and `see` a command that lists the items. Raises NotFound if no item matches, UsageError if several do."""
    every = list(items)
    word = typed.removeprefix("@").lower()
    matching = [item for item in every if not word or _is_named(word, names(item))]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        label = f" {terminal_safe(typed)}" if typed else ""
        raise NotFound(f"there is no {state}{what}{label}; see: {see}")
    raise UsageError(f"there are {len(matching)} of these; name one {what} by its id: {see}")


def _is_named(word: str, names: Iterable[str]) -> bool:
    id, *others = names
    return id.startswith(word) or word in [other.lower() for other in others]
