"""What the commands on access have in common."""

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
    """Reads the handle of an account in a record."""
    return lambda record: str((record.get(account) or {}).get("handle") or "")


def named(
    found: Iterable[T],
    typed: str,
    names: Callable[[T], Iterable[str]],
    what: str,
    see: str,
    state: str = "open ",
) -> T:
    """The one of `found`, which are `what` in this `state`, that a person means: by the first characters of
    its id, or another name; where nothing is typed, the only one. Raises NotFound or UsageError, which name
    the command `see`."""
    every = list(found)
    wanted = typed.removeprefix("@").lower()
    matching = [one for one in every if not wanted or _is(wanted, names(one))]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        named = f" {terminal_safe(typed)}" if typed else ""
        raise NotFound(f"there is no {state}{what}{named}; see: {see}")
    raise UsageError(f"there are {len(matching)} of these; name one {what} by its id: {see}")


def _is(wanted: str, names: Iterable[str]) -> bool:
    id, *others = names
    return id.startswith(wanted) or wanted in [other.lower() for other in others]
