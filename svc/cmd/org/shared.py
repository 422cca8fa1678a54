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
    """The handle that was typed. Raises Invalid for a text that is not a possible handle."""
    return argument(handle, typed.removeprefix("@"))


@contextlib.contextmanager
def explained(org: str) -> Iterator[None]:
    """A context that explains the bare 404 of an organisation that is missing or hidden from the caller. A
    404 with its own sentence is unchanged."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise NotFound(f"you are not a member of an organisation {org}; see: svc org list") from None
