"""Functions that the commands on organisations share."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum

from localstore.core.errors import NotFound
from localstore.core.names import handle
from svc.http.checked import argument


class MemberRoleName(StrEnum):
    admin = "admin"
    member = "member"


def handle_of(typed: str) -> str:
    """The typed handle without its `@`. Raises Invalid if it is not a possible handle."""
    return argument(handle, typed.removeprefix("@"))


@contextlib.contextmanager
def explained(org: str) -> Iterator[None]:
    """A context in which a 404 of the server without a sentence becomes a NotFound that says: the caller is
    not a member of an organisation of this name. A 404 with a sentence is left unchanged."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise NotFound(f"you are not a member of an organisation {org}; see: svc org list") from None
