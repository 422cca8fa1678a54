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
    """Return the typed handle without its `@`. Raises Invalid if it cannot be a handle."""
    return argument(handle, typed.removeprefix("@"))


@contextlib.contextmanager
def explain_missing_org(org: str) -> Iterator[None]:
    """A context that explains why an organisation was not found. If the server gave no reason for a NotFound,
    the error says instead that the user is not a member of an organisation of this name."""
    try:
        yield
    except NotFound as error:
        if not error.bare:
            raise
        raise NotFound(f"you are not a member of an organisation {org}; see: svc org list") from None
